//! A stop with much under way (C-35): slow requests, streams, websockets, and clients that send on.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use longmen_benchmark::steady::{Refused, Steady};
use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;

use super::Scene;
use crate::support::LIMIT;

/// Sends a GET on a connection of its own; the task ends with everything that came back.
async fn begin(asked: &mut JoinSet<String>, address: SocketAddr, target: &str) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    asked.spawn(async move {
        // A head that was sent before the stop could not say that the connection ends: it is the
        // client that closes, behind the last chunk.
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n0\r\n\r\n") {
            if stream.read_buf(&mut answer).await.unwrap() == 0 {
                break;
            }
        }
        String::from_utf8(answer).unwrap()
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c35_a_crowd_is_served_to_its_end() {
    let scene = Scene::new().await;
    let (mut process, address) = scene.serving(&["--shenyu.shutdown.grace=20000"]).await;
    let mut sockets = Vec::new();
    for _ in 0..50 {
        let url = format!("ws://{address}/ws");
        sockets.push(tokio_tungstenite::connect_async(url).await.unwrap().0);
    }
    let load = Steady::start(address, 4, Refused::Ends);
    let (mut slow, mut streams) = (JoinSet::new(), JoinSet::new());
    for _ in 0..100 {
        begin(&mut slow, address, "/fault/slow-head?ms=1500").await;
    }
    for _ in 0..50 {
        begin(&mut streams, address, "/sse?count=50&interval_ms=100").await;
    }
    assert!(load.more(200).await);
    let stopped = Instant::now();
    process.signal(Signal::TERM);
    process.says("SIGTERM").await;

    let seen = load.end(false).await;
    assert!(seen.failures.is_empty(), "{seen:#?}");
    for answer in tokio::time::timeout(LIMIT, slow.join_all()).await.unwrap() {
        let head = answer.to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 200 "), "{answer}");
        assert!(head.contains("connection: close"), "{answer}");
    }
    for answer in tokio::time::timeout(LIMIT, streams.join_all()).await.unwrap() {
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert_eq!(answer.matches("\ndata:").count(), 50, "{answer}");
        assert!(answer.ends_with("0\r\n\r\n"), "cut off: {answer}");
    }
    for mut socket in sockets {
        let told = tokio::time::timeout(LIMIT, socket.next()).await.unwrap().unwrap().unwrap();
        let Message::Close(Some(close)) = told else { panic!("{told:?}") };
        assert_eq!(u16::from(close.code), 1001);
        while let Some(Ok(_)) = tokio::time::timeout(LIMIT, socket.next()).await.unwrap() {}
    }
    assert_eq!(process.ended().await.code(), Some(0), "{}", process.log());
    let took = stopped.elapsed();
    assert!(took < Duration::from_secs(15), "{took:?}: {}", process.log());
    assert!(process.log().contains("everything came to its end"), "{}", process.log());
}
