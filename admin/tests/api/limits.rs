//! What one caller can take of the admin: bodies, connections.

use std::io::ErrorKind;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::{PASSWORD, TestAdmin};

/// No answer takes longer; far less than what a call or a write may take.
const DEADLINE: Duration = Duration::from_secs(20);

/// Sends the head of a request that announces a body, and some of the body. Out: the connection.
async fn announce(admin: &TestAdmin, line: &str, token: &str, bytes: usize) -> TcpStream {
    let mut stream = TcpStream::connect(admin.running().addr).await.unwrap();
    let head = format!(
        "{line} HTTP/1.1\r\nHost: a\r\nX-Access-Token: {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {bytes}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

/// The JSON of the answer on a connection, which comes although the body never does.
async fn answer(mut stream: TcpStream) -> (u16, Value) {
    let read = async {
        let mut received = Vec::new();
        loop {
            let mut part = [0; 4096];
            let read = stream.read(&mut part).await.unwrap();
            received.extend_from_slice(&part[..read]);
            let text = String::from_utf8_lossy(&received);
            if let Some((head, body)) = text.split_once("\r\n\r\n")
                && let Ok(body) = serde_json::from_str(body)
            {
                return (head["HTTP/1.1 ".len()..][..3].parse().unwrap(), body);
            }
            assert!(read > 0, "closed after {text:?}");
        }
    };
    timeout(DEADLINE, read).await.expect("an answer without waiting for the body")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_takes_no_body_reads_none() {
    let admin = TestAdmin::start().await;
    let token = admin.token("admin", PASSWORD).await;
    for (line, token) in [
        ("GET /platform/secretInfo", ""),
        ("GET /platform/login?userName=admin&password=x", ""),
        ("GET /actuator/health", ""),
        ("GET /plugin-template/all", token.as_str()),
        ("GET /no/such/path", token.as_str()),
    ] {
        let (status, body) = answer(announce(&admin, line, token, 10_000_000).await).await;
        assert_eq!(status, 200, "{line}: {body}");
    }
    admin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_body_is_read_only_of_who_may_send_it() {
    let admin = TestAdmin::start().await;
    admin.add_user("lina", "Secret#123").await;
    let lina = admin.token("lina", "Secret%23123").await;
    let root = admin.token("admin", PASSWORD).await;
    let line = "POST /namespace/insertOrUpdate";
    let sent = |token: &str| {
        let token = token.to_owned();
        let admin = &admin;
        async move { answer(announce(admin, line, &token, 1_000_000).await).await }
    };
    assert_eq!(sent("nobody's").await.0, 401);
    let (_, denied) = sent(&lina).await;
    assert_eq!(denied["code"], 601, "{denied}");
    // What is wrong with a small one is told before, as the reference does.
    let wrong = json!({"name": "x"});
    let told = admin.api(&lina, "POST", "/namespace/insertOrUpdate", Some(wrong)).await;
    assert_eq!(
        told["message"],
        "Request error! invalid argument [description: namespace description not null]"
    );
    // Who may send it is waited for.
    let mut stream = announce(&admin, line, &root, 1_000_000).await;
    let body = json!({"name": "big", "description": ""}).to_string();
    let padded = format!("{body}{}", " ".repeat(1_000_000 - body.len()));
    stream.write_all(padded.as_bytes()).await.unwrap();
    assert_eq!(answer(stream).await.1["code"], 200);
    admin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_under_way_are_bounded_together() {
    let admin = TestAdmin::with(|config| {
        (config.server.request_max_bytes, config.server.bodies_max_bytes) = (1000, 1500);
    });
    let admin = admin.await;
    let token = admin.token("admin", PASSWORD).await;
    let path = "/namespace/insertOrUpdate";
    let mut held = announce(&admin, &format!("POST {path}"), &token, 1000).await;
    held.write_all(&[b' '; 999]).await.unwrap();
    // Before that, a call could be first, and then the held body would be the one that is refused.
    let bodies = admin.running().state().bodies();
    timeout(DEADLINE, bodies.until_held(|bytes| bytes == 999)).await.expect("the bytes count");
    let full = format!("{}{}", json!({"name": "x", "description": ""}), " ".repeat(900));
    let send = async || {
        let headers = [
            ("X-Access-Token".to_owned(), token.clone()),
            ("Content-Type".to_owned(), "application/json".to_owned()),
        ];
        admin.call("POST", path, &headers, Some(full.clone())).await.json.unwrap()
    };
    let refused = send().await;
    assert_eq!(
        refused["message"],
        "request bodies under way would hold more than 1500 bytes together \
         (shenyu.limits.bodiesMaxBytes), try again later"
    );
    // What goes gives its share back: the admin sees that, and the next call is served.
    drop(held);
    timeout(DEADLINE, bodies.until_held(|bytes| bytes == 0)).await.expect("the share comes back");
    let served = send().await;
    assert_eq!(served["code"], 200, "{served}");
    admin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_reads_nothing_is_cut_off() {
    const REQUEST: &[u8] = b"GET /v3/api-docs HTTP/1.1\r\nHost: a\r\n\r\n";
    let admin = TestAdmin::with(|config| {
        config.server.client_write_stall = Duration::from_millis(200);
    });
    let admin = admin.await;
    let mut stream = TcpStream::connect(admin.running().addr).await.unwrap();
    // Far more answers than the buffers of both sockets hold. Once the admin has given the
    // connection up, it takes no request either.
    let cut = async {
        let mut sent = 0;
        loop {
            let rest = &REQUEST[sent % REQUEST.len()..];
            match timeout(Duration::from_millis(100), stream.write(rest)).await {
                Ok(Ok(more)) => sent += more,
                Ok(Err(error)) => return error.kind(),
                // The buffers are full, and the admin still holds the connection.
                Err(_) => {}
            }
        }
    };
    let kind = timeout(DEADLINE, cut).await.expect("the connection is given up");
    assert!(matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{kind}");
    admin.stop().await;
}
