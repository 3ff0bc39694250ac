//! Clients that take their time: each wait has a limit of its own.

use std::time::{Duration, Instant};

use longmen_benchmark::raw::RawClient;
use longmen_bootstrap::RunningGateway;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::fake_admin::FakeAdmin;
use crate::standard::routed;
use crate::support::{LIMIT, gateway, stop, until};

const PING: &[u8] = b"GET /actuator/health/liveness HTTP/1.1\r\nHost: h\r\n\r\n";

async fn quiet_gateway(yaml: &str) -> RunningGateway {
    gateway(&format!("{yaml}  sync:\n    websocket:\n      urls: ws://127.0.0.1:1/websocket\n"))
        .await
}

/// How long the gateway keeps a connection on which nothing happens, from now.
async fn kept(stream: &mut TcpStream) -> Duration {
    let begun = Instant::now();
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(LIMIT, stream.read_to_end(&mut rest)).await.expect("for ever");
    begun.elapsed()
}

async fn asked(gateway: &RunningGateway) -> TcpStream {
    let mut client = RawClient::connect(gateway.address, LIMIT).await.unwrap();
    client.send(PING).await;
    assert_eq!(client.answer(false).await.status(), 200);
    client.into_parts().0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_for_a_request_and_sending_one_are_different_limits() {
    let limits = "  timeouts:\n    clientHead: 300\n    clientIdle: 1500\n";
    let gateway = quiet_gateway(limits).await;
    let mut idle = asked(&gateway).await;
    let took = kept(&mut idle).await;
    assert!(took > Duration::from_millis(1200), "an idle connection was closed after {took:?}");

    let mut in_pieces = asked(&gateway).await;
    in_pieces.write_all(b"GET / HT").await.unwrap();
    let took = kept(&mut in_pieces).await;
    assert!(took > Duration::from_millis(200), "{took:?}");
    assert!(took < Duration::from_millis(1200), "half a head was kept for {took:?}");

    // A byte now and then does not help.
    let mut dripping = asked(&gateway).await;
    let begun = Instant::now();
    while dripping.write_all(b"G").await.is_ok() {
        assert!(begun.elapsed() < LIMIT, "a dripping head is kept for ever");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    let mut silent = TcpStream::connect(gateway.address).await.unwrap();
    let took = kept(&mut silent).await;
    assert!(took < Duration::from_millis(1200), "silence was kept for {took:?}");
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_takes_nothing_is_given_up_and_its_upstream_with_it() {
    const SIZE: usize = 64 << 20;
    let origin = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let admin = FakeAdmin::start(routed(&origin.local_addr().unwrap().to_string())).await;
    let sending = tokio::spawn(async move {
        let mut bytes = format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n").into_bytes();
        bytes.resize(bytes.len() + SIZE, b'x');
        loop {
            let (mut stream, _) = origin.accept().await.unwrap();
            // A connection without a request only asked whether somebody is there.
            if stream.read(&mut [0; 1024]).await.is_ok_and(|read| read > 0) {
                return stream.write_all(&bytes).await;
            }
        }
    });
    let urls = admin.url();
    let gateway = gateway(&format!(
        "  timeouts:\n    clientWriteStall: 400\n  sync:\n    websocket:\n      urls: {urls}\n"
    ))
    .await;
    until(&gateway, |ready, _| ready).await;
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    stream.write_all(b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
    // It reads, slowly, for longer than the limit: that is no stall.
    let mut chunk = vec![0; 1 << 20];
    let begun = Instant::now();
    let mut taken = 0;
    while begun.elapsed() < Duration::from_millis(900) {
        taken += tokio::time::timeout(LIMIT, stream.read(&mut chunk)).await.unwrap().unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(taken > 0);
    // Then it takes nothing. What comes after is what was on its way, and the end.
    let sent = tokio::time::timeout(LIMIT, sending).await.expect("the upstream waits for nobody");
    assert!(sent.unwrap().is_err(), "the upstream sent all there is");
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(LIMIT, stream.read_to_end(&mut rest)).await.unwrap();
    assert!(taken + rest.len() < SIZE, "everything came");
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_has_only_so_many_requests() {
    let gateway = quiet_gateway("  limits:\n    maxRequestsPerConnection: 3\n").await;
    let mut client = RawClient::connect(gateway.address, LIMIT).await.unwrap();
    for number in 1..=3 {
        client.send(PING).await;
        let answer = client.answer(false).await;
        assert_eq!(answer.status(), 200);
        let says_close = answer.header("connection") == ["close"];
        assert_eq!(says_close, number == 3, "request {number}");
    }
    assert!(client.closed().await);
    stop(gateway).await;
}
