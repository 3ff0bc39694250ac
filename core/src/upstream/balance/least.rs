//! Choices by what is under way. The reference's counters do not count (its least active never
//! decrements, its latencies freeze); these do what the names say.

use rand::Rng;

use super::super::Member;

/// Load per weight; smaller is better. One more request under way, so that an idle heavy member
/// beats an idle light one.
fn load(member: &Member) -> f64 {
    f64::from(member.endpoint.in_flight() + 1) / f64::from(member.weight)
}

fn expected_us(member: &Member) -> f64 {
    // A member without a sample is tried first: nothing is known against it.
    member.endpoint.latency_us() as f64 * load(member)
}

/// The index with the smallest value; among equals each with the same chance.
fn smallest(members: &[Member], value: impl Fn(&Member) -> f64) -> usize {
    let mut best = 0;
    let mut best_value = f64::INFINITY;
    let mut equals = 0_u32;
    for (index, member) in members.iter().enumerate() {
        let candidate = value(member);
        if candidate < best_value {
            (best, best_value, equals) = (index, candidate, 1);
        } else if (candidate - best_value).abs() <= f64::EPSILON * best_value.abs() {
            equals += 1;
            if rand::rng().random_range(0..equals) == 0 {
                best = index;
            }
        }
    }
    best
}

pub(super) fn least_active(members: &[Member]) -> usize {
    smallest(members, load)
}

pub(super) fn shortest_response(members: &[Member]) -> usize {
    smallest(members, expected_us)
}

pub(super) fn better_of_two(members: &[Member]) -> usize {
    let first = rand::rng().random_range(0..members.len());
    let mut second = rand::rng().random_range(0..members.len() - 1);
    if second >= first {
        second += 1;
    }
    if load(&members[second]) < load(&members[first]) { second } else { first }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{better_of_two, least_active, shortest_response};
    use crate::model::Upstream;
    use crate::upstream::{EndpointRegistry, UpstreamSet};

    #[test]
    fn the_busy_one_is_left_alone() {
        let list: Vec<Upstream> = ["h:1", "h:2"]
            .iter()
            .map(|url| Upstream { url: (*url).into(), weight: 1, ..Upstream::default() })
            .collect();
        let mut registry = EndpointRegistry::default();
        let (set, faults) = UpstreamSet::build("s", &list, false, Arc::default(), &mut registry);
        assert!(faults.is_empty());
        let guard = set.members()[0].endpoint.enter();
        assert_eq!(least_active(set.members()), 1);
        assert_eq!(better_of_two(set.members()), 1);
        drop(guard);
        set.members()[0].endpoint.observe(std::time::Duration::from_millis(1));
        set.members()[1].endpoint.observe(std::time::Duration::from_millis(9));
        assert_eq!(shortest_response(set.members()), 0);
    }
}
