//! Upstreams that break the protocol, and clients that break theirs.

use bytes::Bytes;
use http_body::Frame;
use http_body_util::BodyExt;
use longmen_core::body::BodyError;
use longmen_core::error::{ErrorStatus, Fault, Reason, Retry};
use longmen_core::upstream::ClientOptions;
use tokio::join;

use crate::support::origin::Origin;
use crate::support::{Rig, Strategy, error, get, read, request, streamed, text, within};

conformance! {
    truncated_answers, answers_that_are_not_http, no_answer_at_all, refused_connections,
    heads_over_the_limit, bytes_beyond_the_answer, switches_that_nobody_asked_for,
    transfer_codings_that_nobody_undoes, other_connections_of_a_refused_answer, broken_request_bodies, request_bodies_over_a_limit,
}

/// Sends a GET to an upstream that writes these bytes and closes.
async fn told(rig: &Rig, bytes: &[u8]) -> Result<Bytes, Reason> {
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let upstream = async {
        let mut conn = origin.accept().await;
        conn.request().await;
        conn.send(bytes).await;
        conn.close();
    };
    let client = async {
        match rig.send(&endpoint, get(&endpoint, "/")).await {
            Ok(response) => read(response).await.map_err(|error| {
                assert!(matches!(error, BodyError::Transport(_) | BodyError::Upstream(_)));
                Reason::UpstreamReset
            }),
            Err(failure) => {
                assert_eq!(failure.error.fault(), Fault::Upstream);
                assert_eq!(failure.error.retry(), Retry::IfIdempotent);
                assert_eq!(failure.error.status(ErrorStatus::Standard), 502);
                Err(failure.error.reason())
            }
        }
    };
    let (result, ()) = join!(client, upstream);
    assert!(!origin.has_another().await, "a fresh connection is tried once");
    rig.until_unused().await;
    result
}

async fn truncated_answers(strategy: Strategy) {
    for bytes in [
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabcde\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ] {
        let rig = Rig::new(strategy);
        assert_eq!(told(&rig, bytes.as_bytes()).await, Err(Reason::UpstreamReset), "{bytes:?}");
        assert_eq!(rig.stats().idle, 0, "{bytes:?}");
    }
}

async fn answers_that_are_not_http(strategy: Strategy) {
    for bytes in [
        "garbage\r\n\r\n",
        "HTTP/1.1 abc OK\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n",
        "HTTP/1.1 200 OK\r\nbroken header\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx",
    ] {
        let rig = Rig::new(strategy);
        assert_eq!(told(&rig, bytes.as_bytes()).await, Err(Reason::UpstreamProtocol), "{bytes:?}");
    }
}

async fn no_answer_at_all(strategy: Strategy) {
    for bytes in ["", "HTTP/1.1 200 OK\r\ncontent-le", "HTTP/1.1 100 Continue\r\n\r\n"] {
        let rig = Rig::new(strategy);
        assert_eq!(told(&rig, bytes.as_bytes()).await, Err(Reason::UpstreamReset), "{bytes:?}");
    }
}

async fn refused_connections(strategy: Strategy) {
    let rig = Rig::new(strategy);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    drop(origin);
    let (frames, body) = streamed();
    let failure = rig.send(&endpoint, request(&endpoint, "POST", "/", body)).await.unwrap_err();
    assert_eq!(failure.error.reason(), Reason::UpstreamConnect);
    assert_eq!(failure.error.retry(), Retry::Safe);
    let stats = rig.stats();
    assert_eq!((stats.opened, stats.in_use), (0, 0));
    assert_eq!(stats.failures(longmen_core::upstream::ConnectFailure::Connect), 1);
    // The request comes back whole, so that another upstream can have it.
    let back = failure.request.expect("nothing was sent");
    assert_eq!(back.headers()["accept"], "*/*");
    frames.send(Ok(Frame::data(Bytes::from("all of it")))).await.unwrap();
    drop(frames);
    assert_eq!(within(back.into_body().collect()).await.unwrap().to_bytes(), "all of it");
}

async fn heads_over_the_limit(strategy: Strategy) {
    for (value, good) in [(7_000, true), (9_000, false), (1_000_000, false)] {
        let options =
            ClientOptions { max_response_header_bytes: 8 << 10, ..ClientOptions::default() };
        let rig = Rig::with(strategy, options);
        let origin = Origin::new().await;
        let endpoint = rig.endpoint(&origin.url());
        let upstream = async {
            let mut conn = origin.accept().await;
            conn.request().await;
            let head = format!(
                "HTTP/1.1 200 OK\r\nx: {}\r\ncontent-length: 2\r\n\r\nok",
                "v".repeat(value)
            );
            // The client may close while this is being written.
            tokio::spawn(async move {
                let _ =
                    tokio::io::AsyncWriteExt::write_all(&mut conn.stream, head.as_bytes()).await;
                conn.closed().await;
            });
        };
        let (result, ()) = join!(rig.send(&endpoint, get(&endpoint, "/")), upstream);
        match result {
            Ok(response) => {
                assert!(good, "{value} bytes");
                assert_eq!(text(response).await, "ok");
            }
            Err(failure) => {
                assert!(!good, "{value} bytes");
                assert_eq!(failure.error.reason(), Reason::UpstreamProtocol);
            }
        }
        rig.until_unused().await;
    }
}

async fn bytes_beyond_the_answer(strategy: Strategy) {
    for beyond in ["HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison", "\0garbage"] {
        let rig = Rig::new(strategy);
        let origin = Origin::new().await;
        let endpoint = rig.endpoint(&origin.url());
        let upstream = async {
            let mut conn = origin.accept().await;
            conn.request().await;
            conn.send(format!("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ngood{beyond}")).await;
            // It is this connection that is closed.
            conn.closed().await;
        };
        let client = async { text(rig.send(&endpoint, get(&endpoint, "/1")).await.unwrap()).await };
        assert_eq!(join!(client, upstream).0, "good");
        let upstream = async {
            let mut conn = origin.accept().await;
            assert_eq!(conn.request().await.line(), "GET /2 HTTP/1.1");
            conn.answer("second").await;
        };
        let client = async { text(rig.send(&endpoint, get(&endpoint, "/2")).await.unwrap()).await };
        assert_eq!(join!(client, upstream).0, "second");
    }
}

/// An upstream answers so, and would serve another request on that connection; says what came of it,
/// and of a request after it, which must go out on a connection of its own.
async fn refused_and_closed(strategy: Strategy, answer: &str) {
    let rig = Rig::new(strategy);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let upstream = async {
        let mut conn = origin.accept().await;
        conn.request().await;
        conn.send(answer).await;
        conn
    };
    let (result, mut first) = join!(rig.send(&endpoint, get(&endpoint, "/1")), upstream);
    let error = error(result);
    assert_eq!((error.fault(), error.reason()), (Fault::Upstream, Reason::UpstreamProtocol));
    assert_eq!(error.retry(), Retry::IfIdempotent, "{answer:?}");
    assert_eq!(error.status(ErrorStatus::Standard), 502, "{answer:?}");
    assert_eq!(error.status(ErrorStatus::Shenyu), 500, "{answer:?}");
    let upstream = async {
        let mut conn = origin.accept().await;
        assert_eq!(conn.request().await.line(), "GET /2 HTTP/1.1");
        conn.answer("second").await;
    };
    let client = async { text(rig.send(&endpoint, get(&endpoint, "/2")).await.unwrap()).await };
    assert_eq!(join!(client, upstream).0, "second", "{answer:?}");
    first.closed().await;
}

async fn switches_that_nobody_asked_for(strategy: Strategy) {
    for answer in [
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison",
    ] {
        refused_and_closed(strategy, answer).await;
    }
}

async fn transfer_codings_that_nobody_undoes(strategy: Strategy) {
    for coding in ["gzip, chunked", "foo", "identity", "chunked, chunked", "chunked, gzip"] {
        // All of it is there at once, so that a client could read it to its end and go on.
        let body = "5\r\nabcde\r\n0\r\n\r\n";
        let answer = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: {coding}\r\n\r\n{body}");
        refused_and_closed(strategy, &answer).await;
    }
    let two =
        "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n";
    refused_and_closed(strategy, two).await;
    // Any case will do.
    let rig = Rig::new(strategy);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let upstream = async {
        let mut conn = origin.accept().await;
        conn.request().await;
        let good = "HTTP/1.1 200 OK\r\ntransfer-encoding: CHUNKED\r\n\r\n2\r\nok\r\n0\r\n\r\n";
        conn.send(good).await;
        conn
    };
    let client = async { text(rig.send(&endpoint, get(&endpoint, "/")).await.unwrap()).await };
    assert_eq!(join!(client, upstream).0, "ok");
}

/// Only the connection of the answer ends, and what waits beside it is used again.
async fn other_connections_of_a_refused_answer(strategy: Strategy) {
    let rig = Rig::new(strategy);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let upstream = async {
        let (mut first, mut second) = (origin.accept().await, origin.accept().await);
        first.request().await;
        second.request().await;
        first.answer("kept").await;
        second.answer("kept").await;
        (first, second)
    };
    let client = async { text(rig.send(&endpoint, get(&endpoint, "/1")).await.unwrap()).await };
    let other = async { text(rig.send(&endpoint, get(&endpoint, "/2")).await.unwrap()).await };
    let (_, _, (mut first, mut second)) = join!(client, other, upstream);
    rig.until_unused().await;
    for _ in 0..100 {
        // Both are put back.
        tokio::task::yield_now().await;
    }
    let upstream = async {
        let first_is_asked = tokio::select! {
            _ = first.request() => true,
            _ = second.request() => false,
        };
        let (mut asked, other) = if first_is_asked { (first, second) } else { (second, first) };
        asked.send("HTTP/1.1 200 OK\r\ntransfer-encoding: foo\r\n\r\nabc").await;
        (asked, other)
    };
    let refused = rig.send(&endpoint, get(&endpoint, "/3"));
    let (refused, (mut asked, mut other)) = join!(refused, upstream);
    assert_eq!(error(refused).reason(), Reason::UpstreamProtocol);
    let upstream = async {
        assert_eq!(other.request().await.line(), "GET /4 HTTP/1.1");
        other.answer("again").await;
    };
    let client = async { text(rig.send(&endpoint, get(&endpoint, "/4")).await.unwrap()).await };
    assert_eq!(join!(client, upstream).0, "again");
    asked.closed().await;
}

/// A POST whose body ends with an error after some bytes; says what came of it.
async fn with_bad_body(strategy: Strategy, bad: BodyError) -> longmen_core::error::GatewayError {
    let rig = Rig::new(strategy);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let (frames, body) = streamed();
    let sending = async move {
        frames.send(Ok(Frame::data(Bytes::from("some")))).await.unwrap();
        frames.send(Err(bad)).await.unwrap();
    };
    let upstream = async {
        let mut conn = origin.accept().await;
        conn.head().await;
        // Cut short, never ended as if it were whole.
        let rest = {
            let mut rest = Vec::new();
            let _ = within(tokio::io::AsyncReadExt::read_to_end(&mut conn.stream, &mut rest)).await;
            String::from_utf8(rest).unwrap()
        };
        assert!(!rest.ends_with("0\r\n\r\n"), "{rest:?}");
    };
    let sent = request(&endpoint, "POST", "/", body);
    let (result, (), ()) = join!(rig.send(&endpoint, sent), upstream, sending);
    rig.until_unused().await;
    error(result)
}

async fn broken_request_bodies(strategy: Strategy) {
    let bad = BodyError::Upstream("the client vanished".into());
    let error = with_bad_body(strategy, bad).await;
    assert_eq!((error.fault(), error.reason()), (Fault::Client, Reason::BadRequest));
    assert_eq!(error.status(ErrorStatus::Shenyu), 400);
}

async fn request_bodies_over_a_limit(strategy: Strategy) {
    let error = with_bad_body(strategy, BodyError::TooLarge { limit: 4 }).await;
    assert_eq!((error.fault(), error.reason()), (Fault::Client, Reason::BodyTooLarge));
    assert_eq!(error.status(ErrorStatus::Shenyu), 413);
}
