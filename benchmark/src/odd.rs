//! Odd requests: sent to a proxy as bytes, with what reaches the upstream behind it, or the refusal.
//!
//! The requests and what Longmen makes of them are in a file of lines; a test of the gateway holds it
//! to them, and [`peers`] sends the same to other proxies.

pub mod page;
pub mod peers;

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use crate::raw::{Answer, RawClient, RawUpstream, Received, Reply, Then};

/// The target that marks the end of an exchange: it is asked for once the first answer is there.
const END: &str = "/odd-end";

/// What stands for the upstream's host and port.
const UPSTREAM: &str = "<upstream>";

/// How long an upstream may have a half request after the client is done.
const QUIET: Duration = Duration::from_secs(5);

/// One odd request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OddRequest {
    /// `target`, `header` or `framing`.
    pub group: String,
    /// What is odd about it; unique.
    pub name: String,
    /// The bytes.
    pub sent: Vec<u8>,
    /// What Longmen makes of it.
    pub expected: Option<Outcome>,
}

/// What came of one request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The statuses of all answers to the bytes sent; empty where the connection was closed at once.
    pub statuses: Vec<u16>,
    /// Whether the connection was closed, or takes no further request.
    pub closed: bool,
    /// The whole requests that the upstream received, head and body as they came, host and port as
    /// `<upstream>`.
    pub upstream: Vec<Vec<u8>>,
}

/// Reads the lines of a file of requests.
///
/// # Errors
/// A line of another form, with its number.
pub fn load(text: &str) -> anyhow::Result<Vec<OddRequest>> {
    let line =
        |(number, line): (usize, &str)| read(line).with_context(|| format!("line {}", number + 1));
    text.lines().enumerate().map(line).collect()
}

fn read(line: &str) -> anyhow::Result<OddRequest> {
    let line: Value = serde_json::from_str(line)?;
    let text = |name: &str| line[name].as_str().with_context(|| format!("no text {name:?}"));
    let expected = match line.get("closed").and_then(Value::as_bool) {
        None => None,
        Some(closed) => Some(Outcome {
            statuses: list(&line["statuses"])
                .iter()
                .map(|status| u16::try_from(status.as_u64().unwrap_or(0)))
                .collect::<Result<_, _>>()?,
            closed,
            upstream: list(&line["upstream"])
                .iter()
                .map(|text| bytes(text.as_str().unwrap_or_default()))
                .collect::<Result<_, _>>()?,
        }),
    };
    Ok(OddRequest {
        group: text("group")?.to_owned(),
        name: text("name")?.to_owned(),
        sent: bytes(text("sent")?)?,
        expected,
    })
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// In the file each character stands for one byte.
fn bytes(text: &str) -> anyhow::Result<Vec<u8>> {
    text.chars().map(|c| u8::try_from(c).with_context(|| format!("{c:?} is no byte"))).collect()
}

fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// The line of a file for a request and its outcome.
#[must_use]
pub fn line(request: &OddRequest, outcome: &Outcome) -> String {
    let upstream: Vec<String> = outcome.upstream.iter().map(|bytes| text(bytes)).collect();
    json!({
        "group": request.group, "name": request.name, "sent": text(&request.sent),
        "statuses": outcome.statuses, "closed": outcome.closed, "upstream": upstream,
    })
    .to_string()
}

/// An upstream for odd requests, on this address.
///
/// # Errors
/// The address cannot be listened on.
pub async fn upstream(address: SocketAddr) -> std::io::Result<RawUpstream> {
    RawUpstream::start(address, |request: &Received| {
        let end = if is_end(request) { "X-End: 1\r\n" } else { "" };
        let body = if request.line().starts_with("HEAD ") { "" } else { "ok" };
        let bytes = format!("HTTP/1.1 200 OK\r\n{end}Content-Length: 2\r\n\r\n{body}").into_bytes();
        Reply { bytes, then: Then::Keep }
    })
    .await
}

fn is_end(request: &Received) -> bool {
    request.line().split(' ').nth(1) == Some(END)
}

/// Sends one request on a connection of its own and collects what comes of it.
///
/// # Errors
/// The proxy cannot be connected to, or half a request stays with the upstream.
pub async fn run(
    request: &OddRequest,
    proxy: SocketAddr,
    upstream: &RawUpstream,
    limit: Duration,
) -> anyhow::Result<Outcome> {
    drop(upstream.take());
    let mut client = RawClient::connect(proxy, limit).await.context("connect to the proxy")?;
    client.send(&request.sent).await;
    let mut outcome = Outcome::default();
    let head_only = request.sent.starts_with(b"HEAD ");
    let first = client.answer(head_only).await;
    let mut last = note(&mut outcome, &first);
    if !last {
        let end = format!("GET {END} HTTP/1.1\r\nHost: odd.test\r\n\r\n");
        client.send(end.as_bytes()).await;
    }
    while !last {
        let answer = client.answer(false).await;
        if !answer.header("x-end").is_empty() {
            break;
        }
        last = note(&mut outcome, &answer);
    }
    outcome.closed = last;
    ensure!(
        upstream.quiet(QUIET).await,
        "{}: half a request stays with the upstream",
        request.name
    );
    let here = upstream.address().to_string();
    outcome.upstream = upstream
        .take()
        .iter()
        // How much of a request that breaks off gets through, is a matter of time.
        .filter(|received| received.complete && !is_end(received))
        .map(|received| named(&[received.head.as_slice(), &received.raw_body].concat(), &here))
        .collect();
    Ok(outcome)
}

/// Takes an answer down; true where nothing follows it.
fn note(outcome: &mut Outcome, answer: &Answer) -> bool {
    match answer.status() {
        0 => true,
        status => {
            outcome.statuses.push(status);
            answer.cut || answer.timed_out
        }
    }
}

fn named(bytes: &[u8], address: &str) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::with_capacity(bytes.len()), bytes);
    while let Some(at) = rest.windows(address.len()).position(|w| w == address.as_bytes()) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(UPSTREAM.as_bytes());
        rest = &rest[at + address.len()..];
    }
    out.extend_from_slice(rest);
    out
}
