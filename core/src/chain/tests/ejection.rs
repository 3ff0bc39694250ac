//! Bad upstreams among good ones: what clients notice of them.

use std::time::Duration;

use super::upstreams::{Gateway, Manner, Scripted, closed};
use crate::chain::{CallOptions, DriverOptions};
use crate::error::ErrorStatus;
use crate::upstream::{EjectionPolicy, EndpointOptions, now_ms};

const HOUR: Duration = Duration::from_secs(3600);

fn ejecting(after: u32) -> EndpointOptions {
    let ejection = EjectionPolicy { after, base: HOUR, max: HOUR };
    EndpointOptions { ejection, ..EndpointOptions::default() }
}

fn shenyu() -> DriverOptions {
    DriverOptions { error_status: ErrorStatus::Shenyu, ..DriverOptions::default() }
}

#[tokio::test]
async fn a_dead_upstream_costs_a_few_requests_and_then_none() {
    let (dead, alive) = (closed(), Scripted::start("U2", Manner::Answer).await);
    let list = [(dead.address, 1), (alive.address, 1)];
    let rule = r#"{"loadBalance":"roundRobin"}"#;
    let gateway = Gateway::new(rule, &list, shenyu(), ejecting(5));
    let mut failed = 0;
    for _ in 0..100 {
        failed += u32::from(gateway.call("GET", "").await.0 != 200);
    }
    assert_eq!(failed, 5);
    let state = gateway.endpoint(dead.address).state(now_ms());
    assert!(!state.healthy() && state.ejected_for.is_some(), "{state}");
    assert!(gateway.endpoint(alive.address).state(now_ms()).healthy());
}

#[tokio::test]
async fn the_only_upstream_is_never_ejected() {
    let flaky = Scripted::start("U1", Manner::Close).await;
    let gateway = Gateway::new("{}", &[(flaky.address, 1)], shenyu(), ejecting(2));
    for _ in 0..10 {
        assert_eq!(gateway.call("GET", "").await.0, 500);
    }
    assert!(gateway.endpoint(flaky.address).state(now_ms()).healthy());
    flaky.behave(Manner::Answer);
    assert_eq!(gateway.call("GET", "").await.0, 200);
}

#[tokio::test]
async fn when_all_are_ejected_all_are_used_and_the_first_success_is_back() {
    let list = [
        Scripted::start("U1", Manner::Reset).await,
        Scripted::start("U2", Manner::Reset).await,
        Scripted::start("U3", Manner::Reset).await,
    ];
    let members: Vec<_> = list.iter().map(|upstream| (upstream.address, 1)).collect();
    let rule = r#"{"loadBalance":"roundRobin"}"#;
    let gateway = Gateway::new(rule, &members, shenyu(), ejecting(2));
    for _ in 0..30 {
        assert_eq!(gateway.call("GET", "").await.0, 500);
    }
    assert!(list.iter().all(|upstream| upstream.count() >= 5), "the last resort is all of them");
    list[1].behave(Manner::Answer);
    let answers = [
        gateway.call("GET", "").await,
        gateway.call("GET", "").await,
        gateway.call("GET", "").await,
    ];
    assert!(answers.iter().any(|(status, _)| *status == 200), "{answers:?}");
    let before = (list[0].count(), list[2].count());
    for _ in 0..10 {
        assert_eq!(gateway.call("GET", "").await.0, 200);
    }
    assert_eq!((list[0].count(), list[2].count()), before);
}

#[tokio::test]
async fn dead_slow_and_resetting_ones_among_four_are_not_noticed() {
    let dead = closed();
    let slow = Scripted::start("slow", Manner::Silent).await;
    let resetting = Scripted::start("resetting", Manner::Reset).await;
    let good = Scripted::start("good", Manner::Answer).await;
    let list = [(dead.address, 1), (slow.address, 1), (resetting.address, 1), (good.address, 1)];
    for balance in ["random", "roundRobin", "leastActive", "p2c", "shortestResponse"] {
        let rule =
            format!(r#"{{"retry":3,"failover":true,"timeout":60,"loadBalance":"{balance}"}}"#);
        let options = DriverOptions { calls: CallOptions::default(), ..shenyu() };
        let gateway = Gateway::new(&rule, &list, options, ejecting(2));
        for _ in 0..30 {
            let (status, body) = gateway.call("GET", "").await;
            assert_eq!(status, 200, "{balance}: {body}");
        }
        let (before_slow, before_resetting) = (slow.count(), resetting.count());
        for _ in 0..30 {
            assert_eq!(gateway.call("GET", "").await.0, 200, "{balance}");
        }
        // Those that a balancer has met often enough are out by now.
        let met = slow.count() - before_slow + resetting.count() - before_resetting;
        assert!(met <= 4, "{balance}: {met}");
    }
}

#[tokio::test]
async fn a_flapping_upstream_is_repeated_elsewhere() {
    let flapping = Scripted::start("flapping", Manner::Answer).await;
    let good = Scripted::start("good", Manner::Answer).await;
    let list = [(flapping.address, 1), (good.address, 1)];
    let rule = r#"{"retry":1,"failover":true,"loadBalance":"roundRobin"}"#;
    let gateway = Gateway::new(rule, &list, shenyu(), ejecting(5));
    for round in 0..40 {
        flapping.behave(if round % 8 < 2 { Manner::Reset } else { Manner::Answer });
        assert_eq!(gateway.call("PUT", "x").await.0, 200, "{round}");
    }
    assert!(flapping.count() > 10, "never out for long: it answers between");
}
