//! Bodies that take their time, and bodies that are hidden (C-20; bodies of GET and HEAD).

use std::time::{Duration, Instant};

use longmen_benchmark::raw::{RawClient, RawUpstream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::{Field, STRATEGIES, ok, upstream};
use crate::standard::{routed, routed_by};
use crate::support::LIMIT;

const HEAD: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// An upstream that sends what it is told when it is told; says when its client is gone.
async fn told() -> (String, mpsc::UnboundedSender<String>, mpsc::UnboundedReceiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (say, mut said) = mpsc::unbounded_channel::<String>();
    let (gone, left) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        let _ = stream.read(&mut request).await;
        loop {
            tokio::select! {
                text = said.recv() => match text {
                    Some(text) if stream.write_all(text.as_bytes()).await.is_ok() => {}
                    _ => return,
                },
                read = stream.read(&mut request) => if matches!(read, Ok(0) | Err(_)) {
                    let _ = gone.send(());
                    return;
                },
            }
        }
    });
    (address, say, left)
}

async fn until_has(stream: &mut TcpStream, seen: &mut Vec<u8>, wanted: &str) {
    let reading = async {
        while !String::from_utf8_lossy(seen).contains(wanted) {
            assert!(stream.read_buf(seen).await.unwrap() > 0, "ended before {wanted:?}");
        }
    };
    tokio::time::timeout(LIMIT, reading)
        .await
        .unwrap_or_else(|_| panic!("{wanted:?} is held back"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c20_events_pass_as_they_come_and_outlive_the_rules_time_limit() {
    let (address, say, mut left) = told().await;
    let handle = r#"{"loadBalance":"roundRobin","retry":0,"timeout":200}"#;
    let field = Field::start(routed_by(&address, handle), "").await;
    let mut client: RawClient = field.connect().await;
    client.send(b"GET /events HTTP/1.1\r\nHost: h\r\n\r\n").await;
    let (mut stream, mut seen) = client.into_parts();
    // The head alone, with no event behind it.
    say.send(HEAD.to_owned()).unwrap();
    until_has(&mut stream, &mut seen, "text/event-stream").await;
    let begun = Instant::now();
    let mut number = 0;
    // Each event must be there before the next is sent, and all that for longer than the limit.
    while begun.elapsed() < Duration::from_millis(600) {
        number += 1;
        let event = format!("data: {number:04}\n\n");
        say.send(format!("{:x}\r\n{event}\r\n", event.len())).unwrap();
        until_has(&mut stream, &mut seen, &event).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(stream);
    let noticed = tokio::time::timeout(LIMIT, left.recv()).await;
    assert!(noticed.is_ok(), "the upstream's stream goes on although the client is gone");
    field.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_of_get_and_head_are_passed_on_whole() {
    let origin = upstream(|request| {
        let head = request.line().starts_with("HEAD ");
        if head {
            super::bytes_then("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", super::Then::Keep)
        } else {
            ok("ok")
        }
    })
    .await;
    for strategy in STRATEGIES {
        hidden_bodies(&origin, strategy).await;
    }
}

async fn hidden_bodies(origin: &RawUpstream, strategy: &str) {
    let field = Field::start(routed(&origin.address().to_string()), strategy).await;
    for method in ["GET", "HEAD", "DELETE", "POST"] {
        for framed in [
            "Content-Length: 5\r\n\r\nhello",
            "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
        ] {
            let answer = field.send(&format!("{method} /b HTTP/1.1\r\nHost: h\r\n{framed}")).await;
            assert_eq!(answer.status(), 200);
            let received = origin.take();
            assert_eq!(received.len(), 1);
            assert!(received[0].complete);
            assert_eq!(received[0].body(), b"hello", "{method} {framed} {strategy}");
        }
    }
    field.stop().await;
}
