//! Who is chosen, what a further attempt may send, and what is refused for its size (C-12, C-13,
//! C-19).

use longmen_benchmark::raw::{RawUpstream, Then};
use serde_json::{Value, json};

use super::{Field, STRATEGIES, bytes_then, ok, upstream};
use crate::standard::routed_by;
use crate::support::LIMIT;

/// The manners of an admin whose upstream list has these states: address, status, weight.
fn list(members: &[(String, i32, i32)], handle: &str) -> crate::fake_admin::Manners {
    let mut manners = routed_by("", handle);
    let last = manners.sequence.last_mut().unwrap();
    let mut frame: Value = serde_json::from_str(last).unwrap();
    frame["data"][0]["upstreamDataList"] = members
        .iter()
        .map(|(url, status, weight)| {
            json!({"protocol": "http://", "url": url, "status": status, "weight": weight, "props": "{\"warmup\":\"0\"}"})
        })
        .collect();
    *last = frame.to_string();
    manners
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c12_weight_0_and_switched_off_upstreams_are_never_chosen() {
    let (u1, u2, u3) =
        (upstream(|_| ok("1")).await, upstream(|_| ok("2")).await, upstream(|_| ok("3")).await);
    let address = |upstream: &RawUpstream| upstream.address().to_string();
    let mixed = [(address(&u1), 0, 0), (address(&u2), 0, 50), (address(&u3), 1, 50)];
    for balance in ["random", "roundRobin", "hash", "leastActive", "p2c", "shortestResponse"] {
        let handle = format!(r#"{{"loadBalance":"{balance}","retry":0,"timeout":3000}}"#);
        let field = Field::start(list(&mixed, &handle), "").await;
        let mut client = field.connect().await;
        for _ in 0..60 {
            client.send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
            let answer = client.answer(false).await;
            assert_eq!((answer.status(), answer.body.as_slice()), (200, &b"2"[..]), "{balance}");
        }
        field.stop().await;
        let field = Field::start(list(&mixed[..1], &handle), "").await;
        let answer = field.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
        assert_eq!(answer.status(), 503, "{balance}: weight 0 alone");
        field.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c13_no_attempt_sends_less_than_the_whole_body() {
    let closing = upstream(|_| bytes_then("", Then::Close)).await;
    let echo = upstream(|request| ok(&request.body().len().to_string())).await;
    let both = format!("{},{}", closing.address(), echo.address());
    let handle =
        r#"{"loadBalance":"roundRobin","retryStrategy":"failover","retry":2,"timeout":15000}"#;
    for strategy in STRATEGIES {
        let yaml = format!("  retryNonIdempotent: true\n{strategy}");
        let field = Field::start(routed_by(&both, handle), &yaml).await;
        whole_bodies(&field, &echo, &closing).await;
        field.stop().await;
    }
}

async fn whole_bodies(field: &Field, echo: &RawUpstream, closing: &RawUpstream) {
    for method in ["PUT", "POST"] {
        for length in [0_usize, 1 << 10, 200 << 10, 5 << 20] {
            for chunked in [false, true] {
                let body = vec![b'x'; length];
                let mut request = format!("{method} /b HTTP/1.1\r\nHost: h\r\n").into_bytes();
                if chunked {
                    request.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
                    for part in body.chunks(64 << 10) {
                        request.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
                        request.extend_from_slice(part);
                        request.extend_from_slice(b"\r\n");
                    }
                    request.extend_from_slice(b"0\r\n\r\n");
                } else {
                    let length = format!("Content-Length: {length}\r\n\r\n");
                    request.extend_from_slice(length.as_bytes());
                    request.extend_from_slice(&body);
                }
                // Twice, so that each of the two is asked first once.
                for _ in 0..2 {
                    let mut client = field.connect().await;
                    client.send(&request).await;
                    let answer = client.answer(false).await;
                    let what = format!("{method} {length} chunked={chunked}");
                    match answer.status() {
                        200 => assert_eq!(answer.body, length.to_string().into_bytes(), "{what}"),
                        status => assert_eq!(status, 502, "{what}"),
                    }
                    assert!(echo.quiet(LIMIT).await);
                    for received in echo.take() {
                        assert!(received.complete, "{what}: a part of the body");
                        assert_eq!(received.body(), body, "{what}");
                    }
                    drop(closing.take());
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c19_a_body_announced_as_too_large_is_refused_before_it_is_sent() {
    let origin = upstream(|_| ok("")).await;
    let yaml = "  limits:\n    requestMaxBytes: 1MB\n";
    let field = Field::start(routed_by(&origin.address().to_string(), "{}"), yaml).await;
    for kind in ["application/json", "multipart/form-data; boundary=x"] {
        let mut client = field.connect().await;
        let head = format!(
            "POST /b HTTP/1.1\r\nHost: h\r\nContent-Type: {kind}\r\nContent-Length: 2147483648\r\n\r\n"
        );
        client.send(head.as_bytes()).await;
        // Not a byte of the body is sent: the answer comes all the same, and can be read.
        let answer = client.answer(false).await;
        assert_eq!((answer.status(), answer.cut), (413, false), "{kind}");
        assert!(client.closed().await, "{kind}: what follows would be read as a request");
    }
    assert!(origin.take().is_empty());
    field.stop().await;
}
