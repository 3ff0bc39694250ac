//! A small load that checks every answer.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::support::LIMIT;

/// Whether a connection that is refused ends a client, or is a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    Ends,
    Fails,
}

pub(super) struct Load {
    clients: JoinSet<Result<(), String>>,
    done: Arc<AtomicBool>,
    answers: Arc<AtomicU64>,
}

impl Load {
    /// Clients that keep their connection, and as many that open one for each request.
    pub(super) fn start(address: SocketAddr, each: u64, refused: Refused) -> Self {
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

    pub(super) fn answers(&self) -> u64 {
        self.answers.load(Ordering::Relaxed)
    }

    /// Waits until this many more requests were answered.
    pub(super) async fn more(&self, count: u64) {
        let wanted = self.answers() + count;
        let waiting = async {
            while self.answers() < wanted {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(LIMIT, waiting).await.expect("nothing is answered any more");
    }

    /// Ends the clients. Returns how many answers were right; whatever was not fails the test.
    pub(super) async fn end(self, now: bool) -> u64 {
        self.done.store(now, Ordering::Relaxed);
        let ended = tokio::time::timeout(LIMIT, self.clients.join_all()).await;
        let failures: Vec<_> =
            ended.expect("clients do not end").into_iter().filter_map(Result::err).collect();
        assert!(failures.is_empty(), "{failures:#?}");
        self.answers.load(Ordering::Relaxed)
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
        let closes = one(&mut stream, &text, keeps)
            .await
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
            let body = body_of(&head, &seen[end + 4..]);
            if let Some(body) = body {
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
    rest.ends_with(b"0\r\n\r\n").then(|| longmen_benchmark::raw::decode_chunked(rest))
}
