//! Access log and metrics after a known traffic.

use std::collections::BTreeMap;
use std::path::Path;

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

use crate::fed::{Fed, fed};
use crate::support::{LIMIT, client};

/// Waits until the log has so many lines; returns them.
async fn lines(path: &Path, count: usize) -> Vec<Value> {
    let reading = async {
        loop {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            let whole = text.lines().filter(|_| text.ends_with('\n'));
            let read: Vec<Value> = whole.map(|line| serde_json::from_str(line).unwrap()).collect();
            if read.len() >= count {
                return read;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LIMIT, reading).await.unwrap_or_else(|_| {
        panic!("not {count} lines: {}", std::fs::read_to_string(path).unwrap_or_default())
    })
}

async fn logged(keys: &str) -> (Fed, tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let keys = format!("{keys}  accessLog:\n    format: json\n    path: {}\n", path.display());
    (fed_with_log(&keys).await, folder, path)
}

async fn fed_with_log(keys: &str) -> Fed {
    // The switch stands below the block that the support writes.
    fed(&format!("  netty.http.accessLog: true\n{keys}"), r#"{"timeout":3000,"retry":0}"#).await
}

fn strings(line: &Value, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| line[*name].to_string().replace('"', "")).collect()
}

const WHAT: [&str; 7] = ["method", "target", "protocol", "status", "outcome", "reason", "attempts"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_request_is_logged_once_wherever_it_ends() {
    let (fed, _folder, path) = logged("  compat: standard\n").await;
    let upstream = format!("http://{}", fed.origin.addr());
    fed.ask("GET /hello?password=hidden&x=1", "X-Request-Id: id-1\r\n").await;
    fed.raw(
        b"POST /echo HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello",
    )
    .await;
    fed.ask("GET /a/../b", "").await;
    fed.ask(&format!("GET /{}", "x".repeat(4096)), "").await;
    fed.ask("GET /actuator/health", "").await;
    fed.ask("GET /x", &format!("X: {}\r\n", "v".repeat(20_000))).await;
    fed.ask("GET /fault/close", "").await;
    let read = lines(&path, 7).await;
    let long = format!("/{}...", "x".repeat(2047));
    for (line, expected) in read.iter().zip([
        ["GET", "/hello?password=***&x=1", "HTTP/1.1", "200", "finished", "null", "1"],
        ["POST", "/echo", "HTTP/1.1", "200", "finished", "null", "1"],
        ["GET", "/a/../b", "HTTP/1.1", "400", "finished", "bad_path", "0"],
        ["GET", &long, "HTTP/1.1", "414", "finished", "header_too_large", "0"],
        ["GET", "/actuator/health", "HTTP/1.1", "200", "finished", "null", "0"],
        ["-", "-", "HTTP/1.1", "431", "finished", "header_too_large", "0"],
        ["GET", "/fault/close", "HTTP/1.1", "502", "finished", "upstream_reset", "1"],
    ]) {
        assert_eq!(strings(line, &WHAT), expected, "{line}");
        assert_eq!(line["client"], "127.0.0.1");
        let (total, head) = (line["totalUs"].as_u64().unwrap(), line["headUs"].as_u64());
        assert!(head.is_none_or(|head| head <= total), "{line}");
    }
    assert_eq!(
        strings(&read[0], &["upstream", "requestId", "bytesIn", "bytesOut"]),
        [&upstream, "id-1", "0", "13"]
    );
    assert_eq!(strings(&read[1], &["upstream", "bytesIn", "bytesOut"]), [&upstream, "5", "5"]);
    assert_eq!(read[1]["requestId"].as_str().unwrap().len(), 32);
    assert!(read[0]["upstreamUs"].as_u64().unwrap() <= read[0]["totalUs"].as_u64().unwrap());
    fed.stop().await;
    assert_eq!(lines(&path, 7).await.len(), 7, "each exactly once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_leave_and_websockets_are_logged_at_their_end() {
    let (fed, _folder, path) = logged("  compat: standard\n").await;
    let mut leaver = TcpStream::connect(fed.gateway.address).await.unwrap();
    leaver.write_all(b"GET /fault/slow-head?ms=10000 HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
    while fed.origin.requests() == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    drop(leaver);
    let read = lines(&path, 1).await;
    let expected =
        ["GET", "/fault/slow-head?ms=10000", "HTTP/1.1", "null", "client_gone", "client_gone", "1"];
    assert_eq!(strings(&read[0], &WHAT), expected);
    // In the middle of its body, while the upstream answers to what came: its answer breaks off too.
    let mut leaver = TcpStream::connect(fed.gateway.address).await.unwrap();
    let begun = b"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nbegun";
    leaver.write_all(begun).await.unwrap();
    let mut answer = Vec::new();
    while !answer.windows(5).any(|five| five == b"begun") {
        let read = tokio::time::timeout(LIMIT, leaver.read_buf(&mut answer)).await.unwrap();
        assert!(read.unwrap() > 0, "{}", String::from_utf8_lossy(&answer));
    }
    drop(leaver);
    let read = lines(&path, 2).await;
    let expected = ["POST", "/echo", "HTTP/1.1", "200", "client_gone", "client_gone", "1"];
    assert_eq!(strings(&read[1], &WHAT), expected);
    let url = format!("ws://{}/ws", fed.gateway.address);
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
    socket.send(Message::text("hello")).await.unwrap();
    let echoed = tokio::time::timeout(LIMIT, socket.next()).await.unwrap().unwrap().unwrap();
    assert_eq!(echoed, Message::text("hello"));
    socket.close(None).await.unwrap();
    while let Ok(Some(Ok(_))) = tokio::time::timeout(LIMIT, socket.next()).await {}
    let read = lines(&path, 3).await;
    let expected = ["GET", "/ws", "websocket", "101", "finished", "null", "1"];
    assert_eq!(strings(&read[2], &WHAT), expected);
    fed.stop().await;
}

/// The samples of a scrape by name and labels, checked against the format: each family has HELP and
/// TYPE before its samples, no family comes twice, no sample comes twice, histograms are cumulative.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let mut samples = BTreeMap::new();
    let mut families: BTreeMap<String, String> = BTreeMap::new();
    let mut helped = String::new();
    let mut bucket: Option<(String, f64)> = None;
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            helped = help.split(' ').next().unwrap().to_owned();
            assert!(help.len() > helped.len() + 5, "no help: {line}");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(name, helped, "TYPE without its HELP");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!((kind == "counter") == name.ends_with("_total"), "{line}");
            assert!(families.insert(name.into(), kind.into()).is_none(), "twice: {line}");
        } else {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let value: f64 = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
            let bare = name.split('{').next().unwrap();
            let family = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| {
                bare.strip_suffix(suffix)
                    .filter(|name| families.get(*name).is_some_and(|kind| kind == "histogram"))
            });
            let family = family.unwrap_or(bare);
            assert_eq!(family, helped, "a sample outside its family: {line}");
            assert!(bare.starts_with("longmen_"), "{line}");
            if bare.ends_with("_bucket") {
                let series = name.split("le=").next().unwrap().to_owned();
                if let Some((before, count)) = &bucket {
                    assert!(*before != series || *count <= value, "not cumulative: {line}");
                }
                bucket = Some((series, value));
            }
            assert!(samples.insert(name.to_owned(), value).is_none(), "twice: {line}");
        }
    }
    samples
}

async fn scrape(fed: &Fed, path: &str) -> BTreeMap<String, f64> {
    let url = format!("http://{}{path}", fed.gateway.management);
    let response = client().get(url).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    samples(&response.text().await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn figures_after_a_known_traffic() {
    let fed = fed_with_log("  compat: standard\n").await;
    for _ in 0..5 {
        fed.ask("GET /hello", "").await;
    }
    fed.ask("GET /status/404", "").await;
    fed.ask("GET /fault/close", "").await;
    fed.ask("GET /a/../b", "").await;
    fed.raw(
        b"POST /echo HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello",
    )
    .await;
    let seen = scrape(&fed, "/actuator/prometheus").await;
    let upstream = format!("selector=\"s-divide\",upstream=\"http://{}\"", fed.origin.addr());
    for (name, value) in [
        ("longmen_http_requests_total{status_class=\"2xx\"}".to_owned(), 6.0),
        ("longmen_http_requests_total{status_class=\"4xx\"}".into(), 2.0),
        ("longmen_http_requests_total{status_class=\"5xx\"}".into(), 1.0),
        ("longmen_http_requests_total{status_class=\"none\"}".into(), 0.0),
        ("longmen_http_requests_failed_total{reason=\"bad_path\"}".into(), 1.0),
        ("longmen_http_requests_failed_total{reason=\"upstream_reset\"}".into(), 1.0),
        ("longmen_http_request_duration_seconds_count".into(), 9.0),
        ("longmen_http_request_duration_seconds_bucket{le=\"+Inf\"}".into(), 9.0),
        ("longmen_http_requests_in_flight".into(), 0.0),
        ("longmen_http_received_bytes_total".into(), 5.0),
        (format!("longmen_upstream_attempts_total{{{upstream},status_class=\"2xx\"}}"), 6.0),
        (format!("longmen_upstream_attempts_total{{{upstream},status_class=\"4xx\"}}"), 1.0),
        (format!("longmen_upstream_failures_total{{{upstream}}}"), 1.0),
        (format!("longmen_upstream_response_seconds_count{{{upstream}}}"), 8.0),
        ("longmen_sync_connected".into(), 1.0),
        ("longmen_sync_ready".into(), 1.0),
        ("longmen_snapshot_publish_seconds_count".into(), 1.0),
        ("longmen_snapshot_faults".into(), 0.0),
        ("longmen_access_log_dropped_total".into(), 0.0),
    ] {
        assert_eq!(seen.get(&name), Some(&value), "{name} in {seen:#?}");
    }
    assert!(seen.contains_key("longmen_connections_open"));
    assert!(scrape(&fed, "/metrics").await.len() >= seen.len(), "the other path says the same");
    let public = fed.ask("GET /actuator/prometheus", "").await;
    assert_eq!(public.status, 404, "not on the public port");
    fed.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paths_make_no_series() {
    let fed = fed("  compat: standard\n", "{}").await;
    fed.ask("GET /first", "").await;
    let before = scrape(&fed, "/metrics").await.len();
    for number in 0..200 {
        fed.ask(&format!("GET /scan/{number}"), "").await;
    }
    assert_eq!(scrape(&fed, "/metrics").await.len(), before);
    fed.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_can_be_switched_off() {
    let fed = fed("  metrics:\n    enabled: false\n", "{}").await;
    let url = format!("http://{}/actuator/prometheus", fed.gateway.management);
    assert_eq!(client().get(url).send().await.unwrap().status(), 404);
    assert_eq!(fed.ask("GET /hello", "").await.status, 200);
    fed.stop().await;
}
