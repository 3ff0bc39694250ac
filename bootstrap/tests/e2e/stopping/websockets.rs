//! Websockets when the gateway stops.

use futures_util::{SinkExt, StreamExt};
use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

use super::Scene;
use crate::support::LIMIT;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn they_are_told_1001_after_the_requests() {
    let scene = Scene::new().await;
    let (mut process, address) = scene.serving(&[]).await;
    let mut sockets = Vec::new();
    for _ in 0..20 {
        let url = format!("ws://{address}/ws");
        let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
        socket.send(Message::text("hello")).await.unwrap();
        let echoed = tokio::time::timeout(LIMIT, socket.next()).await.unwrap().unwrap();
        assert_eq!(echoed.unwrap(), Message::text("hello"));
        sockets.push(socket);
    }
    let mut slow = TcpStream::connect(address).await.unwrap();
    slow.write_all(b"GET /fault/slow-head?ms=600 HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
    process.signal(Signal::TERM);
    process.says("SIGTERM").await;
    // They go on while requests are in work.
    sockets[0].send(Message::text("still")).await.unwrap();
    let echoed = tokio::time::timeout(LIMIT, sockets[0].next()).await.unwrap().unwrap();
    assert_eq!(echoed.unwrap(), Message::text("still"));
    let mut answer = String::new();
    tokio::time::timeout(LIMIT, slow.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    for mut socket in sockets {
        let told = tokio::time::timeout(LIMIT, socket.next()).await.unwrap().unwrap().unwrap();
        let Message::Close(Some(close)) = told else { panic!("{told:?}") };
        assert_eq!(u16::from(close.code), 1001);
        // The library answers, and the connection ends.
        while let Some(Ok(_)) = tokio::time::timeout(LIMIT, socket.next()).await.unwrap() {}
    }
    assert_eq!(process.ended().await.code(), Some(0), "{}", process.log());
    assert!(process.log().contains("everything came to its end"), "{}", process.log());
}
