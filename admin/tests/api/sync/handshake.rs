//! The recording of handshakes, words and limits, replayed.

use std::time::Duration;

use longmen_core::config::Secret;
use longmen_core::sync::RUNNING_MODE;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

use super::gateway::{Gateway, Heard};
use super::objects::{add_selector, begin, commit};
use crate::compare::{Bindings, Order};
use crate::golden;
use crate::support::TestAdmin;

/// No answer takes longer.
const DEADLINE: Duration = Duration::from_secs(10);

/// Groups of the recorded sequences that no endpoint fills yet. The list only gets shorter.
const NOT_YET: &[&str] = &["APP_AUTH", "AI_PROXY_API_KEY"];

/// Handshakes that ours lets in: older gateways send neither header (sync.md 9).
const ON_PURPOSE: &[&str] = &["no namespaceId", "no ClientPort"];

async fn shipped() -> TestAdmin {
    let admin = TestAdmin::with(|config| {
        config.sync.websocket.allow_origins =
            ["ws://localhost:9095", "ws://localhost:9195"].map(str::to_owned).to_vec();
    });
    admin.await
}

/// Status and JSON body of the answer to a raw request.
async fn exchange(admin: &TestAdmin, request: &str) -> (u16, String, Option<Value>) {
    let talk = async {
        let mut stream = TcpStream::connect(admin.running().addr).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut received = Vec::new();
        loop {
            let mut part = [0; 4096];
            let read = stream.read(&mut part).await.unwrap();
            received.extend_from_slice(&part[..read]);
            let text = String::from_utf8_lossy(&received);
            let Some((head, body)) = text.split_once("\r\n\r\n") else {
                assert!(read > 0, "closed after {text:?}");
                continue;
            };
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("content-length").then(|| value.parse().unwrap())
            });
            if read == 0 || body.len() >= length.unwrap_or(0_usize) {
                let status = head["HTTP/1.1 ".len()..][..3].parse().unwrap();
                return (status, head.to_owned(), serde_json::from_str(body).ok());
            }
        }
    };
    tokio::time::timeout(DEADLINE, talk).await.unwrap()
}

/// The JSON inside a recorded chunked body.
fn recorded_body(line: &Value) -> Option<Value> {
    let body = line["body"].as_str()?;
    body.lines().find_map(|line| serde_json::from_str(line).ok().filter(Value::is_object))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_handshakes_are_answered_alike() {
    let admin = shipped().await;
    let mut compared = 0;
    for line in golden::lines("websocket/handshake-liveness.jsonl") {
        let Some(request) = line["request"].as_str() else { continue };
        let note = line["note"].as_str().unwrap();
        let (status, head, body) = exchange(&admin, request).await;
        let recorded: u16 =
            line["response"].as_str().unwrap()["HTTP/1.1 ".len()..][..3].parse().unwrap();
        compared += 1;
        if ON_PURPOSE.contains(&note) {
            assert_eq!((status, recorded), (101, 500), "{note}");
            continue;
        }
        assert_eq!(status, recorded, "{note}");
        if status == 101 {
            let accept = "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
            assert!(head.to_ascii_lowercase().contains(&accept.to_ascii_lowercase()), "{head}");
            assert!(!head.to_ascii_lowercase().contains("x-longmen-sync"), "{head}");
        } else {
            let (wanted, got) = (recorded_body(&line).unwrap_or_default(), body.unwrap());
            let same = Bindings::default().value(&wanted, &got, Order::Counts, "");
            assert_eq!(same, Ok(()), "{note}");
        }
    }
    assert_eq!(compared, 12);
    admin.stop().await;
}

/// What the client did at one note of the recording, and what it heard.
struct Scene {
    note: String,
    sent: Vec<String>,
    heard: Vec<Value>,
}

fn scenes() -> Vec<Scene> {
    let mut scenes: Vec<Scene> = Vec::new();
    for mut line in golden::lines("websocket/handshake-liveness.jsonl") {
        if line["request"].is_string() {
            continue;
        }
        if let Some(note) = line["note"].as_str() {
            scenes.push(Scene { note: note.to_owned(), sent: Vec::new(), heard: Vec::new() });
            continue;
        }
        let scene = scenes.last_mut().unwrap();
        match line["dir"].as_str().unwrap() {
            ">" => scene.sent.push(line["text"].as_str().unwrap().to_owned()),
            _ => scene.heard.push(line.take()),
        }
    }
    scenes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_words_are_answered_alike() {
    let admin = shipped().await;
    // Told to everybody before the session opens, or it would hear of it as a change.
    let mut witness = Gateway::ours(admin.running(), "", 0).await;
    let version = witness.set().await.mark.version;
    let mut uow = begin(admin.running()).await;
    add_selector(&mut uow, "s").await;
    commit(uow).await;
    witness.sets_to(version + 1).await;
    let mut gateway = Gateway::stock(admin.running()).await;
    let mut played = 0;
    for scene in scenes() {
        play(&mut gateway, &scene).await;
        played += 1;
    }
    assert_eq!(played, 15);
    assert_eq!(gateway.pings, 0, "a stock admin sends no PING");
    admin.stop().await;
}

async fn play(gateway: &mut Gateway, scene: &Scene) {
    let note = scene.note.as_str();
    match note {
        "binary" => gateway.send(Message::binary(vec![1, 2, 3])).await,
        "PING" => {
            gateway.send(Message::Ping("p1".into())).await;
            let answer = gateway.message().await.unwrap();
            assert_eq!(answer, Message::Pong("p1".into()));
            return;
        }
        // Cut by the recorder.
        "10240 characters" => gateway.say(&"x".repeat(10_240)).await,
        "10241 characters: close 1009?" => {
            gateway.say(&"x".repeat(10_241)).await;
            let Heard::Closed(frame) = gateway.hear().await else { panic!("{note}: not closed") };
            assert_eq!(u16::from(frame.unwrap().code), 1009);
            assert!(scene.heard[0]["text"].as_str().unwrap().starts_with("1009 "));
            return;
        }
        // The session before has been closed; that none was sent is counted at the end.
        "idle for 12 s: no ping from the admin" => return,
        _ => {
            for text in &scene.sent {
                gateway.say(text).await;
            }
        }
    }
    for heard in &scene.heard {
        let text = heard["text"].as_str().unwrap();
        if let Some(cut) = text.strip_suffix("…(cut)") {
            let got = gateway.text().await;
            let begin = |text: &str| text.split("\"data\"").next().unwrap().to_owned();
            assert_eq!(begin(&got), begin(cut), "{note}");
            continue;
        }
        let wanted: Value = serde_json::from_str(text).unwrap();
        if wanted["groupType"].as_str().is_some_and(|group| NOT_YET.contains(&group)) {
            continue;
        }
        assert_eq!(gateway.json().await, wanted, "{note}");
    }
    // Nothing else was said.
    assert_eq!(gateway.so_far().await, Vec::<Value>::new(), "{note}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_context_path_prefixes_the_endpoint_and_a_plain_get_is_refused() {
    let admin = TestAdmin::with(|config| config.server.context_path = "/admin".to_owned()).await;
    let plain = "GET /admin/websocket HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let (status, ..) = exchange(&admin, plain).await;
    assert_eq!(status, 400);
    let other = plain.replace("/admin", "");
    assert_ne!(exchange(&admin, &other).await.0, 101);
    admin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_channel_lets_nobody_in() {
    let admin = TestAdmin::with(|config| config.sync.websocket.enabled = false).await;
    let request = "GET /websocket HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\
        Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let (status, _, body) = exchange(&admin, request).await;
    assert_eq!((status, &body.unwrap()["code"]), (200, &json!(500)));
    admin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_behind_a_local_proxy_needs_the_token() {
    let admin = TestAdmin::with(|config| config.sync.token = Some(Secret::new("secret"))).await;
    let request = |more: &str| {
        format!(
            "GET /websocket HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             X-Forwarded-For: 10.0.0.9\r\n{more}\r\n"
        )
    };
    for (more, status) in
        [("", 401), ("X-Sync-Token: Secret\r\n", 401), ("X-Sync-Token: secret\r\n", 101)]
    {
        let (got, _, body) = exchange(&admin, &request(more)).await;
        assert_eq!(got, status, "{more}");
        if status == 401 {
            let message = body.unwrap()["message"].as_str().unwrap().to_owned();
            assert!(message.starts_with("X-Sync-Token is missing or wrong"), "{message}");
        }
    }
    admin.stop().await;
}

/// Any page that a browser on this machine shows can open a websocket to the admin.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_web_page_on_this_machine_is_not_let_in() {
    let admin = TestAdmin::with(|config| {
        assert_eq!(config.sync.websocket.allow_origins, Vec::<String>::new());
        config.sync.token = Some(Secret::new("secret"));
    });
    let admin = admin.await;
    for (more, status) in [
        ("Origin: http://evil.example\r\n", 403),
        ("Origin: null\r\n", 403),
        ("Origin: http://evil.example\r\nX-Sync-Token: secret\r\n", 101),
        ("Origin: ws://localhost:9195\r\n", 101),
        ("", 101),
    ] {
        let request = format!(
            "GET /websocket HTTP/1.1\r\nHost: localhost:9095\r\nUpgrade: websocket\r\n\
             Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n"
        );
        assert_eq!(exchange(&admin, &request).await.0, status, "{more}");
    }
    admin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn running_mode_is_answered_as_often_as_asked() {
    let admin = TestAdmin::start().await;
    let mut gateway = Gateway::stock(admin.running()).await;
    for _ in 0..3 {
        gateway.say(RUNNING_MODE).await;
        let mode = json!({"eventType": "RUNNING_MODE", "runningMode": "STANDALONE",
            "isMaster": true, "masterUrl": "/websocket"});
        assert_eq!(gateway.json().await, mode);
    }
    admin.stop().await;
}
