//! The immutable upstream list of one selector.

use std::net::IpAddr;
use std::sync::Arc;

use super::balance::{self, BalanceState, Choice, LoadBalance, Share};
use super::{Address, AddressFault, Endpoint, EndpointRegistry};
use crate::model::{Upstream, UpstreamProps, UpstreamStatus};

/// One upstream inside a list.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its lasting state.
    pub endpoint: Arc<Endpoint>,
    /// Its share of the traffic; never 0.
    pub weight: u32,
    /// The time over which the weight grows to its full value, in milliseconds.
    pub warmup_ms: u64,
}

/// The usable upstreams of a selector, with what its balancers need, built at sync time.
#[derive(Debug, Default)]
pub struct UpstreamSet {
    members: Vec<Member>,
    tables: balance::Tables,
    state: Arc<BalanceState>,
}

/// Why a configured upstream is not in the set of its selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeftOut {
    /// It is configured as down.
    Down,
    /// Its weight is 0.
    NoWeight,
    /// Others are gray, and this one is not.
    NotGray,
    /// Its address cannot be read.
    Unreadable(AddressFault),
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Down => f.write_str("configured as down"),
            Self::NoWeight => f.write_str("weight 0"),
            Self::NotGray => f.write_str("not gray, while others of the selector are"),
            Self::Unreadable(fault) => fault.fmt(f),
        }
    }
}

/// Decides which of the configured upstreams are in a set.
#[derive(Debug, Clone, Copy)]
struct Judge {
    /// No weight says anything: all are equal.
    unknown_weights: bool,
    any_gray: bool,
}

impl Judge {
    fn of(upstreams: &[Upstream], equal_shares: bool) -> Self {
        let unknown_weights = equal_shares && upstreams.iter().all(|u| u.weight <= 0);
        let judge = Self { unknown_weights, any_gray: false };
        let any_gray = upstreams.iter().any(|upstream| {
            let usable = upstream.state() == UpstreamStatus::Up && judge.weight(upstream) > 0;
            usable && upstream.properties().gray
        });
        Self { any_gray, ..judge }
    }

    fn weight(self, upstream: &Upstream) -> u32 {
        if self.unknown_weights { 1 } else { u32::try_from(upstream.weight).unwrap_or(0) }
    }

    fn left_out(self, upstream: &Upstream, properties: UpstreamProps) -> Option<LeftOut> {
        if upstream.state() != UpstreamStatus::Up {
            Some(LeftOut::Down)
        } else if self.weight(upstream) == 0 {
            Some(LeftOut::NoWeight)
        } else {
            (self.any_gray && !properties.gray).then_some(LeftOut::NotGray)
        }
    }
}

impl UpstreamSet {
    /// Which of the configured upstreams are left out of a set that is built of them, each with the
    /// reason.
    #[must_use]
    pub fn left_out(upstreams: &[Upstream], equal_shares: bool) -> Vec<(&Upstream, LeftOut)> {
        let judge = Judge::of(upstreams, equal_shares);
        let unreadable =
            |upstream: &Upstream| Address::read(upstream).err().map(LeftOut::Unreadable);
        let reason = |upstream: &Upstream| {
            let known = judge.left_out(upstream, upstream.properties());
            known.or_else(|| unreadable(upstream))
        };
        upstreams.iter().filter_map(|one| reason(one).map(|why| (one, why))).collect()
    }

    /// Builds the set of a selector, and makes it the one where its upstreams look for others.
    ///
    /// Left out: what is down, what has weight 0, what is not gray while another usable one is, and
    /// what has no readable address (returned as faults). With `equal_shares` a list in which every
    /// weight is 0 says nothing about weights; otherwise it is an empty set.
    #[must_use]
    pub fn build(
        selector_id: &str,
        upstreams: &[Upstream],
        equal_shares: bool,
        state: Arc<BalanceState>,
        registry: &EndpointRegistry,
    ) -> (Arc<Self>, Vec<AddressFault>) {
        let mut faults = Vec::new();
        let judge = Judge::of(upstreams, equal_shares);
        let mut members = Vec::with_capacity(upstreams.len());
        for upstream in upstreams {
            let properties = upstream.properties();
            if judge.left_out(upstream, properties).is_some() {
                continue;
            }
            match registry.endpoint(selector_id, upstream, &state) {
                Ok(endpoint) => members.push(Member {
                    endpoint,
                    weight: judge.weight(upstream),
                    warmup_ms: u64::try_from(properties.warmup).unwrap_or(0),
                }),
                Err(fault) => faults.push(fault),
            }
        }
        let tables = balance::Tables::build(&members);
        let set = Arc::new(Self { members, tables, state });
        set.state.publish(&set);
        (set, faults)
    }

    /// Whether nothing can be chosen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The usable upstreams, in configured order, healthy or not.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The upstream whose url is exactly this (`specify-domain`), unless probes have taken it out.
    #[must_use]
    pub fn named(&self, url: &str) -> Option<&Arc<Endpoint>> {
        let mut endpoints = self.members.iter().map(|member| &member.endpoint);
        endpoints.find(|endpoint| &*endpoint.url == url && !endpoint.is_out())
    }

    /// Chooses an upstream. `peer` is the socket's peer; no allocation.
    ///
    /// `None` when there is none, or probes have taken all out. Ejected ones are chosen when nothing
    /// else is left.
    #[must_use]
    pub fn choose(&self, how: LoadBalance, peer: IpAddr) -> Option<&Arc<Endpoint>> {
        self.choose_except(how, peer, &[])
    }

    /// What a balancer would do for a client with each of them, in configured order. Chooses nothing.
    #[must_use]
    pub fn shares(&self, how: LoadBalance, peer: IpAddr) -> Vec<Share> {
        let Self { members, tables, state, .. } = self;
        balance::shares(how, Choice { members, tables, state, peer, tried: &[] })
    }

    /// The same where the request names this one.
    #[must_use]
    pub fn only(&self, endpoint: &Arc<Endpoint>) -> Vec<Share> {
        balance::only(&self.members, endpoint)
    }

    /// As [`UpstreamSet::choose`], but none of `tried`.
    #[must_use]
    pub fn choose_except(
        &self,
        how: LoadBalance,
        peer: IpAddr,
        tried: &[Arc<Endpoint>],
    ) -> Option<&Arc<Endpoint>> {
        let Self { members, tables, state, .. } = self;
        let index = balance::choose(how, Choice { members, tables, state, peer, tried })?;
        self.members.get(index).map(|member| &member.endpoint)
    }
}

impl Endpoint {
    /// Another upstream of its selector, as configured now: none of `tried`.
    #[must_use]
    pub fn another(
        &self,
        how: LoadBalance,
        peer: IpAddr,
        tried: &[Arc<Self>],
    ) -> Option<Arc<Self>> {
        let set = self.selector()?.current()?;
        set.choose_except(how, peer, tried).cloned()
    }

    /// Whether its selector has no other.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        let set = self.selector().and_then(|selector| selector.current());
        set.is_none_or(|set| set.members.len() < 2)
    }
}

#[cfg(test)]
mod tests;
