//! What the binary says in its log, at the level it has by default.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::stopping::process::Process;
use crate::support::LIMIT;

/// A gateway that finds no admin.
fn arguments() -> Vec<String> {
    [
        "--server.port=0",
        "--server.address=127.0.0.1",
        "--shenyu.management.port=0",
        "--shenyu.shutdown.grace=1000",
        "--shenyu.sync.websocket.urls=ws://127.0.0.1:1/websocket",
    ]
    .map(str::to_owned)
    .into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_limit_of_open_files_is_raised_and_told() {
    let process = Process::with_open_files(&arguments(), 100, 2000);
    process.address().await;
    let log = process.log();
    let has = |level: &str, text: &str| {
        log.lines().any(|line| line.contains(level) && line.contains(text))
    };
    assert!(has(" INFO ", "limit of open files: 2000"), "{log}");
    // Nobody has asked for so many.
    assert!(has(" INFO ", "reached before shenyu.limits.maxConnections, 100000"), "{log}");
    assert!(!has(" WARN ", "open files"), "{log}");
    let mut many = arguments();
    many.push("--shenyu.limits.maxConnections=100000".to_owned());
    let process = Process::with_open_files(&many, 100, 2000);
    process.says("2000, is too low for shenyu.limits.maxConnections, 100000").await;
    // As many as that really are open.
    let mut few = arguments();
    few.push("--shenyu.limits.maxConnections=900".to_owned());
    let process = Process::with_open_files(&few, 100, 2000);
    let address = process.address().await;
    assert!(!process.log().contains("too low"), "{}", process.log());
    let mut clients = Vec::new();
    for _ in 0..300 {
        clients.push(TcpStream::connect(address).await.unwrap());
    }
    for client in clients.iter_mut().rev().take(10) {
        client.write_all(b"GET /x HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
        let mut answer = [0; 9];
        let read = tokio::time::timeout(LIMIT, client.read_exact(&mut answer)).await;
        read.expect("it is not accepted").unwrap();
        assert_eq!(&answer, b"HTTP/1.1 ");
    }
    assert!(!process.log().contains("cannot accept"), "{}", process.log());
}

/// Opens streams and resets them in one breath, which the server answers with the end of the
/// connection.
async fn reset_rapidly(address: SocketAddr) {
    let mut frames = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    for stream in (1_u32..400).step_by(2) {
        // GET, http, "/", and a short authority.
        frames.extend(b"\0\0\x06\x01\x05");
        frames.extend(stream.to_be_bytes());
        frames.extend(b"\x82\x86\x84\x41\x01h");
        frames.extend(b"\0\0\x04\x03\0");
        frames.extend(stream.to_be_bytes());
        frames.extend(8_u32.to_be_bytes());
    }
    let mut client = TcpStream::connect(address).await.unwrap();
    let _ = client.write_all(&frames).await;
    let mut rest = Vec::new();
    // The server may reset the connection.
    let _ = tokio::time::timeout(LIMIT, client.read_to_end(&mut rest)).await.expect("it goes on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_break_http2_do_not_fill_the_log() {
    let process = Process::start(&arguments());
    let address = process.address().await;
    let before = process.log().lines().count();
    for _ in 0..30 {
        reset_rapidly(address).await;
    }
    let line = process.says("reached limit").await;
    assert!(line.contains(" WARN "), "{line}");
    let log = process.log();
    assert_eq!(log.lines().filter(|line| line.contains("reached limit")).count(), 1, "{log}");
    let about_sync = |line: &&str| line.contains("session") || line.contains("websocket");
    let more = log.lines().skip(before).filter(|line| !about_sync(line)).count();
    assert!(more <= 2, "{more} lines for 30 connections: {log}");
}
