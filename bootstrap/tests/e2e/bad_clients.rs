//! Clients that do what they should not: an answer or an end for each, and the gateway goes on.

use std::time::{Duration, Instant};

use longmen_bootstrap::RunningGateway;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{LIMIT, gateway, get, stop};

async fn idle_gateway() -> RunningGateway {
    gateway("  timeouts:\n    clientHead: 300\n  sync:\n    websocket:\n      urls: ws://127.0.0.1:1/websocket\n")
        .await
}

/// Sends bytes and reads until the gateway closes.
async fn raw(gateway: &RunningGateway, sent: &[u8]) -> (String, Duration) {
    let begun = Instant::now();
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    // A refusal may come while we are still sending.
    let _ = stream.write_all(sent).await;
    let mut answer = Vec::new();
    let reading = async {
        let mut chunk = [0; 4096];
        while let Ok(read) = stream.read(&mut chunk).await {
            if read == 0 {
                break;
            }
            answer.extend_from_slice(&chunk[..read]);
        }
    };
    tokio::time::timeout(LIMIT, reading).await.expect("the gateway keeps the connection for ever");
    (String::from_utf8_lossy(&answer).into_owned(), begun.elapsed())
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heads_that_are_not_served_get_their_status_and_an_end() {
    let gateway = idle_gateway().await;
    let huge = format!("GET / HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    let long = format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "x".repeat(4200));
    for (what, sent, expected) in [
        ("a header of 1 MB", huge.as_bytes(), "431"),
        ("a long target", long.as_bytes(), "414"),
        ("no host", b"GET / HTTP/1.1\r\n\r\n", "400"),
        ("two hosts", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"),
        ("dot segments", b"GET /a/../b HTTP/1.1\r\nHost: h\r\n\r\n", "400"),
        ("encoded dots", b"GET /a/%2e%2E/b HTTP/1.1\r\nHost: h\r\n\r\n", "400"),
        ("an encoded nul", b"GET /a%00 HTTP/1.1\r\nHost: h\r\n\r\n", "400"),
        ("a broken escape", b"GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n", "400"),
        ("no request", b"hello\r\n\r\n", "400"),
        (
            "an odd coding",
            b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            "400",
        ),
        (
            "two lengths",
            b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            "400",
        ),
        ("another host", b"GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n", "400"),
        ("connect", b"CONNECT h:1 HTTP/1.1\r\nHost: h:1\r\n\r\n", "400"),
    ] {
        let (answer, _) = raw(&gateway, sent).await;
        assert_eq!(status(&answer), expected, "{what}: {answer:.300}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{what}: one answer, then the end");
    }
    assert_eq!(get(&gateway, "/actuator/health/liveness").await.status, 200);
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silence_and_half_a_head_end_at_the_deadline() {
    let gateway = idle_gateway().await;
    for sent in [&b""[..], b"PRI * HTTP/2.0\r\n", b"GET / HT", b"GET / HTTP/1.1\r\nHost: h\r\n"] {
        let (answer, took) = raw(&gateway, sent).await;
        assert!(took < Duration::from_secs(5), "{sent:?} kept {took:?}");
        assert!(answer.is_empty() || status(&answer) == "408", "{sent:?}: {answer}");
    }
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_half_open_client_gets_its_answer() {
    let gateway = idle_gateway().await;
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    stream.write_all(b"GET /actuator/info HTTP/1.0\r\n\r\n").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    tokio::time::timeout(LIMIT, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.is_empty() || status(&answer) == "200", "{answer}");
    assert_eq!(get(&gateway, "/actuator/health/liveness").await.status, 200);
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn before_the_first_configuration_it_says_so() {
    let gateway = idle_gateway().await;
    let health = get(&gateway, "/actuator/health").await;
    assert_eq!((health.status, health.body.contains("OUT_OF_SERVICE")), (503, true));
    let routed = get(&gateway, "/x").await;
    assert!(routed.body.contains("-106"), "{}", routed.body);
    let unknown = get(&gateway, "/actuator/nothing").await;
    let expected = r#"{"code":404,"message":"No static resource actuator/nothing."}"#;
    assert_eq!((unknown.status, unknown.body.as_str()), (404, expected));
    stop(gateway).await;
}
