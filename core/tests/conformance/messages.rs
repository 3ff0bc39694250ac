//! Messages pass as they are, in both directions.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use http_body::Frame;
use http_body_util::BodyExt;
use longmen_core::body::Body;
use tokio::join;

use crate::support::origin::Origin;
use crate::support::{Rig, Strategy, get, pattern, post, read, request, streamed, text, within};

conformance! {
    methods_and_headers, bodies_with_length, bodies_of_unknown_length, request_trailers,
    answers_with_length, answers_in_chunks, answers_up_to_the_end, answer_trailers,
    answers_without_body, interim_answers, odd_statuses, odd_targets, nothing_is_added,
}

async fn methods_and_headers(strategy: Strategy) {
    let rig = Rig::new(strategy);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let mut conn = None;
    for method in ["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "PURGE"] {
        let mut sent = request(&endpoint, method, "/a/b?c=d&c=e", Body::empty());
        sent.headers_mut().append("x-twice", HeaderValue::from_static("2"));
        sent.headers_mut().append("x-twice", HeaderValue::from_static("1"));
        let upstream = async {
            let mut conn = match conn.take() {
                Some(conn) => conn,
                None => origin.accept().await,
            };
            let received = conn.request().await;
            conn.send(
                "HTTP/1.1 201 Made\r\nx-b: 1\r\nx-a: 2\r\nx-b: 3\r\ncontent-length: 0\r\n\r\n",
            )
            .await;
            (received, conn)
        };
        let (response, (received, used)) = join!(rig.send(&endpoint, sent), upstream);
        conn = Some(used);
        assert_eq!(received.line(), format!("{method} /a/b?c=d&c=e HTTP/1.1"));
        assert!(received.head.contains("x-twice: 2\r\nx-twice: 1"), "{}", received.head);
        assert_eq!(received.header("host"), Some(&*origin.url()));
        let response = response.unwrap();
        assert_eq!(response.status(), 201);
        let b: Vec<_> = response.headers().get_all("x-b").iter().collect();
        assert_eq!(b, ["1", "3"]);
        assert_eq!(read(response).await.unwrap(), "");
    }
    let stats = rig.stats();
    assert_eq!((stats.opened, stats.reused), (1, 6), "{stats:?}");
    assert_eq!(stats.target_rewritten, 0);
}

async fn bodies_with_length(strategy: Strategy) {
    let rig = Rig::new(strategy);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    for length in [0, 1, 1 << 10, 5 << 20] {
        let body = pattern(length);
        let mut sent = post(&endpoint, "/", body.clone());
        sent.headers_mut().insert("content-length", length.into());
        let upstream = async {
            let mut conn = origin.accept().await;
            let received = conn.request().await;
            conn.send("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").await;
            received
        };
        let (response, received) = join!(rig.send(&endpoint, sent), upstream);
        assert_eq!(response.unwrap().status(), 200);
        assert_eq!(received.header("content-length"), Some(&*length.to_string()));
        assert_eq!(received.header("transfer-encoding"), None);
        assert!(received.body == body, "{length} bytes");
    }
}

async fn bodies_of_unknown_length(strategy: Strategy) {
    let rig = Rig::new(strategy);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let (frames, body) = streamed();
    let sent = request(&endpoint, "POST", "/", body);
    let sending = async move {
        for part in ["one", "two", "three"] {
            frames.send(Ok(Frame::data(Bytes::from(part)))).await.unwrap();
        }
    };
    let upstream = async {
        let mut conn = origin.accept().await;
        let received = conn.request().await;
        conn.answer("ok").await;
        received
    };
    let (response, received, ()) = join!(rig.send(&endpoint, sent), upstream, sending);
    assert_eq!(text(response.unwrap()).await, "ok");
    assert_eq!(received.header("transfer-encoding"), Some("chunked"));
    assert_eq!(received.header("content-length"), None);
    assert_eq!(received.body, b"onetwothree");
}

async fn request_trailers(strategy: Strategy) {
    let rig = Rig::new(strategy);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let (frames, body) = streamed();
    let mut sent = request(&endpoint, "POST", "/", body);
    sent.headers_mut().insert("trailer", HeaderValue::from_static("x-sum"));
    let sending = async move {
        frames.send(Ok(Frame::data(Bytes::from("data")))).await.unwrap();
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", HeaderValue::from_static("42"));
        frames.send(Ok(Frame::trailers(trailers))).await.unwrap();
    };
    let upstream = async {
        let mut conn = origin.accept().await;
        let received = conn.request().await;
        conn.answer("ok").await;
        received
    };
    let (response, received, ()) = join!(rig.send(&endpoint, sent), upstream, sending);
    assert_eq!(text(response.unwrap()).await, "ok");
    assert_eq!((&*received.body, &*received.trailers), (&b"data"[..], "x-sum: 42\n"));
}

/// Sends a GET, and answers it with bytes; the connection stays open while what is returned lives.
async fn answered(rig: &Rig, bytes: &[u8]) -> (http::Response<Body>, impl Sized + use<>) {
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let sent = get(&endpoint, "/");
    let bytes = bytes.to_vec();
    let upstream = async {
        let mut conn = origin.accept().await;
        conn.request().await;
        tokio::spawn(async move {
            conn.send(&bytes).await;
            conn
        })
    };
    let (response, writing) = join!(async { rig.send(&endpoint, sent).await.unwrap() }, upstream);
    (response, (writing, origin))
}

async fn answers_with_length(strategy: Strategy) {
    for length in [0, 1 << 10, 5 << 20] {
        let rig = Rig::new(strategy);
        let body = pattern(length);
        let mut bytes = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n").into_bytes();
        bytes.extend_from_slice(&body);
        let (response, _held) = answered(&rig, &bytes).await;
        assert_eq!(response.headers()["content-length"], length.to_string());
        assert!(read(response).await.unwrap() == body, "{length} bytes");
        rig.until_unused().await;
        assert_eq!(rig.stats().idle, u64::from(rig.is_hyper()));
    }
}

async fn answers_in_chunks(strategy: Strategy) {
    let rig = Rig::new(strategy);
    let bytes = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
        3;ext=1\r\nabc\r\n5\r\ndefgh\r\n0\r\n\r\n";
    let (response, _held) = answered(&rig, bytes).await;
    assert_eq!(text(response).await, "abcdefgh");
    rig.until_unused().await;
    assert_eq!(rig.stats().idle, u64::from(rig.is_hyper()));
}

async fn answers_up_to_the_end(strategy: Strategy) {
    let rig = Rig::new(strategy);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let body = pattern(100_000);
    let upstream = async {
        let mut conn = origin.accept().await;
        conn.request().await;
        conn.send("HTTP/1.1 200 OK\r\n\r\n").await;
        conn.send(&body).await;
        conn.close();
    };
    let client = async { read(rig.send(&endpoint, get(&endpoint, "/")).await.unwrap()).await };
    let (received, ()) = join!(client, upstream);
    assert!(received.unwrap() == body);
    rig.until_unused().await;
    assert_eq!(rig.stats().idle, 0, "an end of the connection is no place to go on");
}

async fn answer_trailers(strategy: Strategy) {
    let rig = Rig::new(strategy);
    let bytes = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n\
        3\r\nabc\r\n0\r\nx-sum: 42\r\n\r\n";
    let (response, _held) = answered(&rig, bytes).await;
    let collected = within(response.into_body().collect()).await.unwrap();
    assert_eq!(collected.trailers().unwrap()["x-sum"], "42");
    assert_eq!(collected.to_bytes(), "abc");
}

async fn answers_without_body(strategy: Strategy) {
    let rig = Rig::new(strategy);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let cases = [
        ("HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n"),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", "HTTP/1.1 304 Not Modified\r\netag: \"a\"\r\n\r\n"),
        ("HEAD", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"),
    ];
    let upstream = async {
        let mut conn = origin.accept().await;
        for (method, answer) in cases {
            assert!(conn.request().await.line().starts_with(method));
            conn.send(answer).await;
        }
    };
    let client = async {
        for (method, answer) in cases {
            let sent = request(&endpoint, method, "/", Body::empty());
            let response = rig.send(&endpoint, sent).await.unwrap();
            assert!(answer.contains(response.status().as_str()));
            if answer.contains("content-length") {
                assert_eq!(response.headers()["content-length"], "1000");
            }
            assert_eq!(read(response).await.unwrap(), "");
        }
    };
    join!(client, upstream);
    assert_eq!((rig.stats().opened, rig.stats().reused), (1, 3));
}

async fn interim_answers(strategy: Strategy) {
    let rig = Rig::new(strategy);
    let bytes = b"HTTP/1.1 100 Continue\r\n\r\n\
        HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n\
        HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    let (response, _held) = answered(&rig, bytes).await;
    assert_eq!(response.status(), 200);
    assert!(!response.headers().contains_key("link"));
    assert_eq!(text(response).await, "ok");
}

async fn odd_statuses(strategy: Strategy) {
    for (line, status, words_expected) in [
        ("HTTP/1.1 799 Odd", 799, Some(&b"Odd"[..])),
        ("HTTP/1.0 200 OK", 200, None),
        ("HTTP/1.1 500 ", 500, Some(&b""[..])),
    ] {
        let rig = Rig::new(strategy);
        let bytes = format!("{line}\r\ncontent-length: 2\r\n\r\nok");
        let (response, _held) = answered(&rig, bytes.as_bytes()).await;
        assert_eq!(response.status().as_u16(), status);
        let words = response.extensions().get::<::hyper::ext::ReasonPhrase>();
        assert_eq!(words.map(::hyper::ext::ReasonPhrase::as_bytes), words_expected);
        assert_eq!(text(response).await, "ok");
    }
}

async fn odd_targets(strategy: Strategy) {
    let targets = [
        ("/api/%2e%2e/admin", true),
        ("/a/../b", true),
        ("/a/./b", true),
        ("/p?a='x'", true),
        ("/p/\"x\"", true),
        ("/p?q={a}|b", false),
        ("/p/{id}", true),
        ("/p/%zz?%", false),
        ("/p//q", false),
        ("/p?", false),
        ("/p??a=1&&b", false),
        ("/p;v=1", false),
        ("/p?a=%41+b%2B", false),
        ("/p?u=http://x.y/z", false),
        ("/%E4%B8%AD?%e4", false),
        ("*", true),
        ("//host/p", false),
    ];
    let rig = Rig::new(strategy);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let mut rewritten = 0;
    for (target, by_raw) in targets {
        let mut sent = get(&endpoint, "/");
        let target_of_chain = http::uri::PathAndQuery::try_from(target).unwrap();
        *sent.uri_mut() = http::Uri::from(target_of_chain);
        sent.headers_mut().insert("connection", HeaderValue::from_static("close"));
        let upstream = async {
            let mut conn = origin.accept().await;
            let received = conn.request().await;
            conn.send("HTTP/1.1 204 No\r\nconnection: close\r\n\r\n").await;
            received
        };
        let (response, received) = join!(rig.send(&endpoint, sent), upstream);
        assert_eq!(response.unwrap().status(), 204, "{target}");
        assert_eq!(received.line(), format!("GET {target} HTTP/1.1"));
        rewritten += u64::from(by_raw && !rig.is_hyper());
        assert_eq!(rig.stats().target_rewritten, rewritten, "{target}");
    }
}

async fn nothing_is_added(strategy: Strategy) {
    let rig = Rig::new(strategy);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    for (method, accept) in [("GET", true), ("GET", false), ("POST", true), ("DELETE", true)] {
        let mut sent = request(&endpoint, method, "/", Body::empty());
        if !accept {
            sent.headers_mut().remove("accept");
        }
        let upstream = async {
            let mut conn = origin.accept().await;
            let received = conn.request().await;
            conn.send("HTTP/1.1 204 No\r\nconnection: close\r\n\r\n").await;
            received
        };
        let (response, received) = join!(rig.send(&endpoint, sent), upstream);
        response.unwrap();
        let accept = if accept { "\r\naccept: */*" } else { "" };
        let expected = format!("{method} / HTTP/1.1\r\nhost: {}{accept}", origin.url());
        // hyper tells of an empty body where a method usually has one.
        let head = received.head.replace("\r\ncontent-length: 0", "");
        assert_eq!(head, expected);
    }
    assert_eq!(rig.stats().target_rewritten, u64::from(!rig.is_hyper()));
}
