//! Bodies flow, stop, and are given up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use http_body::Frame;
use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use longmen_core::body::Body;
use longmen_core::error::Reason;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::join;

use crate::support::origin::Origin;
use crate::support::{Rig, Strategy, error, get, read, request, streamed, text, until, within};

conformance! {
    early_answers, answers_are_not_read_ahead, requests_are_not_read_ahead, abandoned_calls,
    abandoned_answers, upgrades, refused_upgrades,
}

async fn early_answers(strategy: Strategy) {
    let rig = Rig::new(strategy);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let (frames, body) = streamed();
    let sent = request(&endpoint, "POST", "/1", body);
    let upstream = async {
        let mut conn = origin.accept().await;
        conn.head().await;
        frames.send(Ok(Frame::data(Bytes::from("begun")))).await.unwrap();
        conn.send("HTTP/1.1 413 No\r\ncontent-length: 8\r\n\r\ntoo much").await;
        conn
    };
    let (response, _conn) = join!(rig.send(&endpoint, sent), upstream);
    let response = response.unwrap();
    assert_eq!(response.status(), 413);
    assert_eq!(text(response).await, "too much");
    // The body of the first request is still open: the next one does not wait for it.
    let upstream = async {
        let mut conn = origin.accept().await;
        assert_eq!(conn.request().await.line(), "GET /2 HTTP/1.1");
        conn.answer("other").await;
    };
    let (response, ()) = join!(rig.send(&endpoint, get(&endpoint, "/2")), upstream);
    assert_eq!(text(response.unwrap()).await, "other");
    drop(frames);
}

/// Waits until a count has stopped moving.
async fn settled(count: &AtomicUsize) -> usize {
    let mut last = usize::MAX;
    loop {
        let now = count.load(Ordering::SeqCst);
        if now == last {
            return now;
        }
        last = now;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

const MUCH: usize = 64 << 20;
/// What may be on its way: the buffers of both sockets and of the client.
const ON_THE_WAY: usize = 24 << 20;

async fn answers_are_not_read_ahead(strategy: Strategy) {
    let rig = Rig::new(strategy);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let written = Arc::new(AtomicUsize::new(0));
    let upstream = async {
        let mut conn = origin.accept().await;
        conn.request().await;
        conn.send(format!("HTTP/1.1 200 OK\r\ncontent-length: {MUCH}\r\n\r\n")).await;
        let written = Arc::clone(&written);
        tokio::spawn(async move {
            let part = vec![b'x'; 1 << 16];
            for _ in 0..MUCH / part.len() {
                conn.stream.write_all(&part).await.unwrap();
                written.fetch_add(part.len(), Ordering::SeqCst);
            }
            conn
        })
    };
    let (response, writing) = join!(rig.send(&endpoint, get(&endpoint, "/")), upstream);
    let mut body = response.unwrap().into_body();
    let first = within(body.frame()).await.unwrap().unwrap().into_data().unwrap().len();
    let ahead = settled(&written).await;
    assert!(ahead < ON_THE_WAY, "{ahead} bytes were taken though nobody reads");
    let rest = within(body.collect()).await.unwrap().to_bytes().len();
    assert_eq!(first + rest, MUCH);
    within(writing).await.unwrap();
}

async fn requests_are_not_read_ahead(strategy: Strategy) {
    let rig = Rig::new(strategy);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let (frames, body) = streamed();
    let produced = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&produced);
    let producing = tokio::spawn(async move {
        let part = Bytes::from(vec![b'x'; 1 << 16]);
        for _ in 0..MUCH / part.len() {
            frames.send(Ok(Frame::data(part.clone()))).await.unwrap();
            count.fetch_add(part.len(), Ordering::SeqCst);
        }
    });
    let upstream = async {
        let mut conn = origin.accept().await;
        conn.head().await;
        let ahead = settled(&produced).await;
        assert!(ahead < ON_THE_WAY, "{ahead} bytes were taken though the upstream does not read");
        let mut left = MUCH;
        let mut part = vec![0; 1 << 20];
        // Chunked: more bytes than the body has.
        while left > 0 {
            let n = within(conn.stream.read(&mut part)).await.unwrap();
            assert_ne!(n, 0);
            left = left.saturating_sub(n);
        }
        conn.answer("done").await;
    };
    let sent = request(&endpoint, "POST", "/", body);
    let (response, ()) = join!(rig.send(&endpoint, sent), upstream);
    assert_eq!(text(response.unwrap()).await, "done");
    within(producing).await.unwrap();
}

async fn abandoned_calls(strategy: Strategy) {
    let rig = Rig::new(strategy);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    for kept in [false, true] {
        if kept {
            let upstream = async {
                let mut conn = origin.accept().await;
                conn.request().await;
                conn.answer("ok").await;
                conn
            };
            let (response, conn) = join!(rig.send(&endpoint, get(&endpoint, "/")), upstream);
            text(response.unwrap()).await;
            abandon(&rig, &endpoint, conn).await;
        } else {
            let call = rig.client.send(&endpoint, get(&endpoint, "/slow"));
            let mut conn = tokio::select! {
                _ = call => panic!("nobody answered"),
                conn = async {
                    let mut conn = origin.accept().await;
                    conn.request().await;
                    conn
                } => conn,
            };
            conn.closed().await;
        }
        rig.until_unused().await;
        assert_eq!(rig.stats().idle, 0, "an abandoned connection is not kept");
    }
}

/// Gives a call up after its request has arrived; the connection must end.
async fn abandon(
    rig: &Rig,
    endpoint: &Arc<longmen_core::upstream::Endpoint>,
    mut conn: crate::support::origin::Conn,
) {
    let call = rig.client.send(endpoint, get(endpoint, "/slow"));
    tokio::select! {
        _ = call => panic!("nobody answered"),
        received = conn.request() => assert_eq!(received.line(), "GET /slow HTTP/1.1"),
    }
    conn.closed().await;
}

async fn abandoned_answers(strategy: Strategy) {
    let rig = Rig::new(strategy);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let upstream = async {
        let mut conn = origin.accept().await;
        conn.request().await;
        conn.send("HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\nbegun").await;
        conn
    };
    let (response, mut conn) = join!(rig.send(&endpoint, get(&endpoint, "/1")), upstream);
    assert_eq!(rig.stats().in_use, 1);
    drop(response.unwrap());
    conn.closed().await;
    rig.until_unused().await;
    let upstream = async {
        let mut conn = origin.accept().await;
        assert_eq!(conn.request().await.line(), "GET /2 HTTP/1.1");
        conn.answer("fresh").await;
    };
    let (response, ()) = join!(rig.send(&endpoint, get(&endpoint, "/2")), upstream);
    assert_eq!(text(response.unwrap()).await, "fresh");
}

fn upgrade(endpoint: &longmen_core::upstream::Endpoint) -> http::Request<Body> {
    let mut sent = get(endpoint, "/ws");
    sent.headers_mut().insert("connection", HeaderValue::from_static("Upgrade"));
    sent.headers_mut().insert("upgrade", HeaderValue::from_static("websocket"));
    sent
}

async fn upgrades(strategy: Strategy) {
    let rig = Rig::new(strategy);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let upstream = async {
        let mut conn = origin.accept().await;
        let received = conn.request().await;
        assert_eq!(received.header("upgrade"), Some("websocket"));
        let head = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n\
            upgrade: websocket\r\nx-a: 1\r\n\r\nfirst";
        conn.send(head).await;
        conn
    };
    let call = within(rig.client.upgrade(&endpoint, upgrade(&endpoint)));
    let (switched, mut conn) = join!(call, upstream);
    let Ok(Ok(tunnel)) = switched else { panic!("expected a tunnel") };
    assert_eq!(
        (tunnel.head.status.as_u16(), &tunnel.head.headers["x-a"]),
        (101, &"1".parse().unwrap())
    );
    let mut io = TokioIo::new(tunnel.io);
    let mut first = [0; 5];
    within(io.read_exact(&mut first)).await.unwrap();
    assert_eq!(&first, b"first", "what came with the head is not lost");
    within(io.write_all(b"ping")).await.unwrap();
    within(io.flush()).await.unwrap();
    assert_eq!(conn.exactly(4).await, b"ping");
    assert_eq!(rig.stats().in_use, 1, "a tunnel is a connection");
    drop(io);
    conn.closed().await;
    until("the tunnel is gone", || rig.stats().in_use == 0).await;
}

async fn refused_upgrades(strategy: Strategy) {
    let rig = Rig::new(strategy);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let upstream = async {
        let mut conn = origin.accept().await;
        conn.request().await;
        conn.send("HTTP/1.1 403 No\r\ncontent-length: 3\r\n\r\nno!").await;
        let mut again = origin.accept().await;
        again.request().await;
        again.close();
        conn
    };
    let calls = async {
        let call = within(rig.client.upgrade(&endpoint, upgrade(&endpoint))).await;
        let Ok(Err(response)) = call else { panic!("expected an answer") };
        assert_eq!(response.status(), 403);
        assert_eq!(read(response).await.unwrap(), "no!");
        let call = within(rig.client.upgrade(&endpoint, upgrade(&endpoint))).await;
        assert_eq!(
            error(call.map(|_| http::Response::new(Body::empty()))).reason(),
            Reason::UpstreamReset
        );
    };
    join!(calls, upstream);
    rig.until_unused().await;
}
