//! Choices from lists whose upstreams are off, out, ejected, warming up or tried before.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::UpstreamSet;
use crate::model::Upstream;
use crate::upstream::health::ProbeRule;
use crate::upstream::{
    EjectionPolicy, Endpoint, EndpointOptions, EndpointRegistry, Failure, LoadBalance, now_ms,
};

const ALL: [LoadBalance; 6] = [
    LoadBalance::Random,
    LoadBalance::RoundRobin,
    LoadBalance::Hash,
    LoadBalance::LeastActive,
    LoadBalance::P2c,
    LoadBalance::ShortestResponse,
];

const HOUR: Duration = Duration::from_secs(3600);

fn upstream(url: &str, weight: i32, status: i32, props: &str) -> Upstream {
    let props = (!props.is_empty()).then(|| props.to_owned());
    Upstream { url: url.into(), weight, status, props, ..Upstream::default() }
}

/// A registry whose ejections outlast the test.
fn registry() -> EndpointRegistry {
    let ejection = EjectionPolicy { after: 1, base: HOUR, max: HOUR };
    EndpointRegistry::new(EndpointOptions { ejection, ..EndpointOptions::default() })
}

fn set_in(registry: &EndpointRegistry, list: &[Upstream]) -> Arc<UpstreamSet> {
    let (set, faults) = UpstreamSet::build("s", list, false, Arc::default(), registry);
    assert!(faults.is_empty(), "{faults:?}");
    set
}

/// `weights` for `h:1`, `h:2`, … without warm-up.
fn set(weights: &[i32]) -> Arc<UpstreamSet> {
    let list: Vec<Upstream> = (1..)
        .zip(weights)
        .map(|(n, weight)| upstream(&format!("h:{n}"), *weight, 0, r#"{"warmup":0}"#))
        .collect();
    set_in(&registry(), &list)
}

fn endpoint(set: &UpstreamSet, url: &str) -> Arc<Endpoint> {
    set.named(url).unwrap().clone()
}

/// How often each upstream is chosen, by clients of many addresses.
fn shares(
    set: &UpstreamSet,
    how: LoadBalance,
    count: u32,
    tried: &[Arc<Endpoint>],
) -> BTreeMap<String, u32> {
    let mut shares = BTreeMap::new();
    for n in 0..count {
        let peer = IpAddr::from(0x0A00_0000_u32.wrapping_add(n).to_be_bytes());
        if let Some(chosen) = set.choose_except(how, peer, tried) {
            *shares.entry(chosen.url.to_string()).or_default() += 1;
        }
    }
    shares
}

fn urls(shares: &BTreeMap<String, u32>) -> Vec<&str> {
    shares.keys().map(String::as_str).collect()
}

fn probe_out(endpoint: &Endpoint) {
    let rule = ProbeRule { interval: HOUR, healthy: 1, unhealthy: 1 };
    endpoint.probed(false, now_ms(), &rule).unwrap();
}

#[test]
fn weight_zero_and_status_off_are_never_chosen() {
    let first = [upstream("h:1", 0, 0, ""), upstream("h:2", 50, 0, ""), upstream("h:3", 50, 1, "")];
    for how in ALL {
        let set = set_in(&registry(), &first);
        assert_eq!(shares(&set, how, 300, &[]), BTreeMap::from([("h:2".to_owned(), 300)]));
        let tried = [endpoint(&set, "h:2")];
        assert!(shares(&set, how, 300, &tried).is_empty(), "{how:?}: on retry neither");
        let alone = set_in(&registry(), &first[..1]);
        assert!(shares(&alone, how, 300, &[]).is_empty(), "{how:?}");
    }
}

#[test]
fn gray_ones_are_alone_while_one_of_them_is_usable() {
    let gray = r#"{"gray":"true"}"#;
    let mut list =
        [upstream("h:1", 1, 0, ""), upstream("h:2", 1, 0, gray), upstream("h:3", 1, 0, "")];
    assert_eq!(urls(&shares(&set_in(&registry(), &list), ALL[0], 100, &[])), ["h:2"]);
    list[1].status = 1;
    assert_eq!(urls(&shares(&set_in(&registry(), &list), ALL[0], 100, &[])), ["h:1", "h:3"]);
}

#[test]
fn what_is_out_ejected_or_tried_is_passed_over() {
    for how in ALL {
        let set = set(&[10, 10, 10, 10]);
        probe_out(&endpoint(&set, "h:1"));
        endpoint(&set, "h:2").failed(Failure::Connect, now_ms());
        let tried = [endpoint(&set, "h:3")];
        assert_eq!(urls(&shares(&set, how, 100, &tried)), ["h:4"], "{how:?}");
        let both = shares(&set, how, 400, &[]);
        assert_eq!(urls(&both), ["h:3", "h:4"], "{how:?}");
        if how == LoadBalance::RoundRobin {
            assert!(both.values().all(|count| *count == 200), "nobody inherits a turn: {both:?}");
        } else {
            assert!(both.values().all(|count| *count > 60), "{how:?}: {both:?}");
        }
    }
}

#[test]
fn ejected_ones_are_the_last_resort_and_probed_out_ones_are_none() {
    for how in ALL {
        let set = set(&[1, 1, 1]);
        for url in ["h:1", "h:2", "h:3"] {
            endpoint(&set, url).failed(Failure::Reset, now_ms());
        }
        assert_eq!(urls(&shares(&set, how, 200, &[])).len(), 3, "{how:?}");
        probe_out(&endpoint(&set, "h:1"));
        assert_eq!(urls(&shares(&set, how, 200, &[])), ["h:2", "h:3"], "{how:?}");
        endpoint(&set, "h:3").succeeded();
        assert_eq!(urls(&shares(&set, how, 200, &[])), ["h:3"], "{how:?}: it is back");
        probe_out(&endpoint(&set, "h:2"));
        probe_out(&endpoint(&set, "h:3"));
        assert!(shares(&set, how, 10, &[]).is_empty(), "{how:?}");
    }
    let alone = set(&[1]);
    let only = endpoint(&alone, "h:1");
    probe_out(&only);
    assert!(shares(&alone, ALL[0], 10, &[]).is_empty());
    assert!(alone.named("h:1").is_none());
}

#[test]
fn one_request_is_on_trial_when_the_time_is_over() {
    let ejection = EjectionPolicy { after: 1, base: Duration::from_millis(1), max: HOUR };
    let options = EndpointOptions { ejection, ..EndpointOptions::default() };
    let list = [upstream("h:1", 1, 0, r#"{"warmup":0}"#), upstream("h:2", 1, 0, r#"{"warmup":0}"#)];
    let set = set_in(&EndpointRegistry::new(options), &list);
    let flapping = endpoint(&set, "h:1");
    // Long ago: its time is over by now, whenever the test gets here.
    flapping.failed(Failure::Reset, 0);
    while now_ms() < 3 {
        std::thread::yield_now();
    }
    assert!(shares(&set, LoadBalance::RoundRobin, 50, &[]).contains_key("h:1"));
}

#[test]
fn shares_follow_the_weights_also_around_a_missing_one() {
    let set = set(&[30, 20, 10, 40]);
    probe_out(&endpoint(&set, "h:4"));
    let turns = shares(&set, LoadBalance::RoundRobin, 600, &[]);
    assert_eq!(turns.values().copied().collect::<Vec<_>>(), [300, 200, 100]);
    let drawn = shares(&set, LoadBalance::Random, 60_000, &[]);
    for (count, expected) in drawn.values().zip([30_000, 20_000, 10_000]) {
        // Seven standard deviations: once in 10^11 runs.
        assert!(count.abs_diff(expected) < 900, "{drawn:?}");
    }
}

#[test]
fn a_new_upstream_warms_up_beside_old_ones() {
    let registry = registry();
    let warm = r#"{"warmup":"0"}"#;
    let list = [upstream("h:1", 50, 0, r#"{"warmup":"600000000"}"#), upstream("h:2", 50, 0, warm)];
    for how in ALL {
        let set = set_in(&registry, &list);
        let chosen = shares(&set, how, 1000, &[]);
        let first = chosen.get("h:1").copied().unwrap_or(0);
        match how {
            LoadBalance::Hash => assert!(first > 0, "weights do not count"),
            LoadBalance::RoundRobin => assert!((15..=25).contains(&first), "{first}"),
            LoadBalance::Random => assert!((1..70).contains(&first), "{first}"),
            // Idle ones are equal but for their weight; of two the lighter is never the better.
            _ => assert!(first < 70, "{how:?}: {first}"),
        }
    }
    // All alike: the same share each, and no search.
    let both = [list[0].clone(), upstream("h:3", 50, 0, r#"{"warmup":"600000000"}"#)];
    let set = set_in(&registry, &both);
    let turns = shares(&set, LoadBalance::RoundRobin, 100, &[]);
    assert_eq!(turns.len(), 2);
}

#[test]
fn the_busy_the_slow_and_the_failing_are_left_alone() {
    let set = set(&[1, 1]);
    let (first, second) = (endpoint(&set, "h:1"), endpoint(&set, "h:2"));
    let busy = first.enter();
    for how in [LoadBalance::LeastActive, LoadBalance::P2c] {
        assert_eq!(urls(&shares(&set, how, 50, &[])), ["h:2"], "{how:?}");
    }
    drop(busy);
    assert_eq!(
        urls(&shares(&set, LoadBalance::LeastActive, 200, &[])).len(),
        2,
        "equals at random"
    );
    first.observe(Duration::from_millis(1), now_ms());
    second.observe(Duration::from_millis(9), now_ms());
    assert_eq!(urls(&shares(&set, LoadBalance::ShortestResponse, 50, &[])), ["h:1"]);
    assert_eq!(urls(&shares(&set, LoadBalance::P2c, 50, &[])), ["h:1"]);
    first.observe_failure(Duration::ZERO, now_ms());
    first.observe_failure(Duration::ZERO, now_ms());
    let quick = Duration::from_millis(1);
    for _ in 0..100 {
        second.observe(quick, now_ms());
    }
    assert_eq!(urls(&shares(&set, LoadBalance::ShortestResponse, 50, &[])), ["h:2"]);
}

#[test]
fn state_is_kept_over_edits_and_goes_with_its_owner() {
    let registry = registry();
    let state = Arc::default();
    let build =
        |list: &[Upstream]| UpstreamSet::build("s", list, false, Arc::clone(&state), &registry).0;
    let before = build(&[upstream("h:1", 1, 0, ""), upstream("h:2", 1, 0, "")]);
    let first = endpoint(&before, "h:1");
    first.failed(Failure::Connect, now_ms());
    let mut moved = upstream("h:1", 70, 0, "");
    moved.id = Some("another row".into());
    let after = build(&[upstream("h:3", 5, 0, ""), moved]);
    assert!(Arc::ptr_eq(&first, &endpoint(&after, "h:1")));
    assert!(endpoint(&after, "h:1").state(now_ms()).ejected_for.is_some());
    let peer = IpAddr::from([127, 0, 0, 1]);
    // A request that was sent to one that is configured no more finds the list of now.
    let gone = endpoint(&before, "h:2");
    let other = gone.another(LoadBalance::Random, peer, std::slice::from_ref(&gone)).unwrap();
    assert_eq!(&*other.url, "h:3");
    assert_eq!(registry.len(), 3);
    drop((before, gone));
    registry.sweep();
    let known: Vec<_> = registry.list().into_iter().map(|(_, e)| e.url.to_string()).collect();
    assert_eq!(known, ["h:1", "h:3"]);
}

/// What the explanation says of each, by url.
fn told(set: &UpstreamSet, how: LoadBalance, peer: IpAddr) -> BTreeMap<String, f64> {
    let shares = set.shares(how, peer);
    shares.iter().map(|share| (share.endpoint.url.to_string(), share.chance)).collect()
}

#[test]
fn chances_are_the_shares_that_come_out() {
    const COUNT: u32 = 20_000;
    let client = IpAddr::from([10, 0, 0, 1]);
    for weights in [&[1, 1, 1, 1][..], &[1, 2, 5], &[7, 3], &[4]] {
        for (case, how) in ALL.into_iter().flat_map(|how| (0..4).map(move |case| (case, how))) {
            let set = set(weights);
            let last = endpoint(&set, &format!("h:{}", weights.len()));
            let first = endpoint(&set, "h:1");
            let mut held = Vec::new();
            match case {
                1 => probe_out(&first),
                2 => last.failed(Failure::Reset, now_ms()),
                3 => held.extend((0..3).map(|_| first.enter())),
                _ => {}
            }
            let told = told(&set, how, client);
            let total: f64 = told.values().sum();
            let none = weights.len() == 1 && case == 1;
            assert!((total - f64::from(u8::from(!none))).abs() < 1e-9, "{how:?} {case} {told:?}");
            if how == LoadBalance::Hash {
                let chosen = set.choose(how, client).map(|endpoint| endpoint.url.to_string());
                let told = told.into_iter().find(|(_, chance)| *chance > 0.0);
                assert_eq!(told.map(|(url, _)| url), chosen, "{case} {weights:?}");
                continue;
            }
            let found = shares(&set, how, COUNT, &[]);
            for (url, chance) in told {
                let share = f64::from(found.get(&url).copied().unwrap_or_default());
                let share = share / f64::from(COUNT);
                let far = (share - chance).abs();
                assert!(far < 0.02, "{how:?} {case} {weights:?} {url}: {chance} is {share}");
            }
        }
    }
}

#[test]
fn who_only_looks_moves_nothing_on() {
    let (looked, alone) = (set(&[5, 1, 1]), set(&[5, 1, 1]));
    let client = IpAddr::from([10, 0, 0, 1]);
    for round in 0..20 {
        for how in ALL {
            let _ = looked.shares(how, client);
        }
        let next = looked.shares(LoadBalance::RoundRobin, client);
        let next: Vec<&str> =
            next.iter().filter(|share| share.next).map(|share| &*share.endpoint.url).collect();
        let chosen = |set: &UpstreamSet| {
            set.choose(LoadBalance::RoundRobin, client).unwrap().url.to_string()
        };
        let chosen = (chosen(&looked), chosen(&alone));
        assert_eq!(chosen.0, chosen.1, "round {round}");
        assert_eq!(next, [chosen.0], "round {round}: what is told to be the next is the next");
    }
    // The one place on trial is not taken by looking.
    let ejection = EjectionPolicy { after: 1, base: Duration::from_millis(1), max: HOUR };
    let registry =
        EndpointRegistry::new(EndpointOptions { ejection, ..EndpointOptions::default() });
    let set = set_in(&registry, &[upstream("h:1", 1, 0, ""), upstream("h:2", 1, 0, "")]);
    let ejected = endpoint(&set, "h:1");
    ejected.failed(Failure::Reset, 0);
    while now_ms() < 3 {
        std::thread::yield_now();
    }
    let before = ejected.state(0);
    for how in ALL {
        let told = set.shares(how, client);
        assert!(told.iter().all(|share| share.excluded.is_none()), "{how:?}: on trial");
        assert!(!told[0].next, "{how:?}: whether it gets the place nobody knows");
    }
    assert_eq!(ejected.state(0), before);
}

#[test]
fn what_is_left_out_of_a_set_has_a_reason() {
    let list = [
        upstream("h:1", 0, 0, ""),
        upstream("h:2", 50, 0, ""),
        upstream("h:3", 50, 1, ""),
        upstream("h:99999", 50, 0, ""),
    ];
    let told = |list: &[Upstream]| {
        let all = UpstreamSet::left_out(list, false);
        all.iter().map(|(one, why)| format!("{}: {why}", one.url)).collect::<Vec<_>>()
    };
    let found = told(&list);
    assert_eq!(found[..2], ["h:1: weight 0", "h:3: configured as down"]);
    assert!(found[2].starts_with("h:99999: url: "), "{found:?}");
    let gray = [upstream("h:1", 1, 0, r#"{"gray":"true"}"#), upstream("h:2", 1, 0, "")];
    assert_eq!(told(&gray), ["h:2: not gray, while others of the selector are"]);
    assert!(UpstreamSet::left_out(&list[1..2], false).is_empty());
}
