//! The state machine, by the clock of the test.

use std::time::Duration;

use super::{Change, EjectionPolicy, Failure, Health, ProbeRule, Standing};

const POLICY: EjectionPolicy =
    EjectionPolicy { after: 3, base: Duration::from_secs(10), max: Duration::from_secs(60) };

const RULE: ProbeRule = ProbeRule { interval: Duration::from_secs(1), healthy: 1, unhealthy: 1 };

fn fail(health: &Health, now: u64) -> Option<Change> {
    health.failed(Failure::Connect, now, &POLICY)
}

fn ejected(change: Option<Change>) -> Duration {
    match change {
        Some(Change::Ejected(time)) => time,
        other => panic!("not ejected but {other:?}"),
    }
}

/// A tenth less at most.
fn about(time: Duration, seconds: u64) -> bool {
    time <= Duration::from_secs(seconds) && time >= Duration::from_secs(seconds).mul_f64(0.9)
}

#[test]
fn failures_in_a_row_eject_and_a_success_between_starts_over() {
    let health = Health::default();
    assert_eq!((fail(&health, 1), fail(&health, 2)), (None, None));
    assert_eq!(health.succeeded(), None);
    assert_eq!((fail(&health, 3), fail(&health, 4)), (None, None));
    assert_eq!(health.standing(4), Standing::In);
    assert!(about(ejected(fail(&health, 5)), 10));
    assert_eq!(health.standing(6), Standing::Ejected);
    let off = EjectionPolicy { after: 0, ..POLICY };
    let never = Health::default();
    for now in 1..100 {
        assert_eq!(never.failed(Failure::Reset, now, &off), None);
    }
    assert_eq!(never.standing(100), Standing::In);
}

#[test]
fn one_request_tries_when_the_time_is_over_and_fails_longer_each_time() {
    let health = Health::default();
    for now in 1..3 {
        fail(&health, now);
    }
    ejected(fail(&health, 3));
    assert_eq!(fail(&health, 5000), None, "what was under way says nothing new");
    assert!(!health.claim(5000, &POLICY), "its time is not over");
    let mut now = 10_004;
    for expected in [20, 40, 60, 60] {
        assert_eq!(health.standing(now), Standing::Trial);
        assert!(health.claim(now, &POLICY));
        assert!(!health.claim(now, &POLICY), "one at a time");
        assert_eq!(health.standing(now + 1), Standing::Ejected);
        assert!(about(ejected(fail(&health, now + 1)), expected), "{expected}");
        now += expected * 1000 + 1;
    }
    assert!(health.claim(now, &POLICY));
    assert_eq!(health.succeeded(), Some(Change::Returned));
    assert_eq!((health.standing(now), health.failures()), (Standing::In, 0));
    // Ejected again soon after: as long as before. Long after: from the start.
    fail(&health, now + 1);
    fail(&health, now + 2);
    assert!(about(ejected(fail(&health, now + 3)), 60));
    health.succeeded();
    now += 10_000_000;
    fail(&health, now);
    fail(&health, now);
    assert!(about(ejected(fail(&health, now)), 10));
}

#[test]
fn a_trial_nobody_reports_on_is_given_to_another() {
    let health = Health::default();
    for now in 1..=3 {
        fail(&health, now);
    }
    assert!(health.claim(20_000, &POLICY));
    assert_eq!(health.standing(29_999), Standing::Ejected);
    assert_eq!(health.standing(30_000), Standing::Trial);
    assert!(health.claim(30_000, &POLICY));
}

#[test]
fn a_probe_brings_back_what_could_not_be_connected_and_nothing_else() {
    let health = Health::default();
    for now in 1..=3 {
        fail(&health, now);
    }
    assert!(health.awaits_probe());
    assert_eq!(health.probed_ejected(false, 9_500, &POLICY), None);
    assert_eq!(health.standing(19_000), Standing::Ejected, "put off by the failed probe");
    assert_eq!(health.probed_ejected(true, 19_100, &POLICY), Some(Change::Returned));
    assert_eq!(health.standing(19_100), Standing::In);
    let resetting = Health::default();
    for now in 1..=3 {
        resetting.failed(Failure::Reset, now, &POLICY);
    }
    assert!(!resetting.awaits_probe());
    assert_eq!(resetting.probed_ejected(true, 5, &POLICY), None);
    assert_eq!(resetting.standing(5), Standing::Ejected);
}

#[test]
fn with_the_defaults_one_probe_decides() {
    let health = Health::default();
    assert_eq!(health.probed(true, 1000, &RULE), None);
    assert_eq!(health.probed(false, 2000, &RULE), Some(Change::ProbedOut));
    assert_eq!(health.standing(2000), Standing::Out);
    assert_eq!(health.probed(false, 3000, &RULE), None);
    assert_eq!(health.probed(true, 4000, &RULE), Some(Change::ProbedIn));
    assert_eq!(health.standing(4000), Standing::In);
}

#[test]
fn thresholds_are_intervals_without_the_opposite() {
    let rule = ProbeRule { healthy: 3, unhealthy: 2, ..RULE };
    let health = Health::default();
    health.probed(true, 1000, &rule);
    assert_eq!(health.probed(false, 2000, &rule), None, "one interval without a success");
    assert_eq!(health.probed(true, 3000, &rule), None);
    assert_eq!(health.probed(false, 4000, &rule), None);
    assert_eq!(health.probed(false, 5000, &rule), Some(Change::ProbedOut));
    assert_eq!(health.probed(true, 6000, &rule), None);
    assert_eq!(health.probed(true, 7000, &rule), None);
    assert_eq!(health.probed(true, 8000, &rule), Some(Change::ProbedIn));
}

#[test]
fn what_never_passed_a_probe_is_out_at_the_first_failure() {
    let rule = ProbeRule { unhealthy: 9, ..RULE };
    let health = Health::default();
    assert_eq!(health.standing(1), Standing::In, "used until the first probe");
    assert_eq!(health.probed(false, 3000, &rule), Some(Change::ProbedOut));
    assert_eq!(health.unwatched(), Some(Change::ProbedIn));
    assert_eq!(health.standing(3001), Standing::In);
}

#[test]
fn out_wins_over_ejected_and_coming_in_forgets_the_failures() {
    let health = Health::default();
    health.probed(true, 1, &RULE);
    for now in 1..=3 {
        fail(&health, now);
    }
    health.probed(false, 2000, &RULE);
    assert_eq!(health.standing(2001), Standing::Out);
    assert!(!health.claim(99_000, &POLICY));
    assert_eq!(health.probed(true, 3000, &RULE), Some(Change::ProbedIn));
    assert_eq!(health.standing(3001), Standing::In);
}
