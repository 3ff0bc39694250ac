//! Attempts, retries and their answers, against upstreams on real sockets.

use std::time::Duration;

use bytes::Bytes;

use super::harness::Harness;
use super::upstreams::{
    Gateway, LIMIT, Manner, STRATEGIES, Scripted, Strategy, closed, digest, pieces,
};
use crate::chain::{CallOptions, DriverOptions, NotRetried};
use crate::error::{ErrorStatus, Reason};
use crate::upstream::{EjectionPolicy, EndpointOptions};

const LATE_SHENYU: &str = r#"{"code":408,"message":"Request timeout, the maximum number of retry times has been exceeded"}"#;
const ERROR_SHENYU: &str = r#"{"code":500,"message":"Internal Server Error"}"#;
const NONE_LEFT: &str =
    r#"{"code":503,"message":"CANNOT_FIND_HEALTHY_UPSTREAM_URL_AFTER_FAILOVER"}"#;

fn shenyu() -> DriverOptions {
    DriverOptions { error_status: ErrorStatus::Shenyu, ..DriverOptions::default() }
}

fn standard() -> DriverOptions {
    DriverOptions::default()
}

/// Nothing is ejected: what is tested is each request for itself.
fn no_ejection() -> EndpointOptions {
    let ejection = EjectionPolicy { after: 0, ..EjectionPolicy::default() };
    EndpointOptions { ejection, ..EndpointOptions::default() }
}

fn gateway(
    proxy: &str,
    upstreams: &[(std::net::SocketAddr, i32)],
    options: DriverOptions,
) -> Gateway {
    Gateway::new(proxy, upstreams, options, no_ejection())
}

#[tokio::test]
async fn current_repeats_a_time_out_on_the_same_upstream() {
    let rule = r#"{"retry":2,"timeout":100}"#;
    for (options, answer) in [(shenyu(), (408, LATE_SHENYU)), (standard(), (504, "upstream took"))]
    {
        let silent = Scripted::start("U1", Manner::Silent).await;
        let gateway = gateway(rule, &[(silent.address, 1)], options);
        let (status, body) = gateway.call("GET", "").await;
        assert_eq!(status, answer.0);
        assert!(body.contains(answer.1), "{body}");
        assert_eq!(silent.count(), 3);
        let (status, _) = gateway.call("PUT", "hello").await;
        assert_eq!(status, answer.0);
        let bodies: Vec<_> = silent.seen()[3..].iter().map(|seen| seen.body.clone()).collect();
        assert_eq!(bodies, vec![b"hello".to_vec(); 3], "each attempt with its body");
        let (status, _) = gateway.call("POST", "hello").await;
        assert_eq!((status, silent.count()), (answer.0, 7), "a POST is sent once");
        let ends = gateway.watch.ends();
        assert_eq!((ends[0].0, ends[0].1), (Some(Reason::UpstreamTimeout), None));
        assert_eq!(ends[2].1, Some(NotRetried::Method));
    }
}

#[tokio::test]
async fn an_upstream_that_recovers_within_the_retries_answers() {
    let flapping = Scripted::start("U1", Manner::Silent).await;
    let rule = r#"{"retry":3,"timeout":150}"#;
    let gateway = gateway(rule, &[(flapping.address, 1)], shenyu());
    let calling = gateway.call("GET", "");
    let recovering = async {
        flapping.until_seen(2).await;
        flapping.behave(Manner::Answer);
    };
    let ((status, body), ()) = tokio::join!(calling, recovering);
    assert_eq!((status, body), (200, format!("U1 GET {}", digest(b""))));
}

#[tokio::test]
async fn an_answer_is_never_repeated_whatever_its_status() {
    let busy = Scripted::start("U1", Manner::Unavailable).await;
    for rule in [r#"{"retry":3}"#, r#"{"retry":3,"failover":true}"#] {
        let before = busy.count();
        let gateway = gateway(rule, &[(busy.address, 1)], shenyu());
        assert_eq!(gateway.call("GET", "").await, (503, String::new()));
        assert_eq!(busy.count() - before, 1);
    }
}

#[tokio::test]
async fn failover_with_nobody_left_and_with_the_last_one_late() {
    let (one, two) =
        (Scripted::start("U1", Manner::Silent).await, Scripted::start("U2", Manner::Silent).await);
    let rule = |retry| format!(r#"{{"retry":{retry},"failover":true,"timeout":100}}"#);
    for (options, late) in
        [(shenyu(), "Response took longer than timeout: PT0.1S"), (standard(), "")]
    {
        let alone = gateway(&rule(1), &[(one.address, 1)], options.clone());
        assert_eq!(alone.call("GET", "").await, (503, NONE_LEFT.to_owned()));
        assert_eq!(alone.watch.ends()[0].0, Some(Reason::NoUpstreamLeft));
        let once = gateway(&rule(0), &[(one.address, 1)], options.clone());
        let (status, body) = once.call("GET", "").await;
        assert_eq!(status, 504);
        assert!(body.contains(late), "{body}");
        let both = gateway(&rule(1), &[(one.address, 1), (two.address, 1)], options.clone());
        let (first, second) = (one.count(), two.count());
        let (status, body) = both.call("GET", "").await;
        assert_eq!((status, one.count() - first, two.count() - second), (504, 1, 1));
        assert!(body.contains(late), "{body}");
        let posted = gateway(&rule(1), &[(one.address, 1), (two.address, 1)], options);
        let before = one.count() + two.count();
        assert_eq!(posted.call("POST", "x").await.0, 504);
        assert_eq!(one.count() + two.count() - before, 1, "it may have been processed");
    }
}

#[tokio::test]
async fn a_refused_connection_costs_nothing_where_another_upstream_is_there() {
    let (dead, alive) = (closed(), Scripted::start("U2", Manner::Answer).await);
    let both = [(dead.address, 1_000_000), (alive.address, 1)];
    for (rule, options) in [
        (r#"{"retry":1,"failover":true}"#, shenyu()),
        (r#"{"retry":1,"failover":true}"#, standard()),
        (r#"{"retry":1}"#, standard()),
    ] {
        for strategy in STRATEGIES {
            let gateway = Gateway::by(strategy, rule, &both, options.clone(), no_ejection());
            for method in ["GET", "POST"] {
                let expected = format!("U2 {method} {}", digest(b"hello"));
                let answer = gateway.call(method, "hello").await;
                assert_eq!(answer, (200, expected), "{strategy:?} {rule}");
            }
            let host = format!("host: {}", alive.address);
            assert!(alive.seen().iter().all(|seen| seen.head.contains(&host)));
            let streamed = Harness::streaming("POST", "/a", pieces(&[7; 300_000]));
            let (status, _, body) = gateway.send(streamed).await;
            let expected = (200, format!("U2 POST {}", digest(&[7; 300_000])));
            assert_eq!((status.as_u16(), body), expected, "{strategy:?} {rule}");
        }
    }
}

#[tokio::test]
async fn a_refused_connection_under_current_is_answered_as_the_mode_says() {
    let (dead, alive) = (closed(), Scripted::start("U2", Manner::Answer).await);
    let both = [(dead.address, 1_000_000), (alive.address, 1)];
    let compatible = gateway(r#"{"retry":2}"#, &both, shenyu());
    assert_eq!(compatible.call("GET", "").await, (500, ERROR_SHENYU.to_owned()));
    assert_eq!(alive.count(), 0);
    let alone = gateway(r#"{"retry":2}"#, &both[..1], standard());
    assert_eq!(alone.call("GET", "").await.0, 502);
    let none = gateway(r#"{"retry":2,"failover":true}"#, &both[..1], shenyu());
    assert_eq!(none.call("GET", "").await, (503, NONE_LEFT.to_owned()));
    let ends = compatible.watch.ends();
    assert_eq!(ends[0], (Some(Reason::UpstreamConnect), None, Some(dead.address.to_string())));
}

#[tokio::test]
async fn a_connection_that_ends_without_an_answer() {
    for manner in [Manner::Close, Manner::Reset, Manner::HalfHead] {
        let (bad, good) =
            (Scripted::start("U1", manner).await, Scripted::start("U2", Manner::Answer).await);
        let both = [(bad.address, 1_000_000), (good.address, 1)];
        let current = gateway(r#"{"retry":2}"#, &both, shenyu());
        assert_eq!(current.call("GET", "").await, (500, ERROR_SHENYU.to_owned()), "{manner:?}");
        assert_eq!((bad.count(), good.count()), (1, 0), "{manner:?}: one attempt");
        let failover = gateway(r#"{"retry":2,"failover":true}"#, &both, standard());
        let answer = failover.call("PUT", "x").await;
        assert_eq!(answer, (200, format!("U2 PUT {}", digest(b"x"))), "{manner:?}");
        let (posted, _) = failover.call("POST", "x").await;
        assert_eq!((posted, good.count()), (502, 1), "{manner:?}: a POST is sent once");
        let allowed = CallOptions { retry_non_idempotent: true, ..CallOptions::default() };
        let options = DriverOptions { calls: allowed, ..standard() };
        let twice = gateway(r#"{"retry":2,"failover":true}"#, &both, options);
        assert_eq!(twice.call("POST", "x").await.0, 200, "{manner:?}");
    }
}

const KEPT: usize = 64 * 1024;

/// One request with a body, of which the first upstream reads all and says nothing.
async fn repeated(strategy: Strategy, method: &str, size: usize, announced: bool) {
    let (bad, good) =
        (Scripted::start("U1", Manner::Close).await, Scripted::start("U2", Manner::Answer).await);
    let allowed = CallOptions { retry_non_idempotent: true, ..CallOptions::default() };
    let options = DriverOptions { calls: allowed, ..standard() };
    let both = [(bad.address, 1_000_000), (good.address, 1)];
    let rule = r#"{"retry":2,"failover":true}"#;
    let gateway = Gateway::by(strategy, rule, &both, options, no_ejection());
    let bytes: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
    let mut request = Harness::streaming(method, "/a", pieces(&bytes));
    if announced {
        request.headers_mut().insert("content-length", size.into());
    }
    let (status, _, body) = gateway.send(request).await;
    let what = format!("{strategy:?} {method} {size} {announced}: {body}");
    if size <= KEPT {
        assert_eq!(status.as_u16(), 200, "{what}");
        assert_eq!(body, format!("U2 {method} {}", digest(&bytes)), "{what}");
        assert!(bad.seen().iter().all(|seen| seen.body == bytes), "{what}");
    } else {
        assert_eq!((status.as_u16(), good.count()), (502, 0), "{what}");
        assert_eq!(gateway.watch.ends()[0].1, Some(NotRetried::Body), "{what}");
    }
}

#[tokio::test]
async fn a_second_attempt_has_the_whole_body_or_there_is_none() {
    for strategy in STRATEGIES {
        for size in [0, 1024, KEPT, KEPT + 1, 200 * 1024, 5 * 1024 * 1024] {
            for announced in [true, false] {
                for method in ["PUT", "POST"] {
                    repeated(strategy, method, size, announced).await;
                }
            }
        }
    }
}

#[tokio::test]
async fn failover_passes_over_all_that_were_tried() {
    let (first, second) = (closed(), closed());
    let alive = Scripted::start("U3", Manner::Answer).await;
    let list = [(first.address, 1), (second.address, 1), (alive.address, 1)];
    for balance in ["random", "roundRobin", "hash", "leastActive", "p2c", "shortestResponse"] {
        let rule = format!(r#"{{"retry":2,"failover":true,"loadBalance":"{balance}"}}"#);
        let gateway = gateway(&rule, &list, shenyu());
        for _ in 0..3 {
            assert_eq!(gateway.call("GET", "").await.0, 200, "{balance}");
        }
    }
}

#[tokio::test]
async fn used_up_retries_are_none_and_the_completion_says_so() {
    let (bad, good) =
        (Scripted::start("U1", Manner::Close).await, Scripted::start("U2", Manner::Answer).await);
    let both = [(bad.address, 1_000_000), (good.address, 1)];
    let gateway = gateway(r#"{"retry":1,"failover":true}"#, &both, standard());
    let mut statuses = Vec::new();
    while statuses.last() != Some(&502) {
        assert!(statuses.len() < 10_000, "there is no end to the retries");
        statuses.push(gateway.call("GET", "").await.0);
    }
    let granted = statuses.len() - 1;
    assert!(granted >= 10, "the reserve: {granted}");
    assert_eq!(good.count(), granted);
    let end = gateway.watch.ends().pop().unwrap();
    let expected = (Some(Reason::UpstreamReset), Some(NotRetried::Budget));
    assert_eq!((end.0, end.1), expected);
}

#[tokio::test]
async fn an_upstream_at_its_limit_refuses_at_once_or_another_takes_over() {
    let (slow, other) =
        (Scripted::start("U1", Manner::Silent).await, Scripted::start("U2", Manner::Answer).await);
    let limited = EndpointOptions { max_in_flight: 1, ..no_ejection() };
    let both = [(slow.address, 1_000_000), (other.address, 1)];
    let options = CallOptions { replay_bytes: 0, ..CallOptions::default() };
    let options = DriverOptions { calls: options, ..shenyu() };
    for (rule, expected) in [
        (r#"{"retry":1}"#, 503),
        (r#"{"retry":1,"failover":true}"#, 200),
        (r#"{"failover":true}"#, 503),
    ] {
        let gateway = Gateway::new(rule, &both, options.clone(), limited);
        let before = slow.count();
        let first = gateway.driver.clone();
        let held =
            tokio::spawn(
                async move { first.serve(Harness::request("GET", "/a", Bytes::new())).await },
            );
        slow.until_seen(before + 1).await;
        let (status, body) = gateway.call("POST", "x").await;
        assert_eq!(status, expected, "{rule}: {body}");
        if expected == 503 {
            assert_eq!(gateway.watch.ends()[0].0, Some(Reason::UpstreamOverloaded));
        }
        held.abort();
        let _ = held.await;
        assert_eq!(gateway.endpoint(slow.address).in_flight(), 0, "the client left");
    }
}

#[tokio::test]
async fn what_is_under_way_is_counted_to_the_end_of_the_body() {
    let stalling = Scripted::start("U1", Manner::Stall).await;
    let gateway = gateway("{}", &[(stalling.address, 1)], standard());
    let endpoint = gateway.endpoint(stalling.address);
    let response = gateway.driver.serve(Harness::request("GET", "/a", Bytes::new())).await;
    assert_eq!(endpoint.in_flight(), 1);
    drop(response);
    assert_eq!(endpoint.in_flight(), 0);
    stalling.behave(Manner::Answer);
    assert_eq!(gateway.call("GET", "").await.0, 200);
    assert_eq!(endpoint.in_flight(), 0);
}

#[tokio::test]
async fn a_client_that_leaves_during_a_wait_leaves_nothing_behind() {
    let silent = Scripted::start("U1", Manner::Silent).await;
    let gateway = gateway(r#"{"retry":50,"timeout":20}"#, &[(silent.address, 1)], shenyu());
    let driver = gateway.driver.clone();
    let calling =
        tokio::spawn(
            async move { driver.serve(Harness::request("GET", "/a", Bytes::new())).await },
        );
    silent.until_seen(3).await;
    calling.abort();
    let _ = tokio::time::timeout(LIMIT, calling).await.unwrap();
    assert_eq!(gateway.endpoint(silent.address).in_flight(), 0);
    let completions = gateway.watch.completions();
    assert_eq!(completions.len(), 1);
    assert!(completions[0].starts_with("ClientGone"), "{completions:?}");
    let count = silent.count();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(silent.count() <= count + 1, "no attempt for a client that is gone");
}
