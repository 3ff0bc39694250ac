//! Sockets that a supervisor opens (`LISTEN_FDS`): they outlive the process.

use std::net::TcpListener;

use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Scene;
use super::process::{Process, until_routed};
use crate::support::LIMIT;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_wait_for_the_next_process() {
    let scene = Scene::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    for _ in 0..2 {
        // Nobody accepts yet: it waits in the queue.
        let mut early = TcpStream::connect(address).await.unwrap();
        early
            .write_all(
                b"GET /actuator/health/liveness HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
            )
            .await
            .unwrap();
        let mut process = Process::with_socket(&scene.arguments(0), &listener);
        assert_eq!(process.address().await, address);
        let mut answer = String::new();
        tokio::time::timeout(LIMIT, early.read_to_string(&mut answer)).await.unwrap().unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        until_routed(address).await;
        process.signal(Signal::TERM);
        assert_eq!(process.ended().await.code(), Some(0), "{}", process.log());
    }
}
