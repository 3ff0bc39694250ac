//! A stop by signal, under load.

use std::time::Duration;

use longmen_benchmark::steady::{Refused, Steady};
use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Scene;
use crate::support::LIMIT;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_under_load_cuts_nothing_off() {
    let scene = Scene::new().await;
    let (mut process, address) = scene.serving(&[]).await;
    let load = Steady::start(address, 4, Refused::Ends);
    assert!(load.more(200).await);
    // In work when the signal comes, and done long after the listener has closed.
    let mut slow = TcpStream::connect(address).await.unwrap();
    slow.write_all(b"GET /fault/slow-head?ms=700 HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
    // Connected, and silent until after the stop has begun.
    let mut late = TcpStream::connect(address).await.unwrap();
    assert!(load.more(20).await);
    process.signal(Signal::TERM);
    process.says("SIGTERM").await;
    let seen = load.end(false).await;
    assert!(seen.failures.is_empty(), "{seen:#?}");
    assert!(seen.answers > 200);
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
    late.write_all(b"GET /hello HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
    for (what, stream) in [("late", &mut late), ("slow", &mut slow)] {
        let mut answer = String::new();
        tokio::time::timeout(LIMIT, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        let head = answer.to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 200 "), "{what}: {answer}");
        assert!(head.contains("connection: close"), "{what}: {answer}");
    }
    assert_eq!(process.ended().await.code(), Some(0), "{}", process.log());
    assert!(process.log().contains("everything came to its end"), "{}", process.log());
    drop(scene);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_end_is_cut_off_and_named() {
    let scene = Scene::new().await;
    let (mut process, address) = scene.serving(&["--shenyu.shutdown.grace=600"]).await;
    let mut endless = TcpStream::connect(address).await.unwrap();
    endless.write_all(b"GET /sse?count=1000 HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
    let mut some = [0; 64];
    tokio::time::timeout(LIMIT, endless.read_exact(&mut some)).await.unwrap().unwrap();
    process.signal(Signal::TERM);
    let status = process.ended().await;
    assert_eq!(status.code(), Some(0), "{}", process.log());
    let line = process.says("cut off what was not done in time").await;
    assert!(line.contains("requests=1 ") && line.contains("websockets=0"), "{line}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_ends_the_waiting() {
    let scene = Scene::new().await;
    let (mut process, address) = scene.serving(&[]).await;
    let _idle = TcpStream::connect(address).await.unwrap();
    process.signal(Signal::TERM);
    process.says("SIGTERM").await;
    process.signal(Signal::TERM);
    process.says("second signal").await;
    let ended = tokio::time::timeout(Duration::from_secs(4), process.ended()).await;
    assert_eq!(ended.expect("waits for its grace").code(), Some(0), "{}", process.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_it_delays_it_serves_as_before_but_is_not_ready() {
    let scene = Scene::new().await;
    let (mut process, address) = scene.serving(&["--shenyu.shutdown.delay=2500"]).await;
    process.signal(Signal::TERM);
    process.says("SIGTERM").await;
    let client = crate::support::client();
    let ready = format!("http://{address}/actuator/health/readiness");
    while client.get(&ready).send().await.unwrap().status() != 503 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let answer = client.get(format!("http://{address}/hello")).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert!(!answer.headers().contains_key("connection"), "{answer:?}");
    assert_eq!(process.ended().await.code(), Some(0), "{}", process.log());
}
