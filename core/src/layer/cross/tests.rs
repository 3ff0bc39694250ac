use std::sync::Arc;
use std::time::Instant;

use http::{Request, Response, StatusCode};
use tower::{Layer, Service, service_fn};

use super::{CrossLayer, CrossOptions, CrossRules};
use crate::body::Body;
use crate::chain::{Connection, Edge, Inbound};
use crate::error::{ErrorStatus, Fault, GatewayError, Reason};

const ALWAYS: &str = "authorization,Authorization,credential,X-XSRF-TOKEN,x-requested-with,client,\
                      ShenYu-Authorization,Content-Type,token,username";

fn stock() -> CrossOptions {
    CrossOptions {
        any_origin: true,
        credentials: true,
        methods: vec!["*".into()],
        max_age_seconds: 18_000,
        ..CrossOptions::default()
    }
}

fn request(method: &str, origin: Option<&str>, edge: Edge) -> Request<Inbound> {
    let any = "10.0.0.1:1".parse().unwrap();
    let connection = Arc::new(Connection::new(any, any, Arc::new(edge)));
    let mut request = Request::builder().method(method).uri("/x").header("host", "gw.test");
    if let Some(origin) = origin {
        request = request.header("origin", origin);
    }
    request.body(Inbound::new(Body::empty(), connection, Instant::now())).unwrap()
}

/// The answer through the layer; the upstream answers 201 with the given headers.
async fn through(
    options: &CrossOptions,
    request: Request<Inbound>,
    upstream: &'static [(&'static str, &'static str)],
) -> (u16, Vec<String>) {
    let rules = Some(Arc::new(CrossRules::new(options).unwrap()));
    let inner = service_fn(move |_: Request<Inbound>| async move {
        let mut response = Response::builder().status(StatusCode::CREATED);
        for (name, value) in upstream {
            response = response.header(*name, *value);
        }
        Ok::<_, GatewayError>(response.body(Body::empty()).unwrap())
    });
    let mut layered = CrossLayer::new(rules, ErrorStatus::Shenyu).layer(inner);
    let response = layered.call(request).await.unwrap();
    let lines = response.headers().iter();
    let lines = lines.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()));
    (response.status().as_u16(), lines.collect())
}

fn lines(origin: &str) -> Vec<String> {
    [
        &format!("access-control-allow-origin: {origin}"),
        "access-control-allow-methods: *",
        "access-control-max-age: 18000",
        &format!("access-control-allow-headers: {ALWAYS}"),
        "access-control-allow-credentials: true",
    ]
    .map(str::to_owned)
    .into()
}

#[tokio::test]
async fn answers_are_those_of_the_reference() {
    let origin = "http://other.example";
    let ask = |method, origin| request(method, origin, Edge::default());
    // The preflight: the request itself is not forwarded.
    let (status, got) = through(&stock(), ask("OPTIONS", Some(origin)), &[]).await;
    let mut expected = lines(origin);
    expected.push("content-length: 0".into());
    assert_eq!((status, got), (200, expected));
    // Another method: forwarded, headers in front.
    let (status, got) = through(&stock(), ask("GET", Some(origin)), &[("x-a", "1")]).await;
    let mut expected = lines(origin);
    expected.push("x-a: 1".into());
    assert_eq!((status, got), (201, expected));
    // No origin, the own origin in several spellings: as if there were no filter.
    for own in [None, Some("http://gw.test"), Some("http://GW.test:80")] {
        for method in ["GET", "OPTIONS"] {
            assert_eq!(through(&stock(), ask(method, own), &[]).await, (201, vec![]), "{own:?}");
        }
    }
    // The upstream's own headers win.
    let own = &[
        ("access-control-allow-origin", "*"),
        ("access-control-allow-methods", "GET"),
        ("set-cookie", "a=1"),
        ("set-cookie", "b=2"),
    ][..];
    let (_, got) = through(&stock(), ask("GET", Some(origin)), own).await;
    let mut expected = lines(origin).split_off(2);
    expected.extend(own.iter().map(|(name, value)| format!("{name}: {value}")));
    assert_eq!(got, expected);
}

#[tokio::test]
async fn only_allowed_origins_get_headers() {
    let options = |origins: &[&str], pattern: Option<&str>| CrossOptions {
        origins: origins.iter().map(|&origin| origin.to_owned()).collect(),
        pattern: pattern.map(str::to_owned),
        ..CrossOptions::default()
    };
    for (origins, pattern, origin, allowed) in [
        (&[][..], None, "http://a.example", false),
        (&["*"], None, "http://a.example", true),
        (&["http://a.example"], None, "http://a.example", true),
        (&["a.example"], None, "http://a.example", true),
        (&["a.example"], None, "https://a.example", false),
        (&["a.example"], None, "http://b.a.example", false),
        (&[], Some(r"https?://.*\.example"), "https://b.example", true),
        (&[], Some(r"https?://.*\.example"), "https://b.example.evil", false),
        (&[], Some("a|b"), "ab", false),
        (&["a.example"], None, "null", false),
    ] {
        let options = options(origins, pattern);
        let (status, got) =
            through(&options, request("OPTIONS", Some(origin), Edge::default()), &[]).await;
        assert_eq!(status, 200, "a preflight is answered either way");
        assert_eq!(got.len() > 1, allowed, "{origins:?} {pattern:?} {origin}: {got:?}");
        let (status, got) =
            through(&options, request("GET", Some(origin), Edge::default()), &[]).await;
        assert_eq!((status, !got.is_empty()), (201, allowed), "{origin}");
    }
}

#[tokio::test]
async fn behind_a_trusted_proxy_the_scheme_is_the_clients() {
    let edge = || Edge { trusted: ["10.0.0.0/8".parse().unwrap()].into(), ..Edge::default() };
    let mut behind = request("GET", Some("https://gw.test"), edge());
    behind.headers_mut().insert("x-forwarded-proto", "https".parse().unwrap());
    assert_eq!(through(&stock(), behind, &[]).await, (201, vec![]), "its own origin");
    let mut untrusted = request("GET", Some("https://gw.test"), Edge::default());
    untrusted.headers_mut().insert("x-forwarded-proto", "https".parse().unwrap());
    assert_eq!(through(&stock(), untrusted, &[]).await.1.len(), 5);
}

#[tokio::test]
async fn refusals_carry_the_headers_too() {
    let rules = Some(Arc::new(CrossRules::new(&stock()).unwrap()));
    let refusing = service_fn(|_: Request<Inbound>| async {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Err::<Response<Body>, _>(GatewayError::new(
            Fault::Gateway,
            Reason::Overloaded,
            status,
            "full",
        ))
    });
    let mut layered = CrossLayer::new(rules, ErrorStatus::Shenyu).layer(refusing);
    let response = layered.call(request("GET", Some("http://a"), Edge::default())).await.unwrap();
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["access-control-allow-origin"], "http://a");
}
