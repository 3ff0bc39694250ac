use std::sync::Arc;
use std::time::Instant;

use http::{HeaderMap, Request, Version};

use super::{apply, is_traceparent, request_id};
use crate::body::Body;
use crate::chain::{Connection, Edge, Forwarded, Inbound, RequestContext};

/// The request headers as they leave, `name: value`, sorted.
fn sent(edge: Edge, peer: &str, version: Version, headers: &[(&str, &str)]) -> Vec<String> {
    let peer = peer.parse().unwrap();
    let connection = Arc::new(Connection::new(peer, peer, Arc::new(edge)));
    let mut request = Request::builder().uri("/x").version(version);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (head, ()) = request.body(()).unwrap().into_parts();
    let mut inbound = Inbound::new(Body::empty(), connection, Instant::now());
    if inbound.connection.edge.wants_ids() {
        inbound.request_id = Some(request_id(&head.headers));
    }
    let mut cx = RequestContext::new(head, inbound, 0, tokio::runtime::Handle::current());
    apply(&mut cx);
    none_is_there_twice(&cx.head.headers);
    let lines = cx.head.headers.iter();
    let mut lines: Vec<String> =
        lines.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
    lines.sort();
    lines
}

/// No header of ours is ever there twice.
fn none_is_there_twice(headers: &HeaderMap) {
    for name in [
        "x-forwarded-for",
        "x-forwarded-proto",
        "x-forwarded-host",
        "via",
        "x-request-id",
        "traceparent",
    ] {
        assert!(headers.get_all(name).iter().count() <= 1, "{name}: {headers:?}");
    }
}

fn edge(forwarded: Forwarded) -> Edge {
    Edge { forwarded, trusted: ["10.0.0.0/8".parse().unwrap()].into(), ..Edge::default() }
}

#[tokio::test]
async fn forwarding_headers_by_mode_and_peer() {
    let theirs = &[
        ("host", "gw.test"),
        ("x-forwarded-for", "1.1.1.1"),
        ("x-forwarded-for", "10.1.1.1"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "shop.example"),
        ("forwarded", "for=1.1.1.1"),
        ("via", "1.0 fred"),
        ("via", "1.1 joe"),
    ][..];
    let v11 = Version::HTTP_11;
    let replaced = |peer: &str| {
        vec![
            "host: gw.test".to_owned(),
            "via: 1.1 longmen".into(),
            format!("x-forwarded-for: {peer}"),
            "x-forwarded-host: gw.test".into(),
            "x-forwarded-proto: http".into(),
        ]
    };
    assert_eq!(sent(edge(Forwarded::Replace), "10.0.0.1:5", v11, theirs), replaced("10.0.0.1"));
    assert_eq!(sent(edge(Forwarded::Append), "9.9.9.9:5", v11, theirs), replaced("9.9.9.9"));
    assert_eq!(
        sent(edge(Forwarded::Append), "10.0.0.1:5", v11, theirs),
        [
            "forwarded: for=1.1.1.1",
            "host: gw.test",
            "via: 1.0 fred, 1.1 joe, 1.1 longmen",
            "x-forwarded-for: 1.1.1.1, 10.1.1.1, 10.0.0.1",
            "x-forwarded-host: shop.example",
            "x-forwarded-proto: https",
        ]
    );
    assert_eq!(
        sent(edge(Forwarded::Append), "[::ffff:10.0.0.1]:5", Version::HTTP_2, &[("host", "h")]),
        [
            "host: h",
            "via: 2 longmen",
            "x-forwarded-for: 10.0.0.1",
            "x-forwarded-host: h",
            "x-forwarded-proto: http",
        ]
    );
}

#[tokio::test]
async fn off_means_untouched() {
    let theirs = &[
        ("x-forwarded-for", "1.1.1.1"),
        ("x-request-id", "their id"),
        ("traceparent", "nonsense"),
    ];
    let expected = ["traceparent: nonsense", "x-forwarded-for: 1.1.1.1", "x-request-id: their id"];
    assert_eq!(sent(edge(Forwarded::Off), "10.0.0.1:5", Version::HTTP_11, theirs), expected);
}

#[tokio::test]
async fn ids_are_kept_where_they_are_good_and_made_otherwise() {
    let edge = || Edge { id_upstream: true, ..Edge::default() };
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let v11 = Version::HTTP_11;
    let good = &[("x-request-id", "a-B_1.:+/=@"), ("traceparent", trace), ("tracestate", "x=1")];
    let kept = sent(edge(), "9.9.9.9:1", v11, good);
    let expected = [
        format!("traceparent: {trace}"),
        "tracestate: x=1".into(),
        "x-request-id: a-B_1.:+/=@".into(),
    ];
    assert_eq!(kept, expected);
    let long = "x".repeat(129);
    for bad in ["", "a b", "a\"b", "a,b", &long] {
        let made = sent(
            edge(),
            "9.9.9.9:1",
            v11,
            &[("x-request-id", bad), ("traceparent", "00"), ("tracestate", "x=1")],
        );
        assert_eq!(made.len(), 2, "tracestate belongs to the trace that is gone: {made:?}");
        let parent = made[0].strip_prefix("traceparent: ").unwrap();
        assert!(is_traceparent(parent.as_bytes()) && parent.ends_with("-01"), "{parent}");
        let id = made[1].strip_prefix("x-request-id: ").unwrap();
        assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    }
    let two = &[
        ("x-request-id", "a"),
        ("x-request-id", "b"),
        ("traceparent", trace),
        ("traceparent", trace),
    ];
    let made = sent(edge(), "9.9.9.9:1", v11, two);
    assert_eq!(made.len(), 2);
    assert!(
        !made[0].contains("0af7651916cd43dd8448eb211c80319c") && made[1].len() > 40,
        "{made:?}"
    );
}

#[test]
fn traceparents() {
    let (trace, parent) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
    for (value, valid) in [
        (format!("00-{trace}-{parent}-01"), true),
        (format!("00-{trace}-{parent}-00"), true),
        (format!("cc-{trace}-{parent}-01"), true),
        (format!("cc-{trace}-{parent}-01-more"), true),
        (format!("cc-{trace}-{parent}-01more"), false),
        (format!("00-{trace}-{parent}-01-more"), false),
        (format!("ff-{trace}-{parent}-01"), false),
        (format!("00-{}-{parent}-01", "0".repeat(32)), false),
        (format!("00-{trace}-{}-01", "0".repeat(16)), false),
        (format!("00-{}-{parent}-01", trace.to_uppercase()), false),
        (format!("00-{trace}-{parent}-0"), false),
        (format!("00_{trace}-{parent}-01"), false),
        (String::new(), false),
    ] {
        assert_eq!(is_traceparent(value.as_bytes()), valid, "{value}");
    }
}
