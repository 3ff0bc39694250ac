//! A client that sends bytes and reads answers.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::message::{
    ChunkedEnd, Framing, chunked_end, decode_chunked, framing, head_end, header_values,
};

/// More than this of one answer is not read.
const MAX_BYTES: usize = 64 << 20;

/// Room that is made for one read.
const READ_BYTES: usize = 16 << 10;

/// One answer as it came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// Heads of interim answers, each with its empty line.
    pub interim: Vec<u8>,
    /// The head with its empty line; empty where none came.
    pub head: Vec<u8>,
    /// The body as it came, with its chunks.
    pub raw_body: Vec<u8>,
    /// The body without its framing.
    pub body: Vec<u8>,
    /// Whether the connection ended before the message did.
    pub cut: bool,
    /// Whether nothing more came in the time allowed, although the message had not ended.
    pub timed_out: bool,
}

impl Answer {
    /// The status; 0 without a head.
    #[must_use]
    pub fn status(&self) -> u16 {
        status(&self.head)
    }

    /// The values of a header, in order; the name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Vec<String> {
        header_values(&self.head)
            .into_iter()
            .filter(|(found, _)| found == name)
            .map(|(_, value)| String::from_utf8_lossy(&value).into_owned())
            .collect()
    }
}

fn status(head: &[u8]) -> u16 {
    let mut words = head.split(|byte| *byte == b' ');
    let status = words.nth(1).and_then(|word| std::str::from_utf8(word).ok());
    status.and_then(|status| status.parse().ok()).unwrap_or(0)
}

/// A connection for raw requests.
#[derive(Debug)]
pub struct RawClient {
    stream: TcpStream,
    /// Read, but not part of an answer yet.
    buffer: Vec<u8>,
    ended: bool,
    limit: Duration,
}

impl RawClient {
    /// Connects; no wait for an answer takes longer than `limit`.
    ///
    /// # Errors
    /// The connection is refused.
    pub async fn connect(address: SocketAddr, limit: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::new(), ended: false, limit })
    }

    /// Sends bytes. A peer that refuses may close while they are under way, which its answer tells:
    /// that is no error here.
    pub async fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    /// Says that nothing more will be sent.
    pub async fn finish(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// Reads one answer. `head_only`: the request was HEAD, so no body follows.
    pub async fn answer(&mut self, head_only: bool) -> Answer {
        let mut answer = Answer::default();
        loop {
            let Some(head) = self.head().await else {
                answer.cut = self.ended;
                answer.timed_out = !self.ended;
                answer.head = std::mem::take(&mut self.buffer);
                return answer;
            };
            match status(&head) {
                100 | 102..=199 => answer.interim.extend_from_slice(&head),
                _ => {
                    answer.head = head;
                    break;
                }
            }
        }
        let bodiless = head_only || matches!(answer.status(), 101 | 204 | 304);
        let framing = if bodiless { Framing::None } else { framing(&answer.head, Framing::Close) };
        self.body(framing, &mut answer).await;
        answer
    }

    /// Whether the peer has closed the connection, or does so before it sends anything more.
    pub async fn closed(&mut self) -> bool {
        if self.ended {
            return true;
        }
        let silent = self.buffer.is_empty() && !self.more().await;
        silent && self.ended
    }

    /// The raw connection, once both sides speak something else on it. What was read already comes
    /// with it.
    #[must_use]
    pub fn into_parts(self) -> (TcpStream, Vec<u8>) {
        (self.stream, self.buffer)
    }

    async fn head(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = head_end(&self.buffer) {
                return Some(self.take(end));
            }
            if !self.more().await {
                return None;
            }
        }
    }

    async fn body(&mut self, framing: Framing, answer: &mut Answer) {
        let end = loop {
            let end = match framing {
                Framing::None => Some(0),
                Framing::Length(length) => (self.buffer.len() >= length).then_some(length),
                Framing::Chunked => match chunked_end(&self.buffer) {
                    ChunkedEnd::At(end) => Some(end),
                    ChunkedEnd::Open => None,
                    ChunkedEnd::Broken => {
                        answer.cut = true;
                        Some(self.buffer.len())
                    }
                },
                Framing::Close => self.ended.then_some(self.buffer.len()),
            };
            if let Some(end) = end {
                break end;
            }
            if !self.more().await && (framing != Framing::Close || !self.ended) {
                answer.cut = self.ended;
                answer.timed_out = !self.ended;
                break self.buffer.len();
            }
        };
        answer.raw_body = self.take(end);
        answer.body = match framing {
            Framing::Chunked => decode_chunked(&answer.raw_body),
            _ => answer.raw_body.clone(),
        };
    }

    fn take(&mut self, end: usize) -> Vec<u8> {
        let rest = self.buffer.split_off(end);
        std::mem::replace(&mut self.buffer, rest)
    }

    /// Reads something more; false at the end of the connection or of the time allowed.
    async fn more(&mut self) -> bool {
        if self.ended || self.buffer.len() > MAX_BYTES {
            return false;
        }
        self.buffer.reserve(READ_BYTES);
        match timeout(self.limit, self.stream.read_buf(&mut self.buffer)).await {
            Ok(Ok(read)) if read > 0 => true,
            // A reset is an end too.
            Ok(_) => {
                self.ended = true;
                false
            }
            Err(_) => false,
        }
    }
}
