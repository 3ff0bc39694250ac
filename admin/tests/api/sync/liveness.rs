//! Sessions whose peer is gone, or never was there.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use futures_util::FutureExt as _;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use longmen_admin::{Peer, api};
use longmen_core::model::DEFAULT_NAMESPACE;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tower::ServiceExt as _;

use super::gateway::Gateway;
use crate::support::TestAdmin;

const DEADLINE: Duration = Duration::from_secs(20);

/// A half-open connection: nothing comes any more, and nothing says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stock_gateway_that_falls_silent_is_ended_and_one_that_pings_stays() {
    let admin = TestAdmin::with(|config| {
        config.sync.websocket.silence = Duration::from_secs(2);
    });
    let admin = admin.await;
    let mut pinging = Gateway::stock(admin.running()).await;
    let mut silent = Gateway::stock(admin.running()).await;
    let ended = {
        let mut end = std::pin::pin!(silent.end());
        loop {
            pinging.send(Message::Ping("p".into())).await;
            if let Ok(ended) = timeout(Duration::from_millis(50), end.as_mut()).await {
                break ended;
            }
        }
    };
    assert_eq!(ended, Some(1001));
    let listed = || admin.running().state().publisher().gateways().connected(DEFAULT_NAMESPACE);
    timeout(DEADLINE, async {
        while listed().len() > 1 {
            pinging.send(Message::Ping("p".into())).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await
    .unwrap();
    // The pongs of the one that stays, and then its answer.
    pinging.say("RUNNING_MODE").await;
    loop {
        match pinging.message().await {
            Some(Message::Pong(_)) => {}
            Some(Message::Text(_)) => break,
            other => panic!("{other:?}"),
        }
    }
    admin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_ends_sessions_at_once() {
    let admin = TestAdmin::start().await;
    let mut gateway = Gateway::stock(admin.running()).await;
    gateway.so_far().await;
    admin.running().state().life().hard().cancel();
    // Cut off: no goodbye, and no wait for its answer.
    assert_eq!(gateway.end().await, None);
    admin.stop_somehow().await;
}

/// An upgrade fails when the connection breaks between the answer and its end. Here the answer is
/// thrown away before it is sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_whose_upgrade_fails_is_not_listed_as_connected() {
    let admin = TestAdmin::start().await;
    let router = api::routes().build().0.with_state(admin.running().state().clone());
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Peer("127.0.0.1:4000".parse().unwrap()));
        let router = router.clone();
        async move {
            let answer = router.oneshot(request).await.unwrap();
            assert_eq!(answer.status(), StatusCode::SWITCHING_PROTOCOLS);
            let lost = Response::builder().status(StatusCode::BAD_GATEWAY).body(Body::empty());
            Ok::<_, Infallible>(lost.unwrap())
        }
    });
    let (mut near, far) = tokio::io::duplex(4096);
    let served = tokio::spawn(
        hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(far), service)
            .with_upgrades()
            .map(drop),
    );
    let handshake = "GET /websocket HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\
        Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    near.write_all(handshake.as_bytes()).await.unwrap();
    let mut status = [0; "HTTP/1.1 502".len()];
    near.read_exact(&mut status).await.unwrap();
    assert_eq!(&status, b"HTTP/1.1 502");
    drop(near);
    timeout(DEADLINE, served).await.unwrap().unwrap();
    let gateways = admin.running().state().publisher().gateways();
    let gone = async {
        while !gateways.list().iter().any(|view| !view.connected) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(DEADLINE, gone).await.expect("the entry is closed");
    assert!(gateways.connected(DEFAULT_NAMESPACE).is_empty());
    admin.stop().await;
}
