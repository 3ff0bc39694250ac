//! What balancers would do, for who only looks: nothing is chosen, counted or moved on.

use std::sync::Arc;

use super::eligible::Eligible;
use super::{Choice, LoadBalance, least};
use crate::upstream::clock::now_ms;
use crate::upstream::health::Standing;
use crate::upstream::{Endpoint, EndpointState, Member};

/// What a balancer would do with one upstream.
#[derive(Debug, Clone)]
pub struct Share {
    /// The upstream.
    pub endpoint: Arc<Endpoint>,
    /// Its configured weight.
    pub weight: u32,
    /// The weight it has now, while it warms up.
    pub weight_now: u32,
    /// The chance that it is chosen, from 0 to 1.
    pub chance: f64,
    /// Whether it is known to be the next.
    pub next: bool,
    /// What is known of it.
    pub state: EndpointState,
    /// Why it is not chosen though it is there; `None` where it may be.
    pub excluded: Option<String>,
}

impl Share {
    /// The one that is known to be the next, else the first with the greatest chance.
    #[must_use]
    pub fn likeliest(shares: &[Self]) -> Option<&Self> {
        let known = shares.iter().find(|share| share.next);
        known.or_else(|| {
            let possible = shares.iter().filter(|share| share.chance > 0.0);
            possible.reduce(|best, share| if share.chance > best.chance { share } else { best })
        })
    }
}

/// What a balancer would do with each member.
pub(in crate::upstream) fn shares(how: LoadBalance, choice: Choice<'_>) -> Vec<Share> {
    let now = now_ms();
    let mut shares: Vec<Share> = choice.members.iter().map(|member| share(member, now)).collect();
    let Some(eligible) = Eligible::new(choice.members, choice.tried, now) else {
        return shares;
    };
    let seen = eligible.seen();
    for (index, chance) in chances(how, &choice, &seen, now) {
        shares[index].chance = chance;
    }
    for (index, ..) in &seen {
        shares[*index].excluded = None;
    }
    if let Some(next) = next(how, &choice, &seen, now) {
        shares[next].next = true;
    }
    shares
}

/// What is known of the members where the request itself names one.
pub(in crate::upstream) fn only(members: &[Member], endpoint: &Arc<Endpoint>) -> Vec<Share> {
    let now = now_ms();
    let mut shares: Vec<Share> = members.iter().map(|member| share(member, now)).collect();
    for share in &mut shares {
        let named = Arc::ptr_eq(&share.endpoint, endpoint);
        share.chance = if named { 1.0 } else { 0.0 };
        share.next = named;
        share.excluded = (!named).then(|| "the request names another upstream".to_owned());
    }
    shares
}

fn share(member: &Member, now: u64) -> Share {
    let endpoint = &member.endpoint;
    let state = endpoint.state(now);
    let excluded = if state.probed_out {
        Some("taken out: the last probe could not connect".to_owned())
    } else {
        let seconds = |left: std::time::Duration| left.as_millis().div_ceil(1_000);
        state
            .ejected_for
            .map(|left| format!("ejected for {} s more: requests failed", seconds(left)))
    };
    Share {
        endpoint: Arc::clone(endpoint),
        weight: member.weight,
        weight_now: endpoint.weight_at(member.weight, member.warmup_ms, now),
        chance: 0.0,
        next: false,
        state,
        excluded,
    }
}

/// The member that is chosen whatever chance says: by the tables, where it may be at its full weight.
fn next(how: LoadBalance, choice: &Choice<'_>, seen: &[Seen<'_>], now: u64) -> Option<usize> {
    let full = |index: &usize| {
        seen.iter().any(|(at, member, weight)| {
            let settled = member.endpoint.standing(now) == Standing::In;
            at == index && *weight == member.weight && settled
        })
    };
    let index = match how {
        _ if choice.members.len() == 1 => Some(0),
        LoadBalance::RoundRobin => choice.tables.round_robin.peek(&choice.state.position),
        LoadBalance::Hash => choice.tables.ring.choose(choice.peer, |_| true),
        LoadBalance::Random
        | LoadBalance::LeastActive
        | LoadBalance::P2c
        | LoadBalance::ShortestResponse => None,
    };
    index.filter(full)
}

type Seen<'a> = (usize, &'a Member, u32);

/// The chances of those that may be chosen.
fn chances(
    how: LoadBalance,
    choice: &Choice<'_>,
    seen: &[Seen<'_>],
    now: u64,
) -> Vec<(usize, f64)> {
    match how {
        // In the long run as the weights say; round robin by turns.
        LoadBalance::Random | LoadBalance::RoundRobin => by_weight(seen),
        LoadBalance::Hash => {
            let may = |index| seen.iter().any(|(at, ..)| *at == index);
            let chosen = choice.tables.ring.choose(choice.peer, may);
            chosen.into_iter().map(|index| (index, 1.0)).collect()
        }
        LoadBalance::LeastActive => smallest(seen, least::active),
        LoadBalance::ShortestResponse => {
            smallest(seen, |member, weight| least::response(member, weight, now))
        }
        LoadBalance::P2c => better_of_two(choice.members.len(), seen, now),
    }
}

fn by_weight(seen: &[Seen<'_>]) -> Vec<(usize, f64)> {
    let total: f64 = seen.iter().map(|(.., weight)| f64::from(*weight)).sum();
    seen.iter().map(|(index, _, weight)| (*index, f64::from(*weight) / total.max(1.0))).collect()
}

/// Those with the smallest value share by weight.
fn smallest(seen: &[Seen<'_>], value: impl Fn(&Member, f64) -> f64) -> Vec<(usize, f64)> {
    let values: Vec<f64> = seen.iter().map(|(_, m, w)| value(m, f64::from(*w))).collect();
    let best = values.iter().copied().fold(f64::INFINITY, f64::min);
    let equals = seen.iter().zip(&values).filter(|(_, value)| least::equal(**value, best));
    by_weight(&equals.map(|(one, _)| *one).collect::<Vec<_>>())
}

/// Up to three draws of two of all; after that, from a random place on, the better of the first two.
fn better_of_two(all: usize, seen: &[Seen<'_>], now: u64) -> Vec<(usize, f64)> {
    let loads: Vec<f64> = seen.iter().map(|(_, m, w)| least::load((m, *w), now)).collect();
    let mut chances = vec![0.0; seen.len()];
    let (total, count) = (all as f64, seen.len() as f64);
    if seen.len() < 2 {
        return seen.iter().map(|(index, ..)| (*index, 1.0)).collect();
    }
    // Each draw is one of total·(total - 1) pairs; it counts when both may be chosen.
    let pair = 1.0 / (total * (total - 1.0));
    let counts = count * (count - 1.0) * pair;
    let fails = 1.0 - counts;
    let draws = 1.0 + fails + fails * fails;
    let mut sorted = loads.clone();
    sorted.sort_by(f64::total_cmp);
    for (chance, load) in chances.iter_mut().zip(&loads) {
        // Drawn first it stands against those that are not better, drawn second against the worse.
        let not_better = sorted.len() - sorted.partition_point(|other| other < load) - 1;
        let worse = sorted.len() - sorted.partition_point(|other| other <= load);
        *chance = (not_better + worse) as f64 * pair * draws;
    }
    let better = |a: usize, b: usize| if loads[b] < loads[a] { b } else { a };
    let left = fails * fails * fails;
    for start in 0..all {
        let from = seen.partition_point(|(index, ..)| *index < start);
        let (a, b) = (from % seen.len(), (from + 1) % seen.len());
        chances[better(a, b)] += left / total;
    }
    seen.iter().zip(chances).map(|((index, ..), chance)| (*index, chance)).collect()
}
