//! Load balancers.
//!
//! Everything a choice needs beyond live counters is computed when the list is built. Only the
//! position of round robin is written by every choice, by one atomic addition.
//!
//! A choice is made from the tables first. Only when it falls on an upstream that is out, ejected or
//! warming up, or when others were tried before, the others are looked at one by one: the shares
//! come out as if the list held just the eligible ones with the weights they have now.

mod chances;
mod eligible;
mod hash;
mod least;
mod random;
mod round_robin;

use std::net::IpAddr;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::{Endpoint, Member, UpstreamSet};
pub use chances::Share;
pub(super) use chances::{only, shares};
use eligible::Eligible;

/// How an upstream is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LoadBalance {
    /// By weight, at random.
    #[default]
    Random,
    /// Smooth weighted round robin.
    RoundRobin,
    /// The same upstream for the same client address, while the list is the same. Weights do not
    /// count.
    Hash,
    /// The fewest requests under way, per weight; among equals at random by weight.
    LeastActive,
    /// The better of two random ones, by time to the response head, requests under way and weight.
    P2c,
    /// The least expected time: average time to the head × requests under way, per weight.
    ShortestResponse,
}

impl LoadBalance {
    /// All names, for error texts.
    pub const NAMES: &'static str =
        "random, roundRobin, hash, leastActive, p2c or shortestResponse";

    /// Reads the configured name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "random" => Self::Random,
            "roundRobin" => Self::RoundRobin,
            "hash" => Self::Hash,
            "leastActive" => Self::LeastActive,
            "p2c" => Self::P2c,
            "shortestResponse" => Self::ShortestResponse,
            _ => return None,
        })
    }

    /// The configured name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::RoundRobin => "roundRobin",
            Self::Hash => "hash",
            Self::LeastActive => "leastActive",
            Self::P2c => "p2c",
            Self::ShortestResponse => "shortestResponse",
        }
    }

    /// Whether it looks at times to the response head, which are then measured.
    #[must_use]
    pub const fn measures(self) -> bool {
        matches!(self, Self::P2c | Self::ShortestResponse)
    }
}

/// The lasting state of a selector's balancers; survives edits of its list.
#[derive(Debug, Default)]
pub struct BalanceState {
    position: AtomicUsize,
    /// The list in force. Weak: lists belong to snapshots.
    current: Mutex<Weak<UpstreamSet>>,
}

impl BalanceState {
    /// Makes a list the one in force.
    pub(super) fn publish(&self, set: &Arc<UpstreamSet>) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(set);
    }

    /// The list in force. Asked for when another upstream is needed, never for a first choice.
    pub(super) fn current(&self) -> Option<Arc<UpstreamSet>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }
}

/// What is computed from a list once.
#[derive(Debug, Default)]
pub(super) struct Tables {
    random: random::Cumulative,
    round_robin: round_robin::Sequence,
    ring: hash::Ring,
}

impl Tables {
    pub(super) fn build(members: &[Member]) -> Self {
        let weights: Vec<u32> = members.iter().map(|member| member.weight).collect();
        Self {
            random: random::Cumulative::build(&weights),
            round_robin: round_robin::Sequence::build(&weights),
            ring: hash::Ring::build(members.iter().map(|member| &*member.endpoint.url)),
        }
    }
}

/// What a balancer chooses from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice<'a> {
    pub(super) members: &'a [Member],
    pub(super) tables: &'a Tables,
    pub(super) state: &'a BalanceState,
    pub(super) peer: IpAddr,
    /// None of these.
    pub(super) tried: &'a [Arc<Endpoint>],
}

/// The index of the chosen member.
pub(super) fn choose(how: LoadBalance, choice: Choice<'_>) -> Option<usize> {
    if choice.members.is_empty() {
        return None;
    }
    let first = at_once(how, &choice);
    if choice.tried.is_empty()
        && let Some(index) = first
        && choice.members.get(index).is_some_and(|member| member.endpoint.is_plain())
    {
        return Some(index);
    }
    let now = super::clock::now_ms();
    // Twice: the place on trial of an ejected one may go to another request meanwhile.
    let mut found = None;
    for first in [first, None] {
        let eligible = Eligible::new(choice.members, choice.tried, now)?;
        found = among(how, &choice, &eligible, first);
        if found.is_none_or(|index| eligible.admit(index)) {
            break;
        }
    }
    found
}

/// The choice of the tables, for balancers that need nothing else.
fn at_once(how: LoadBalance, choice: &Choice<'_>) -> Option<usize> {
    if choice.members.len() == 1 {
        return Some(0);
    }
    match how {
        LoadBalance::Random => Some(choice.tables.random.choose()),
        LoadBalance::RoundRobin => Some(choice.tables.round_robin.next(&choice.state.position)),
        LoadBalance::Hash => choice.tables.ring.choose(choice.peer, |_| true),
        LoadBalance::LeastActive | LoadBalance::P2c | LoadBalance::ShortestResponse => None,
    }
}

/// The choice among those that are eligible now; `first` is what the tables say.
fn among(
    how: LoadBalance,
    choice: &Choice<'_>,
    eligible: &Eligible<'_>,
    first: Option<usize>,
) -> Option<usize> {
    let tables = choice.tables;
    match how {
        LoadBalance::Random => random::among(eligible, first),
        LoadBalance::RoundRobin => {
            tables.round_robin.among(&choice.state.position, eligible, first)
        }
        LoadBalance::Hash => {
            tables.ring.choose(choice.peer, |index| eligible.weight(index).is_some())
        }
        LoadBalance::LeastActive => least::least_active(eligible),
        LoadBalance::P2c => least::better_of_two(eligible),
        LoadBalance::ShortestResponse => least::shortest_response(eligible),
    }
}
