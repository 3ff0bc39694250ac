//! What the log says of upstreams that fail, and how often.

use bytes::Bytes;
use http_body_util::BodyExt;

use super::harness::Harness;
use super::upstreams::{Gateway, LIMIT, Manner, Scripted, closed};
use crate::chain::{CallOptions, DriverOptions};
use crate::test_util::LogLines;
use crate::upstream::EndpointOptions;

fn options() -> DriverOptions {
    let brief = std::time::Duration::from_millis(100);
    let calls = CallOptions { upstream_body_idle: Some(brief), ..CallOptions::default() };
    DriverOptions { calls, ..DriverOptions::default() }
}

#[tokio::test]
async fn each_failing_upstream_is_named_once_at_first_however_many_requests_fail() {
    let lines = LogLines::default();
    let _guard = tracing::subscriber::set_default(lines.subscriber());
    let (dead, closing) = (closed(), Scripted::start("closing", Manner::Close).await);
    let good = Scripted::start("good", Manner::Answer).await;
    let list = [(dead.address, 1), (closing.address, 1), (good.address, 1)];
    let gateway = Gateway::new(
        r#"{"loadBalance":"roundRobin"}"#,
        &list,
        options(),
        EndpointOptions { ejection: never(), ..EndpointOptions::default() },
    );
    for _ in 0..60 {
        gateway.call("GET", "").await;
    }
    let text = lines.text();
    let warned = |upstream: &Scripted| {
        let address = format!("http://{}", upstream.address);
        lines
            .text()
            .lines()
            .filter(|line| line.contains(" WARN ") && line.contains(&address))
            .count()
    };
    assert_eq!(lines.count(" WARN "), 2, "{text}");
    assert_eq!(warned(&closing), 1, "{text}");
    assert_eq!(warned(&good), 0, "{text}");
    assert_eq!(lines.count("upstream failed: upstream_connect: "), 1, "{text}");
    assert_eq!(lines.count("upstream failed: upstream_reset: "), 1, "{text}");
}

#[tokio::test]
async fn slow_garbled_and_broken_answers_are_told_too() {
    for (manner, rule, reason) in [
        (Manner::Silent, r#"{"timeout":50}"#, "upstream_timeout"),
        (Manner::Reset, "{}", "upstream_reset"),
        (Manner::HalfHead, "{}", "upstream_reset"),
        (Manner::Stall, "{}", "upstream_body_timeout"),
    ] {
        let lines = LogLines::default();
        let _guard = tracing::subscriber::set_default(lines.subscriber());
        let upstream = Scripted::start("U", manner).await;
        let gateway =
            Gateway::new(rule, &[(upstream.address, 1)], options(), EndpointOptions::default());
        for _ in 0..3 {
            let request = Harness::request("GET", "/a", Bytes::new());
            let exchange =
                async { gateway.driver.serve(request).await.into_body().collect().await };
            // Whether it comes to its end or breaks off.
            let _ = tokio::time::timeout(LIMIT, exchange).await.expect("in time");
        }
        let text = lines.text();
        assert_eq!(lines.count(&format!("upstream failed: {reason}: ")), 1, "{manner:?}: {text}");
        assert_eq!(lines.count(" WARN "), 1, "{manner:?}: {text}");
    }
}

fn never() -> crate::upstream::EjectionPolicy {
    crate::upstream::EjectionPolicy { after: 0, ..Default::default() }
}
