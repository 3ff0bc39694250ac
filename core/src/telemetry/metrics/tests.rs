use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use super::Metrics;
use crate::chain::{Completion, Outcome};
use crate::error::Reason;
use crate::model::Upstream;
use crate::upstream::{Endpoint, EndpointRegistry, Failure, now_ms};

fn endpoint(registry: &EndpointRegistry, selector: &str, url: &str) -> Arc<Endpoint> {
    let upstream = Upstream { url: url.into(), weight: 1, ..Upstream::default() };
    registry.endpoint(selector, &upstream, &Arc::default()).unwrap()
}

fn over(status: u16, reason: Option<Reason>) -> Completion {
    let mut completion = Completion::empty();
    completion.outcome = Outcome::Finished;
    completion.status = Some(StatusCode::from_u16(status).unwrap());
    completion.reason = reason;
    completion.elapsed = Duration::from_millis(2);
    completion.response_bytes = 10;
    completion
}

fn has(text: &str, line: &str) {
    assert!(text.lines().any(|have| have == line), "no line {line:?} in\n{text}");
}

#[test]
fn the_workers_are_added_up() {
    let metrics = Metrics::new(2, 1000);
    let (one, two) = (metrics.worker(), metrics.worker());
    for worker in [&one, &two, &two] {
        worker.begun();
        worker.over(&over(200, None), true);
    }
    one.begun();
    two.over(&over(404, Some(Reason::SelectorNotFound)), false);
    two.over(&over(799, None), false);
    let text = metrics.scrape();
    has(&text, "longmen_http_requests_total{status_class=\"2xx\"} 3");
    has(&text, "longmen_http_requests_total{status_class=\"4xx\"} 1");
    has(&text, "longmen_http_requests_total{status_class=\"5xx\"} 1");
    has(&text, "longmen_http_requests_failed_total{reason=\"selector_not_found\"} 1");
    has(&text, "longmen_http_requests_in_flight 1");
    has(&text, "longmen_http_sent_bytes_total 50");
    has(&text, "longmen_http_request_duration_seconds_count 5");
    has(&text, "longmen_http_request_duration_seconds_bucket{le=\"0.001\"} 0");
    has(&text, "longmen_http_request_duration_seconds_bucket{le=\"0.0025\"} 5");
    has(&text, "longmen_http_request_duration_seconds_bucket{le=\"+Inf\"} 5");
    has(&text, "# TYPE longmen_http_requests_total counter");
    assert!(text.ends_with('\n'));
}

#[test]
fn upstreams_come_with_their_first_attempt_and_go_with_their_endpoint() {
    let metrics = Metrics::new(1, 1000);
    let worker = metrics.worker();
    let registry = EndpointRegistry::default();
    let a = endpoint(&registry, "s1", "10.0.0.1:80");
    let idle = endpoint(&registry, "s1", "10.0.0.2:80");
    worker.attempted(&a, Duration::from_millis(3), Some(StatusCode::OK));
    worker.attempted(&a, Duration::from_millis(3), None);
    let labels = "selector=\"s1\",upstream=\"http://10.0.0.1:80\"";
    let text = metrics.scrape();
    has(&text, &format!("longmen_upstream_attempts_total{{{labels},status_class=\"2xx\"}} 1"));
    has(&text, &format!("longmen_upstream_attempts_total{{{labels},status_class=\"none\"}} 1"));
    has(&text, &format!("longmen_upstream_failures_total{{{labels}}} 1"));
    has(&text, &format!("longmen_upstream_response_seconds_bucket{{{labels},le=\"0.005\"}} 2"));
    assert!(!text.contains("10.0.0.2"), "no series without an attempt");
    drop((a, idle));
    assert!(!metrics.scrape().contains("10.0.0.1"), "removed with the upstream");
}

#[test]
fn past_the_most_series_the_rest_is_other() {
    let metrics = Metrics::new(1, 2 * super::upstream::SERIES_EACH);
    let worker = metrics.worker();
    let registry = EndpointRegistry::default();
    let held: Vec<_> =
        (0..5).map(|n| endpoint(&registry, "s", &format!("10.0.0.{n}:80"))).collect();
    for endpoint in &held {
        worker.attempted(endpoint, Duration::from_millis(1), Some(StatusCode::OK));
    }
    let text = metrics.scrape();
    let series = text.lines().filter(|line| line.starts_with("longmen_upstream_attempts_total{"));
    assert_eq!(series.count(), 3);
    has(
        &text,
        "longmen_upstream_attempts_total{selector=\"other\",upstream=\"other\",status_class=\"2xx\"} 3",
    );
}

#[test]
fn states_are_read_at_the_scrape_and_added_up_past_the_most() {
    let metrics = Metrics::new(1, 2 * super::upstream::SERIES_EACH);
    let registry = EndpointRegistry::default();
    metrics.states(registry.clone());
    let list: Vec<_> =
        (1..=4).map(|port| endpoint(&registry, "s", &format!("10.0.0.1:{port}"))).collect();
    let _busy = (list[0].enter(), list[0].enter(), list[3].enter());
    for _ in 0..5 {
        list[1].failed(Failure::Reset, now_ms());
    }
    let text = metrics.scrape();
    for (name, first, second, other) in [
        ("healthy", 1, 0, 2),
        ("ejected", 0, 1, 0),
        ("probed_out", 0, 0, 0),
        ("warming_up", 1, 1, 2),
        ("requests_in_flight", 2, 0, 1),
    ] {
        let name = format!("longmen_upstream_{name}");
        has(&text, &format!("# TYPE {name} gauge"));
        let of = |upstream: &str| {
            format!("{name}{{selector=\"s\",upstream=\"http://10.0.0.1:{upstream}\"}}")
        };
        has(&text, &format!("{} {first}", of("1")));
        has(&text, &format!("{} {second}", of("2")));
        has(&text, &format!("{name}{{selector=\"other\",upstream=\"other\"}} {other}"));
        assert!(!text.contains(&of("3")), "{text}");
    }
    drop((_busy, list));
    assert!(!metrics.scrape().contains("10.0.0.1"), "gone with their endpoints");
}
