//! Limits of heads and bodies: the refusal reaches the client, and the upstream sees no whole request.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::fed::{Fed, fed};
use crate::support::LIMIT;

const RULE: &str = r#"{"requestMaxSize":10,"headerMaxSize":300}"#;

fn post(lines: &str, body: &str) -> Vec<u8> {
    format!("POST /x HTTP/1.1\r\nHost: h\r\n{lines}\r\n{body}").into_bytes()
}

fn chunked(chunks: &[&str]) -> Vec<u8> {
    let mut body = String::new();
    for chunk in chunks.iter().chain([&""]) {
        body.push_str(&format!("{:x}\r\n{chunk}\r\n", chunk.len()));
    }
    post("Transfer-Encoding: chunked\r\nConnection: close\r\n", &body)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rules_limits_hold_for_announced_and_streamed_bodies() {
    for (mode, large, long_head) in [("shenyu", 200, 200), ("standard", 413, 431)] {
        let fed = fed(&format!("  compat: {mode}\n"), RULE).await;
        let expected = r#"{"code":413,"message":"Request Entity Too Large"}"#;
        let announced =
            fed.raw(&post("Content-Length: 11\r\nConnection: close\r\n", "12345678901")).await;
        assert_eq!((announced.status, announced.body.as_str()), (large, expected), "{mode}");
        let streamed = fed.raw(&chunked(&["123456", "78901"])).await;
        assert_eq!((streamed.status, streamed.body.as_str()), (large, expected), "{mode}");
        assert_eq!(streamed.headers["connection"], "close");
        let fits = fed.raw(&chunked(&["123456", "7890"])).await;
        assert!(fits.status == 200 && fits.body.contains("\"bodyLength\":10"), "{fits:?}");
        let head = fed.ask("GET /x", &format!("X: {}\r\n", "v".repeat(300))).await;
        assert_eq!(head.status, long_head);
        assert!(head.body.contains("Request Header Fields Too Large"), "{head:?}");
        fed.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_gateways_own_limits_have_their_status_in_both_modes() {
    for mode in ["shenyu", "standard"] {
        let keys = format!(
            "  compat: {mode}\n  limits:\n    requestMaxBytes: 1000\n  file:\n    enabled: true\n    maxSize: 1\n"
        );
        let fed = fed(&keys, "{}").await;
        let body = "x".repeat(1001);
        let lines = format!("Content-Length: {}\r\n", body.len());
        for sent in [post(&lines, &body), chunked(&[&body[..600], &body[600..]])] {
            let refused = fed.raw(&sent).await;
            assert_eq!((refused.status, refused.headers["connection"].as_str()), (413, "close"));
        }
        let line = fed.ask(&format!("GET /{}", "x".repeat(4096)), "").await;
        let section = fed.ask("GET /x", &format!("X: {}\r\n", "x".repeat(8190))).await;
        assert_eq!((line.status, section.status), (414, 431));
        for refused in [line, section] {
            assert_eq!(refused.headers["connection"], "close");
            assert_eq!(refused.body.is_empty(), mode == "shenyu", "{refused:?}");
        }
        fed.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn multipart_bodies_are_limited_without_being_collected() {
    let form = "Content-Type: multipart/form-data; boundary=b\r\n";
    let keys = |mode| format!("  compat: {mode}\n  file:\n    enabled: true\n    maxSize: 1\n");
    let expected = r#"{"code":403,"message":"Payload too large!"}"#;
    for (mode, status) in [("shenyu", 400), ("standard", 413)] {
        let fed = fed(&keys(mode), "{}").await;
        let announced = fed.raw(&post(&format!("{form}Content-Length: 1048577\r\n"), "x")).await;
        assert_eq!((announced.status, announced.body.as_str()), (status, expected));
        let large = "x".repeat(1_048_577);
        let sent = String::from_utf8(chunked(&[&large])).unwrap();
        let streamed =
            fed.raw(sent.replace("Host: h\r\n", &format!("Host: h\r\n{form}")).as_bytes()).await;
        assert_eq!((streamed.status, streamed.body.as_str()), (status, expected));
        let other = fed.raw(&chunked(&[&large])).await;
        assert_eq!(other.status, 200, "only multipart bodies are limited");
        let empty =
            fed.raw(&post(&format!("{form}Content-Length: 0\r\nConnection: close\r\n"), "")).await;
        assert!(empty.headers.contains_key("x-upstream"), "an empty one is forwarded: {empty:?}");
        fed.stop().await;
    }
}

/// A client that does not read before it has sent everything still gets the refusal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_refusal_is_not_lost_while_the_client_still_sends() {
    let fed = fed("  compat: standard\n  limits:\n    requestMaxBytes: 1000\n", "{}").await;
    for announced in [true, false] {
        let answer = late_reader(&fed, announced).await;
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer:.200}");
    }
    fed.stop().await;
}

async fn late_reader(fed: &Fed, announced: bool) -> String {
    let piece = vec![b'x'; 64 * 1024];
    let pieces = 64;
    let talk = async {
        let mut stream = TcpStream::connect(fed.gateway.address).await.unwrap();
        let framing = if announced {
            format!("Content-Length: {}\r\n", pieces * piece.len())
        } else {
            "Transfer-Encoding: chunked\r\n".to_owned()
        };
        stream.write_all(&post(&framing, "")).await.unwrap();
        for _ in 0..pieces {
            if !announced {
                stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await.unwrap();
            }
            stream.write_all(&piece).await.unwrap();
            if !announced {
                stream.write_all(b"\r\n").await.unwrap();
            }
        }
        if !announced {
            stream.write_all(b"0\r\n\r\n").await.unwrap();
        }
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        String::from_utf8(answer).unwrap()
    };
    tokio::time::timeout(LIMIT, talk).await.expect("no end of the connection")
}
