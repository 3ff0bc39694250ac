//! Time limits of bodies and of whole requests.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::BodyExt;

use super::harness::Harness;
use super::upstreams::{Gateway, LIMIT, Manner, Scripted, feed};
use crate::chain::{CallOptions, DriverOptions};
use crate::error::{ErrorStatus, Reason};
use crate::upstream::EndpointOptions;

const SHORT: Duration = Duration::from_millis(100);

fn gateway(upstream: &Scripted, calls: CallOptions, error_status: ErrorStatus) -> Gateway {
    let options = DriverOptions { calls, error_status, ..DriverOptions::default() };
    Gateway::new("{}", &[(upstream.address, 1)], options, EndpointOptions::default())
}

#[tokio::test]
async fn an_upstream_body_that_stands_still_is_cut_off() {
    let stalling = Scripted::start("U1", Manner::Stall).await;
    let calls = CallOptions { upstream_body_idle: Some(SHORT), ..CallOptions::default() };
    let gateway = gateway(&stalling, calls, ErrorStatus::Standard);
    let response = gateway.driver.serve(Harness::request("GET", "/a", Bytes::new())).await;
    assert_eq!(response.status(), 200);
    let read = tokio::time::timeout(LIMIT, response.into_body().collect()).await.unwrap();
    assert!(read.is_err(), "a cut body must not look whole");
    assert_eq!(gateway.watch.ends()[0].0, Some(Reason::UpstreamBodyTimeout));
    assert!(gateway.watch.completions()[0].starts_with("Failed 200"));
    assert_eq!(gateway.endpoint(stalling.address).in_flight(), 0);
}

#[tokio::test]
async fn a_client_that_stops_sending_is_told_so_whatever_reads_its_body() {
    for mode in [ErrorStatus::Shenyu, ErrorStatus::Standard] {
        let upstream = Scripted::start("U1", Manner::Answer).await;
        let calls = CallOptions { client_body_idle: Some(SHORT), ..CallOptions::default() };
        let gateway = gateway(&upstream, calls, mode);
        let (sender, body) = feed();
        sender.send(Bytes::from_static(b"begun")).await.unwrap();
        let (status, headers, text) = gateway.send(Harness::streaming("POST", "/a", body)).await;
        assert_eq!(status, 408, "{text}");
        assert_eq!(headers["connection"], "close");
        assert_eq!(gateway.watch.ends()[0].0, Some(Reason::ClientBodyTimeout));
        let state = gateway.endpoint(upstream.address).state(crate::upstream::now_ms());
        assert_eq!((state.failures, upstream.count()), (0, 0), "not the upstream's fault");
    }
}

#[tokio::test]
async fn a_client_that_sends_slowly_but_steadily_is_served() {
    let upstream = Scripted::start("U1", Manner::Answer).await;
    let calls = CallOptions { client_body_idle: Some(LIMIT), ..CallOptions::default() };
    let gateway = gateway(&upstream, calls, ErrorStatus::Standard);
    let (sender, body) = feed();
    let sending = async move {
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            sender.send(Bytes::from_static(b"12345")).await.unwrap();
        }
    };
    let ((status, ..), ()) =
        tokio::join!(gateway.send(Harness::streaming("POST", "/a", body)), sending);
    assert_eq!((status.as_u16(), upstream.seen()[0].body.len()), (200, 25));
}

#[tokio::test]
async fn a_request_has_an_end_before_and_after_its_head() {
    let calls = CallOptions { total: Some(SHORT), ..CallOptions::default() };
    let silent = Scripted::start("U1", Manner::Silent).await;
    let gateway_of = |upstream: &Scripted| gateway(upstream, calls, ErrorStatus::Shenyu);
    let gateway = gateway_of(&silent);
    let started = Instant::now();
    let (status, body) = gateway.call("GET", "").await;
    assert_eq!(status, 504, "{body}");
    assert!(started.elapsed() >= SHORT && started.elapsed() < Duration::from_secs(4));
    assert_eq!(gateway.watch.ends()[0].0, Some(Reason::TotalTimeout));
    assert_eq!(gateway.endpoint(silent.address).in_flight(), 0);
    silent.behave(Manner::Stall);
    let gateway = gateway_of(&silent);
    let response = gateway.driver.serve(Harness::request("GET", "/a", Bytes::new())).await;
    let read = tokio::time::timeout(LIMIT, response.into_body().collect()).await.unwrap();
    assert!(read.is_err());
    assert_eq!(gateway.watch.ends()[0].0, Some(Reason::TotalTimeout));
}
