//! Load balancers.
//!
//! Everything a choice needs beyond live counters is computed when the list is built. Only the
//! position of round robin is written by every choice, by one atomic addition.

mod hash;
mod least;
mod random;
mod round_robin;

use std::net::IpAddr;
use std::sync::atomic::AtomicUsize;

use super::Member;

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
    /// The fewest requests under way, per weight.
    LeastActive,
    /// The better of two random ones, by requests under way and weight.
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

    /// Whether it looks at requests under way and times, which are then counted.
    #[must_use]
    pub const fn counts(self) -> bool {
        matches!(self, Self::LeastActive | Self::P2c | Self::ShortestResponse)
    }
}

/// The lasting state of a selector's balancers; survives edits of its list.
#[derive(Debug, Default)]
pub struct BalanceState {
    position: AtomicUsize,
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
pub struct Choice<'a> {
    pub(super) members: &'a [Member],
    pub(super) tables: &'a Tables,
    pub(super) state: &'a BalanceState,
    pub(super) peer: IpAddr,
}

/// The index of the chosen member; the list has at least two.
pub(super) fn choose(how: LoadBalance, choice: Choice<'_>) -> usize {
    match how {
        LoadBalance::Random => choice.tables.random.choose(),
        LoadBalance::RoundRobin => choice.tables.round_robin.choose(&choice.state.position),
        LoadBalance::Hash => choice.tables.ring.choose(choice.peer),
        LoadBalance::LeastActive => least::least_active(choice.members),
        LoadBalance::P2c => least::better_of_two(choice.members),
        LoadBalance::ShortestResponse => least::shortest_response(choice.members),
    }
}
