//! Which members of a list may be chosen now, and with what weight.

use std::sync::Arc;

use crate::upstream::health::Standing;
use crate::upstream::{Endpoint, Member};

/// A view of a list at one moment. Nothing is collected: each question looks at the member.
#[derive(Debug, Clone, Copy)]
pub(super) struct Eligible<'a> {
    members: &'a [Member],
    tried: &'a [Arc<Endpoint>],
    pub(super) now: u64,
    /// Nothing but ejected ones is left: they are used.
    ejected_too: bool,
}

impl<'a> Eligible<'a> {
    /// `None` when nothing can be chosen.
    pub(super) fn new(members: &'a [Member], tried: &'a [Arc<Endpoint>], now: u64) -> Option<Self> {
        let mut eligible = Self { members, tried, now, ejected_too: false };
        if !eligible.any() {
            eligible.ejected_too = true;
        }
        eligible.any().then_some(eligible)
    }

    fn any(&self) -> bool {
        (0..self.members.len()).any(|index| self.may(index).is_some())
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    fn may(&self, index: usize) -> Option<&'a Member> {
        let member = self.members.get(index)?;
        let standing = member.endpoint.standing(self.now);
        let may = match standing {
            Standing::In | Standing::Trial => true,
            Standing::Ejected => self.ejected_too,
            Standing::Out => false,
        };
        (may && !self.tried.iter().any(|tried| Arc::ptr_eq(tried, &member.endpoint)))
            .then_some(member)
    }

    /// The weight a member has now; `None` when it may not be chosen.
    pub(super) fn weight(&self, index: usize) -> Option<u32> {
        self.may(index).map(|member| self.weight_of(member))
    }

    /// Those that may be chosen with the weights they have now, for who only looks.
    pub(super) fn seen(&self) -> Vec<(usize, &'a Member, u32)> {
        let weight =
            |member: &Member| member.endpoint.weight_at(member.weight, member.warmup_ms, self.now);
        let all = 0..self.members.len();
        all.filter_map(|index| self.may(index).map(|m| (index, m, weight(m)))).collect()
    }

    fn weight_of(&self, member: &Member) -> u32 {
        member.endpoint.warm_weight(member.weight, member.warmup_ms, self.now)
    }

    /// Those that may be chosen: index, member, weight.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &'a Member, u32)> + '_ {
        (0..self.members.len())
            .filter_map(|index| self.may(index).map(|m| (index, m, self.weight_of(m))))
    }

    /// The same for one of them.
    pub(super) fn get(&self, index: usize) -> Option<(&'a Member, u32)> {
        self.may(index).map(|member| (member, self.weight_of(member)))
    }

    /// Goes through with a choice; false when it was on trial and somebody else has the place.
    pub(super) fn admit(&self, index: usize) -> bool {
        let Some(member) = self.members.get(index) else { return false };
        member.endpoint.standing(self.now) != Standing::Trial
            || member.endpoint.claim(self.now)
            || self.ejected_too
    }
}
