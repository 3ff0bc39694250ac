//! What goes through must stay what it is: targets, headers, framing (C-15, C-16, C-17, C-21, C-22).

use longmen_benchmark::raw::{Then, header_values};

use super::{Field, STRATEGIES, bytes_then, ok, only_target, upstream};
use crate::standard::{objects, routed};
use crate::support::LIMIT;

const DIVIDE: &str = r#"{"loadBalance":"roundRobin","retry":0,"timeout":3000}"#;

/// C-15 and C-16: targets that must arrive as they were sent.
const TARGETS: &[&str] = &[
    "/e?key=%E7%94%B5",
    "/e/%E7%94%B5/x",
    "/e?u=http%3A%2F%2Fh%2Fp%3Fa%3D1%26b%3D2",
    "/e?status=[abc%2Cdef]&x={y}|z",
    "/e?p=a%2Bb%3D",
    "/e?p=a+b",
    "/e?p=a%20b&p=&q&&r=%26",
    "/e?bad=%zz",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c15_c16_escapes_arrive_as_they_were_sent() {
    let echo = upstream(|_| ok("")).await;
    let address = echo.address().to_string();
    let plain = routed(&address);
    let mut stripped = plain.clone();
    let cut = r#"{"contextPath":"/ctx"}"#;
    stripped.sequence.extend(objects("contextPath", "/ctx", "", cut));
    let mut rewritten = plain.clone();
    let replace = r#"{"regex":"^/old/","replace":"/"}"#;
    rewritten.sequence.extend(objects("rewrite", "/old", "", replace));
    for (manners, prefix) in [(plain, ""), (stripped, "/ctx"), (rewritten, "/old")] {
        for strategy in STRATEGIES {
            let field = Field::start(manners.clone(), strategy).await;
            for (method, target) in TARGETS.iter().flat_map(|t| [("GET", t), ("POST", t)]) {
                let request = format!("{method} {prefix}{target} HTTP/1.1\r\nHost: h\r\n\r\n");
                let answer = field.send(&request).await;
                assert_eq!(answer.status(), 200, "{request}");
                assert_eq!(only_target(&echo), *target, "behind {prefix:?}");
            }
            field.stop().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c15_a_rewritten_path_with_a_query_gets_the_clients_behind_it() {
    let echo = upstream(|_| ok("")).await;
    let mut manners = routed(&echo.address().to_string());
    let replace = r#"{"regex":"^/old$","replace":"/new?k=v"}"#;
    manners.sequence.extend(objects("rewrite", "/old", "", replace));
    let field = Field::start(manners, "").await;
    for (sent, expected) in [("/old?a=%2B", "/new?k=v&a=%2B"), ("/old", "/new?k=v")] {
        field.send(&format!("GET {sent} HTTP/1.1\r\nHost: h\r\n\r\n")).await;
        assert_eq!(only_target(&echo), expected);
    }
    field.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c17_answers_have_each_header_once() {
    let origin = upstream(|_| {
        let text = "HTTP/1.1 200 OK\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nServer: up/1\r\nSet-Cookie: a=1; Path=/\r\n\
            Set-Cookie: b=2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
        bytes_then(text, Then::Keep)
    })
    .await;
    let field = Field::start(routed(&origin.address().to_string()), "").await;
    let answer = field.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
    assert_eq!((answer.status(), answer.body.as_slice()), (200, &b"hi"[..]));
    assert_eq!(answer.header("set-cookie"), ["a=1; Path=/", "b=2"]);
    assert_eq!(answer.header("date"), ["Mon, 01 Jan 2024 00:00:00 GMT"]);
    assert_eq!(answer.header("server"), ["up/1"]);
    assert_eq!(answer.header("transfer-encoding"), ["chunked"]);
    assert!(answer.header("content-length").is_empty());
    field.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c21_two_framings_never_smuggle_a_request() {
    let origin = upstream(|_| ok("")).await;
    let field = Field::start(routed(&origin.address().to_string()), "").await;
    let hidden = "0\r\n\r\nGET /admin HTTP/1.1\r\nHost: t\r\n\r\n";
    for (framing, version) in [
        ("Content-Length: 13\r\nTransfer-Encoding: chunked", "1.1"),
        ("Transfer-Encoding: chunked\r\nContent-Length: 13", "1.1"),
        ("Content-Length: 13\r\nTransfer-Encoding: chunked, identity", "1.1"),
        ("Content-Length: 13\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "1.1"),
        ("Content-Length: 13\r\nTransfer-Encoding:\tchunked", "1.1"),
        ("Content-Length: 13\r\nTransfer-Encoding : chunked", "1.1"),
        ("Content-Length: 13\r\nTransfer-Encoding: xchunked", "1.1"),
        ("Content-Length: 13\r\nTransfer-Encoding: chunked", "1.0"),
    ] {
        let mut client = field.connect().await;
        let request = format!("POST /p HTTP/{version}\r\nHost: t\r\n{framing}\r\n\r\n{hidden}");
        client.send(request.as_bytes()).await;
        let answer = client.answer(false).await;
        assert!(matches!(answer.status(), 200 | 400), "{framing}: {}", answer.status());
        assert!(client.closed().await, "{framing}: the connection stays open");
        assert!(origin.quiet(LIMIT).await);
        for received in origin.take() {
            assert!(!received.line().contains("/admin"), "{framing}: smuggled");
            let names: Vec<String> =
                header_values(&received.head).into_iter().map(|(name, _)| name).collect();
            assert!(!names.contains(&"content-length".to_owned()), "{framing}: {names:?}");
        }
    }
    field.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c22_nothing_behind_an_upgrade_request_goes_raw() {
    let origin = upstream(|request| {
        let upgrade = header_values(&request.head).iter().any(|(name, _)| name == "upgrade");
        assert!(!upgrade || request.line().contains("/ws"), "{}", request.line());
        ok("plain")
    })
    .await;
    let address = origin.address().to_string();
    let mut manners = routed(&address);
    manners.sequence.extend(objects("websocket", "/ws", &address, DIVIDE));
    let field = Field::start(manners, "").await;
    let mut client = field.connect().await;
    client
        .send(
            b"GET /h/ok HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: foo\r\n\r\n\
              GET /h/../secret HTTP/1.1\r\nHost: h\r\n\r\n",
        )
        .await;
    assert_eq!(client.answer(false).await.status(), 200);
    assert_eq!(client.answer(false).await.status(), 400, "the second request was parsed here");
    assert_eq!(only_target(&origin), "/h/ok");
    let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    for (what, path, headers, expected) in [
        (
            "h2c",
            "/h",
            "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n".into(),
            &[200][..],
        ),
        ("no key", "/ws", format!("{upgrade}Sec-WebSocket-Version: 13\r\n"), &[400]),
        ("old version", "/ws", format!("{upgrade}{key}Sec-WebSocket-Version: 12\r\n"), &[426]),
        (
            "the upstream answers 200",
            "/ws",
            format!("{upgrade}{key}Sec-WebSocket-Version: 13\r\n"),
            &[200, 502],
        ),
        ("no websocket route, no key", "/h", upgrade.to_owned(), &[400]),
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\n{headers}\r\n");
        let status = field.send(&request).await.status();
        assert!(expected.contains(&status), "{what}: {status}");
    }
    field.stop().await;
}

/// HTTP/2 clients send cookies in several fields; an HTTP/1.1 upstream must get one line.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cookies_of_http2_are_one_line() {
    let origin = upstream(|_| ok("")).await;
    let field = Field::start(routed(&origin.address().to_string()), "").await;
    let client = reqwest::Client::builder()
        .no_proxy()
        .http2_prior_knowledge()
        .timeout(LIMIT)
        .build()
        .unwrap();
    let answer = client
        .get(format!("http://{}/h2", field.gateway.address))
        .header("cookie", "a=1")
        .header("cookie", "b=2; c=3")
        .header("cookie", "d=4")
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 200);
    let received = origin.take();
    let cookies: Vec<String> = header_values(&received[0].head)
        .into_iter()
        .filter(|(name, _)| name == "cookie")
        .map(|(_, value)| String::from_utf8_lossy(&value).into_owned())
        .collect();
    assert_eq!(cookies, ["a=1; b=2; c=3; d=4"]);
    field.stop().await;
}
