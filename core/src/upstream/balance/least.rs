//! Choices by what is under way. The reference's counters do not count (its least active never
//! decrements, its latencies freeze); these do what the names say.

use rand::Rng;

use super::Eligible;
use crate::upstream::Member;

/// The index with the smallest value; among equals at random by weight.
fn smallest(eligible: &Eligible<'_>, value: impl Fn(&Member, f64) -> f64) -> Option<usize> {
    let mut best = None;
    let mut best_value = f64::INFINITY;
    let mut equals = 0_u64;
    for (index, member, weight) in eligible.iter() {
        let candidate = value(member, f64::from(weight));
        if best.is_none() || candidate < best_value {
            (best, best_value, equals) = (Some(index), candidate, u64::from(weight));
        } else if equal(candidate, best_value) {
            equals += u64::from(weight);
            if rand::rng().random_range(0..equals) < u64::from(weight) {
                best = Some(index);
            }
        }
    }
    best
}

/// Whether two values are the same but for rounding.
pub(super) fn equal(value: f64, best: f64) -> bool {
    (value - best).abs() <= f64::EPSILON * best.abs()
}

/// Requests under way per weight; idle ones are equal, so that their weights decide.
pub(super) fn least_active(eligible: &Eligible<'_>) -> Option<usize> {
    smallest(eligible, active)
}

/// What [`least_active`] compares.
pub(super) fn active(member: &Member, weight: f64) -> f64 {
    f64::from(member.endpoint.in_flight()) / weight
}

/// Average time × requests under way with this one, per weight. Without a sample nothing is known
/// against a member: it is tried first.
pub(super) fn shortest_response(eligible: &Eligible<'_>) -> Option<usize> {
    let now = eligible.now;
    smallest(eligible, |member, weight| response(member, weight, now))
}

/// What [`shortest_response`] compares.
pub(super) fn response(member: &Member, weight: f64, now: u64) -> f64 {
    let endpoint = &member.endpoint;
    endpoint.latency_us(now) * (f64::from(endpoint.in_flight()) + 1.0) / weight
}

/// The better of two at random.
///
/// Source: ShenYu 2.7.1, p2c: up to three draws, load = (√lag + 1) × requests under way. There the
/// average freezes at its first sample; here it follows and fades, so that a slow one is asked again.
pub(super) fn better_of_two(eligible: &Eligible<'_>) -> Option<usize> {
    for _ in 0..3 {
        let (first, second) = two_of(eligible.len());
        if let (Some(a), Some(b)) = (eligible.get(first), eligible.get(second)) {
            let better = load(b, eligible.now) < load(a, eligible.now);
            return Some(if better { second } else { first });
        }
    }
    // Too few are eligible to be met by chance: from a random place on, the better of the first two.
    let start = rand::rng().random_range(0..eligible.len().max(1));
    let round = (0..eligible.len()).map(|step| (start + step) % eligible.len());
    let mut found = round.filter_map(|index| eligible.get(index).map(|member| (index, member)));
    let (first, a) = found.next()?;
    match found.next() {
        Some((second, b)) if load(b, eligible.now) < load(a, eligible.now) => Some(second),
        _ => Some(first),
    }
}

/// Two different places, or twice the only one.
fn two_of(len: usize) -> (usize, usize) {
    if len < 2 {
        return (0, 0);
    }
    let first = rand::rng().random_range(0..len);
    let second = rand::rng().random_range(0..len - 1);
    (first, if second >= first { second + 1 } else { second })
}

/// What [`better_of_two`] compares.
pub(super) fn load((member, weight): (&Member, u32), now: u64) -> f64 {
    let lag = member.endpoint.latency_us(now).sqrt() + 1.0;
    lag * (f64::from(member.endpoint.in_flight()) + 1.0) / f64::from(weight)
}
