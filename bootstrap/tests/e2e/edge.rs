//! What upstreams are told about clients, and the filters in front of the plugins.

use crate::fed::fed;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forwarding_headers_and_ids_reach_the_upstream_by_mode() {
    let theirs = "X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-For: 2.2.2.2\r\nX-Forwarded-Proto: https\r\n\
                  Via: 1.1 a\r\nX-Request-Id: id-1\r\n";
    for (keys, forwarded_for, proto, host, via) in [
        ("  compat: shenyu\n", None, "https", None, "1.1 a"),
        ("  compat: standard\n", Some("127.0.0.1"), "http", Some("gw.test"), "1.1 longmen"),
        (
            "  compat: standard\n  forwarded:\n    trusted: 127.0.0.0/8\n",
            Some("1.1.1.1, 2.2.2.2, 127.0.0.1"),
            "https",
            Some("gw.test"),
            "1.1 a, 1.1 longmen",
        ),
        (
            "  forwarded:\n    mode: replace\n    trusted: 127.0.0.0/8\n",
            Some("127.0.0.1"),
            "http",
            Some("gw.test"),
            "1.1 longmen",
        ),
    ] {
        let fed = fed(keys, "{}").await;
        let answer = fed.ask("GET /x", theirs).await;
        assert_eq!(answer.status, 200, "{keys}: {answer:?}");
        if let Some(expected) = forwarded_for {
            assert_eq!(answer.echoed("x-forwarded-for").as_deref(), Some(expected), "{keys}");
        } else {
            let passed = answer.echoed("x-forwarded-for").unwrap();
            assert!(passed.contains("1.1.1.1") && passed.contains("2.2.2.2"), "{passed}");
        }
        assert_eq!(answer.echoed("x-forwarded-proto").as_deref(), Some(proto), "{keys}");
        assert_eq!(answer.echoed("x-forwarded-host").as_deref(), host, "{keys}");
        assert_eq!(answer.echoed("via").as_deref(), Some(via), "{keys}");
        // The client's own id passes either way; a trace is begun only where that is asked for.
        assert_eq!(answer.echoed("x-request-id").as_deref(), Some("id-1"), "{keys}");
        assert_eq!(answer.echoed("traceparent").is_some(), keys.contains("standard"), "{keys}");
        assert_eq!(answer.headers.get("x-request-id"), None, "not told to the client unasked");
        // Naming a header in Connection does not take it away.
        let lines = "Connection: x-forwarded-for, x-request-id, traceparent\r\n";
        let named = fed.ask("GET /x", lines).await;
        assert_eq!(named.echoed("x-forwarded-for").is_some(), forwarded_for.is_some(), "{keys}");
        fed.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_carry_the_id_where_that_is_asked_for() {
    let fed = fed("  compat: standard\n  requestId:\n    response: true\n", "{}").await;
    let answer = fed.ask("GET /x", "X-Request-Id: mine\r\n").await;
    assert_eq!(answer.headers["x-request-id"], "mine");
    let made = fed.ask("GET /x", "X-Request-Id: not good\r\n").await;
    assert_eq!(made.headers["x-request-id"].len(), 32);
    assert_eq!(made.echoed("x-request-id").as_ref(), Some(&made.headers["x-request-id"]));
    let refused = fed.ask("GET /a/../b", "X-Request-Id: mine\r\n").await;
    assert_eq!((refused.status, refused.headers["x-request-id"].as_str()), (400, "mine"));
    fed.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_of_get_and_queries_by_their_keys() {
    let with_body = b"GET /echo?a=1+2&b=%20 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\
                      Content-Length: 5\r\n\r\nhello";
    let chunked = b"GET /echo HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\
                    Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let dropped = fed("  compat: shenyu\n  normalizeQuery: true\n", "{}").await;
    let answer = dropped.raw(with_body).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, ""));
    assert_eq!(answer.headers["x-target"], "/echo?a=1%202&b=%20");
    let answer = dropped.raw(chunked).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, ""));
    dropped.stop().await;
    let forwarded = fed("  compat: standard\n", "{}").await;
    let answer = forwarded.raw(with_body).await;
    assert!(answer.status == 200 && answer.body.contains("hello"), "{answer:?}");
    assert_eq!(answer.headers["x-target"], "/echo?a=1+2&b=%20");
    assert!(forwarded.raw(chunked).await.body.contains("hello"));
    forwarded.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_origins_as_the_reference_answers_them() {
    let keys = "  compat: shenyu\n  cross:\n    enabled: true\n    allowedAnyOrigin: true\n    \
                allowCredentials: true\n";
    let fed = fed(keys, "{}").await;
    let origin = "Origin: http://other.example\r\n";
    let preflight = fed.ask("OPTIONS /none", origin).await;
    assert_eq!((preflight.status, preflight.body.as_str()), (200, ""));
    assert_eq!(preflight.headers["access-control-allow-origin"], "http://other.example");
    assert_eq!(preflight.headers["access-control-allow-methods"], "*");
    assert_eq!(preflight.headers["access-control-max-age"], "18000");
    assert_eq!(preflight.headers["access-control-allow-credentials"], "true");
    assert_eq!(preflight.headers["content-length"], "0");
    assert_eq!(fed.origin.requests(), 0, "a preflight is not forwarded");
    let get = fed.ask("GET /x", origin).await;
    assert_eq!(
        (get.status, get.headers["access-control-allow-origin"].as_str()),
        (200, "http://other.example")
    );
    let own = fed.ask("OPTIONS /x", "Origin: http://gw.test\r\n").await;
    assert_eq!(own.headers.get("access-control-allow-origin"), None);
    assert!(own.headers.contains_key("x-upstream"), "its own origin is an ordinary request");
    fed.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fixed_paths_and_slashes() {
    let keys = "  compat: shenyu\n  exclude:\n    enabled: true\n    paths: /favicon.ico\n  fallback:\n    \
                enabled: true\n    paths: /fallback/hystrix, /fallback/nothing\n  switchConfig:\n    \
                collapseSlashes: true\n";
    let fed = fed(keys, "{}").await;
    let favicon = fed.ask("GET /favicon.ico?x", "").await;
    assert_eq!((favicon.status, favicon.body.as_str()), (200, ""));
    let fallback = fed.ask("GET /fallback/hystrix", "").await;
    let expected = r#"{"code":429,"message":"HystrixPlugin fallback success, please check your service status!"}"#;
    assert_eq!((fallback.status, fallback.body.as_str()), (200, expected));
    let nothing = fed.ask("GET /fallback/nothing", "").await;
    let expected = r#"{"code":404,"message":"No static resource fallback/nothing."}"#;
    assert_eq!((nothing.status, nothing.body.as_str()), (404, expected));
    assert_eq!(fed.origin.requests(), 0);
    let collapsed = fed.ask("POST //echo///?a=//", "").await;
    assert_eq!(collapsed.headers.get("x-upstream").map(String::as_str), Some("U1"));
    assert!(collapsed.body.contains("\"/echo/?a=//\""), "{collapsed:?}");
    fed.stop().await;
}
