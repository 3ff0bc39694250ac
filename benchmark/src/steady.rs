//! Clients that send one request after the other, check every answer, and know what a stop may do: a
//! connection may be refused, or closed between two requests after its answer said so; nothing else.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::raw::decode_chunked;

/// How long a client waits for anything.
const LIMIT: Duration = Duration::from_secs(30);

/// Whether a connection that is refused ends a client, or is a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// It ends the client: the server stops.
    Ends,
    /// It is a failure: somebody must listen.
    Fails,
}

/// Clients at work.
#[derive(Debug)]
pub struct Steady {
    clients: JoinSet<Result<(), String>>,
    done: Arc<AtomicBool>,
    answers: Arc<AtomicU64>,
}

/// What the clients have seen.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Right answers.
    pub answers: u64,
    /// What went wrong, in words; a client ends with its first.
    pub failures: Vec<String>,
}

impl Steady {
    /// Starts `each` clients that keep their connection, and as many that open one for each request,
    /// to an address where `POST /echo` sends the body back. To be called in a runtime.
    #[must_use]
    pub fn start(address: SocketAddr, each: u64, refused: Refused) -> Self {
        let (done, answers) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut clients = JoinSet::new();
        for number in 0..each * 2 {
            let (done, answers) = (Arc::clone(&done), Arc::clone(&answers));
            clients.spawn(async move {
                let client = client(address, number, number % 2 == 0, refused, &done, &answers);
                client.await.map_err(|error| format!("client {number}: {error}"))
            });
        }
        Self { clients, done, answers }
    }

    /// Right answers so far.
    #[must_use]
    pub fn answers(&self) -> u64 {
        self.answers.load(Ordering::Relaxed)
    }

    /// Waits until this many more requests were answered. Says whether they were, within 30 s.
    pub async fn more(&self, count: u64) -> bool {
        let wanted = self.answers() + count;
        let waiting = async {
            while self.answers() < wanted {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(LIMIT, waiting).await.is_ok()
    }

    /// Waits until all clients have ended by themselves, or with `now` after their next answer.
    pub async fn end(self, now: bool) -> Outcome {
        if now {
            self.done.store(true, Ordering::Relaxed);
        }
        let mut failures = match tokio::time::timeout(LIMIT, self.clients.join_all()).await {
            Ok(ended) => ended.into_iter().filter_map(Result::err).collect(),
            Err(_) => vec![format!("clients still at work after {LIMIT:?}")],
        };
        failures.sort();
        Outcome { answers: self.answers.load(Ordering::Relaxed), failures }
    }
}

async fn client(
    address: SocketAddr,
    number: u64,
    keeps: bool,
    refused: Refused,
    done: &AtomicBool,
    answers: &AtomicU64,
) -> Result<(), String> {
    let mut kept: Option<TcpStream> = None;
    for count in 0_u64.. {
        if done.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut stream = match kept.take() {
            Some(stream) => stream,
            None => match TcpStream::connect(address).await {
                Ok(stream) => stream,
                Err(error)
                    if refused == Refused::Ends && error.kind() == ErrorKind::ConnectionRefused =>
                {
                    return Ok(());
                }
                Err(error) => return Err(format!("request {count} cannot connect: {error}")),
            },
        };
        let text = format!("{number}/{count}");
        let exchange = tokio::time::timeout(LIMIT, one(&mut stream, &text, keeps)).await;
        let closes = exchange
            .unwrap_or_else(|_| Err(format!("no answer within {LIMIT:?}")))
            .map_err(|error| format!("request {count}: {error}"))?;
        answers.fetch_add(1, Ordering::Relaxed);
        if keeps && !closes {
            kept = Some(stream);
        }
    }
    Ok(())
}

/// One request, whose answer must be its own body. Returns whether the connection ends with it.
async fn one(stream: &mut TcpStream, text: &str, keeps: bool) -> Result<bool, String> {
    let close = if keeps { "" } else { "Connection: close\r\n" };
    let length = text.len();
    let request =
        format!("POST /echo HTTP/1.1\r\nHost: h\r\n{close}Content-Length: {length}\r\n\r\n{text}");
    stream.write_all(request.as_bytes()).await.map_err(|error| format!("sending: {error}"))?;
    let mut seen = Vec::new();
    loop {
        if let Some(end) = seen.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&seen[..end]).to_ascii_lowercase();
            if let Some(body) = body_of(&head, &seen[end + 4..]) {
                let right = head.starts_with("http/1.1 200 ") && body == text.as_bytes();
                let closes = head.contains("connection: close");
                return if right { Ok(closes) } else { Err(format!("wrong answer: {head}")) };
            }
        }
        let read = stream.read_buf(&mut seen).await;
        if read.map_err(|error| format!("after {} bytes: {error}", seen.len()))? == 0 {
            return Err(format!("ended after {} bytes of an answer", seen.len()));
        }
    }
}

/// The body, once it is whole.
fn body_of(head: &str, rest: &[u8]) -> Option<Vec<u8>> {
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    if let Some(length) = length {
        let length: usize = length.parse().ok()?;
        return (rest.len() >= length).then(|| rest[..length].to_vec());
    }
    rest.ends_with(b"0\r\n\r\n").then(|| decode_chunked(rest))
}
