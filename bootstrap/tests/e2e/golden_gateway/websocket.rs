//! Recorded websockets: the handshake as the upstream saw it, and frames in both directions.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use http::HeaderMap;
use longmen_benchmark::raw::Received;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Bytes, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use super::compare::{Check, Choice, Comparison, Difference, Ours, compare};
use super::record::{Exchange, Got, Seen};
use super::stage::Stage;
use crate::support::LIMIT;

/// What the upstream saw on its newest connection.
#[derive(Debug, Default, Clone)]
struct Log {
    head: Vec<u8>,
    frames: Vec<Value>,
}

/// The recorded websocket upstream: echoes, and does what a few words tell it.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    log: Arc<Mutex<Log>>,
    accepting: JoinHandle<()>,
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Upstream {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::new(Mutex::new(Log::default()));
        let known = Arc::clone(&log);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&known)));
            }
        });
        Self { address, log, accepting }
    }

    /// What it saw, once so many frames are there or the time is up.
    async fn seen(&self, frames: usize) -> Log {
        let reached = async {
            while self.log.lock().unwrap().frames.len() < frames {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let _ = tokio::time::timeout(LIMIT, reached).await;
        self.log.lock().unwrap().clone()
    }
}

async fn serve(stream: TcpStream, log: Arc<Mutex<Log>>) {
    let mut head = String::new();
    #[expect(clippy::result_large_err, reason = "the signature that the library asks for")]
    let look = |request: &Request, mut response: Response| -> Result<Response, ErrorResponse> {
        head = format!("{} {} HTTP/1.1\r\n", request.method(), request.uri());
        for (name, value) in request.headers() {
            head.push_str(&format!("{name}: {}\r\n", String::from_utf8_lossy(value.as_bytes())));
        }
        if let Some(offered) = request.headers().get("sec-websocket-protocol") {
            let first = offered.to_str().unwrap().split(',').next().unwrap().trim();
            response.headers_mut().insert("sec-websocket-protocol", first.parse().unwrap());
        }
        Ok(response)
    };
    let Ok(mut socket) = tokio_tungstenite::accept_hdr_async(stream, look).await else { return };
    *log.lock().unwrap() = Log { head: head.into_bytes(), frames: Vec::new() };
    while let Some(Ok(message)) = socket.next().await {
        log.lock().unwrap().frames.push(frame(&message));
        let answer = match &message {
            Message::Text(text) => match text.split_once(' ') {
                Some(("close", code)) => Message::Close(Some(CloseFrame {
                    code: code.parse::<u16>().unwrap().into(),
                    reason: "bye".into(),
                })),
                Some(("big", length)) => Message::text("y".repeat(length.parse().unwrap())),
                _ if text.as_str() == "drop" => return,
                _ if text.as_str() == "pingme" => Message::Ping(Bytes::from_static(b"pp")),
                _ => message,
            },
            Message::Binary(_) => message,
            _ => continue,
        };
        if matches!(answer, Message::Close(_)) {
            log.lock().unwrap().frames.push(frame(&answer));
        }
        if socket.send(answer).await.is_err() {
            return;
        }
    }
}

/// A frame in the form of the recordings.
fn frame(message: &Message) -> Value {
    let (opcode, payload) = match message {
        Message::Text(text) => (1, text.as_bytes().to_vec()),
        Message::Binary(bytes) => (2, bytes.to_vec()),
        Message::Ping(bytes) => (9, bytes.to_vec()),
        Message::Pong(bytes) => (10, bytes.to_vec()),
        Message::Close(Some(close)) => {
            (8, [&u16::from(close.code).to_be_bytes(), close.reason.as_bytes()].concat())
        }
        Message::Close(None) | Message::Frame(_) => (8, Vec::new()),
    };
    let start: String = payload.iter().take(40).map(|byte| char::from(*byte)).collect();
    json!({"opcode": opcode, "fin": true, "length": payload.len(), "start": start})
}

/// Runs one recorded websocket exchange and compares it.
pub(crate) async fn exchange(
    stage: &Stage,
    upstream: &Upstream,
    recorded: &Exchange,
) -> (Ours, Comparison) {
    let line = recorded.websocket.as_ref().expect("a websocket exchange");
    let mut request =
        format!("ws://gw.test{}", line["path"].as_str().unwrap()).into_client_request().unwrap();
    *request.headers_mut() = handshake_headers(request.headers(), &line["options"]);
    let stream = TcpStream::connect(stage.gateway.address).await.unwrap();
    let (mut socket, response) = client_async(request, stream).await.unwrap();
    let wanted = line["upstream"][0]["frames"].as_array().map_or(0, Vec::len);
    let (ours, mut found) = handshake(line, response.headers());
    talk(&mut socket, upstream, recorded, wanted, &mut found).await;
    let seen = upstream.seen(wanted).await;
    drop(socket);
    head(stage, line, &seen.head, &mut found);
    let told = |frames: &[Value]| {
        let lines: Vec<String> = frames
            .iter()
            .map(|f| format!("{} {} {}", f["opcode"], f["length"], f["start"]))
            .collect();
        lines.join(" | ")
    };
    let there =
        line["upstream"][0]["frames"].as_array().map(|frames| told(frames)).unwrap_or_default();
    note(&mut found, Check::UpstreamBody, there, told(&seen.frames));
    (ours, found)
}

fn note(found: &mut Comparison, check: Check, recorded: String, ours: String) {
    found.checks += 1;
    if recorded != ours {
        found.differences.push(Difference { check, recorded, ours });
    }
}

fn handshake_headers(made: &HeaderMap, options: &Value) -> HeaderMap {
    let mut headers = made.clone();
    headers.insert("host", "gw.test".parse().unwrap());
    for header in options["header"].as_array().into_iter().flatten() {
        let (name, value) = header.as_str().unwrap().split_once(": ").unwrap();
        headers.insert(name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap());
    }
    if let Some(origin) = options["origin"].as_str() {
        headers.insert("origin", origin.parse().unwrap());
    }
    if let Some(offered) = options["subprotocols"].as_array() {
        let offered: Vec<&str> = offered.iter().filter_map(Value::as_str).collect();
        headers.insert("sec-websocket-protocol", offered.join(",").parse().unwrap());
    }
    headers
}

/// The answer to the handshake: the recorded headers, and none that were not recorded.
fn handshake(line: &Value, headers: &HeaderMap) -> (Ours, Comparison) {
    let mut there = String::from("HTTP/1.1 101 Switching Protocols\r\n");
    for (name, value) in line["handshake"].as_object().unwrap() {
        there.push_str(&format!("{name}: {}\r\n", value.as_str().unwrap()));
    }
    let mut here = String::from("HTTP/1.1 101 Switching Protocols\r\n");
    for (name, value) in headers.iter().filter(|(name, _)| *name != "sec-websocket-accept") {
        here.push_str(&format!("{name}: {}\r\n", value.to_str().unwrap()));
    }
    let recorded = Exchange {
        note: String::new(),
        sent: Vec::new(),
        upstream: Vec::new(),
        got: Got { status: 101, head: there.into_bytes(), ..Got::default() },
        websocket: None,
    };
    let answer = longmen_benchmark::raw::Answer { head: here.into_bytes(), ..Default::default() };
    let ours = Ours { answer, closed: None, upstream: Vec::new(), raw: None };
    let found = compare(&recorded, &ours, None, Choice::Compared);
    (ours, found)
}

/// The head that the upstream saw.
fn head(stage: &Stage, line: &Value, head: &[u8], found: &mut Comparison) {
    let without_key = |head: &[u8]| {
        let text = String::from_utf8_lossy(head).into_owned();
        let lines: Vec<&str> =
            text.lines().filter(|line| !line.starts_with("sec-websocket-key")).collect();
        lines.join("\r\n").into_bytes()
    };
    let there = stage.here(line["upstream"][0]["head"].as_str().unwrap().as_bytes());
    let recorded = Exchange {
        note: String::new(),
        sent: Vec::new(),
        upstream: vec![Seen {
            upstream: "U7".into(),
            connection: 0,
            head: without_key(&there),
            body: None,
        }],
        got: Got::default(),
        websocket: None,
    };
    let request =
        Received { connection: 0, head: without_key(head), raw_body: Vec::new(), complete: true };
    let ours = Ours {
        answer: longmen_benchmark::raw::Answer::default(),
        closed: None,
        upstream: vec![("U7".into(), request)],
        raw: None,
    };
    let compared = compare(&recorded, &ours, None, Choice::Compared);
    found.checks += compared.checks;
    found.differences.extend(compared.differences);
}

/// What the client says, and what it hears.
async fn talk(
    socket: &mut WebSocketStream<TcpStream>,
    upstream: &Upstream,
    recorded: &Exchange,
    frames: usize,
    found: &mut Comparison,
) {
    let line = recorded.websocket.as_ref().expect("a websocket exchange");
    for entry in line["log"].as_array().unwrap() {
        let said = match entry["sent"].as_str() {
            Some(said) => said.to_owned(),
            // The recorder kept no word of what it sent where its client failed.
            None if recorded.note.starts_with("upstream PINGs") => "pingme".to_owned(),
            None => recorded.note.clone(),
        };
        if socket.send(message(&said)).await.is_err() {
            note(found, Check::Body, entry.to_string(), "the connection is gone".into());
            return;
        }
        let heard = if said == "pingme" {
            // A client answers pings while it waits for something that does not come.
            let hears = async {
                loop {
                    let heard = next(socket).await;
                    if !heard.starts_with("9 ") {
                        return heard;
                    }
                }
            };
            tokio::select! {
                heard = hears => heard,
                _ = upstream.seen(frames) => "nothing".to_owned(),
            }
        } else {
            next(socket).await
        };
        let there = match entry["got"].as_str() {
            Some(got) => format!("{} {} {got}", entry["opcode"], entry["length"]),
            None if said == "pingme" => "nothing".to_owned(),
            None => "reset".to_owned(),
        };
        note(found, Check::Body, there, heard);
    }
    if let Some(code) = recorded.note.strip_prefix("client closes with ") {
        let code = code.parse::<u16>().unwrap().into();
        let close = CloseFrame { code, reason: "cc".into() };
        let _ = socket.send(Message::Close(Some(close))).await;
    }
}

fn message(said: &str) -> Message {
    let many = |text: &str| text.trim_end_matches(')').rsplit('(').next()?.parse::<usize>().ok();
    match said {
        "PING" => Message::Ping(Bytes::from_static(b"cp")),
        "binary 0001" => Message::binary(vec![0, 1]),
        _ if said.contains("characters from the client") => {
            Message::text("x".repeat(said.split(' ').next().unwrap().parse().unwrap()))
        }
        _ if said.starts_with("xxx") => Message::text("x".repeat(many(said).unwrap())),
        _ => Message::text(said.to_owned()),
    }
}

/// The next thing the client hears, in the form of the recordings.
async fn next(socket: &mut WebSocketStream<TcpStream>) -> String {
    let heard = tokio::time::timeout(LIMIT, socket.next()).await.expect("nothing is heard");
    match heard {
        Some(Ok(Message::Close(close))) => match close {
            Some(close) => {
                let code = u16::from(close.code);
                format!("8 {} close {code} {}", 2 + close.reason.len(), close.reason)
            }
            None => "8 0 close 0 ".to_owned(),
        },
        Some(Ok(message)) => {
            let frame = frame(&message);
            format!("{} {} {}", frame["opcode"], frame["length"], frame["start"].as_str().unwrap())
        }
        Some(Err(_)) | None => "reset".to_owned(),
    }
}
