//! An HTTP/1.1 client for measuring: one connection, one request at a time, nothing retried.

use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Longest wait for a whole answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Largest answer that is read; whoever sends more is broken.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// Where to send requests: the `http://host:port` of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    authority: String,
    host: HeaderValue,
}

/// A keep-alive connection, opened when it is first needed and again when it was closed.
#[derive(Debug)]
pub struct Connection {
    server: Server,
    sender: Option<SendRequest<Full<Bytes>>>,
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, read to its end.
    pub body: Bytes,
}

// === impl Server ===

impl Server {
    /// Reads `http://host:port`; a path, a query or another scheme is refused.
    ///
    /// # Errors
    /// When the text has another form.
    pub fn parse(url: &str) -> anyhow::Result<Self> {
        let expected = || format!("server {url:?} is not of the form http://host:port");
        let authority = url.strip_prefix("http://").with_context(expected)?;
        let authority = authority.strip_suffix('/').unwrap_or(authority);
        ensure!(!authority.contains(['/', '?', '#', '@']), expected());
        let (host, port) = authority.rsplit_once(':').with_context(expected)?;
        ensure!(!host.is_empty() && port.parse::<u16>().is_ok(), expected());
        let header = HeaderValue::from_str(authority).with_context(expected)?;
        Ok(Self { authority: authority.to_owned(), host: header })
    }

    /// `host:port`.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }
}

// === impl Connection ===

impl Connection {
    /// A connection that is not open yet.
    #[must_use]
    pub const fn new(server: Server) -> Self {
        Self { server, sender: None }
    }

    /// Sends a GET and reads the whole answer.
    ///
    /// # Errors
    /// As [`Connection::send`].
    pub async fn get(&mut self, target: &str) -> anyhow::Result<Answer> {
        self.send(Method::GET, target, HeaderMap::new(), Bytes::new()).await
    }

    /// Sends a request and reads the whole answer, within 10 s.
    ///
    /// # Errors
    /// When it cannot connect, the connection breaks, the answer is larger than 64 MiB or late.
    pub async fn send(
        &mut self,
        method: Method,
        target: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> anyhow::Result<Answer> {
        let what = format!("{method} http://{}{target}", self.server.authority);
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = target.parse().with_context(|| format!("target {target:?}"))?;
        *request.headers_mut() = headers;
        request.headers_mut().insert(HOST, self.server.host.clone());
        let exchanged = tokio::time::timeout(TIMEOUT, self.exchange(request)).await;
        let answer = exchanged.map_err(|_| anyhow!("no answer within {TIMEOUT:?}"));
        answer.and_then(|answer| answer).with_context(|| what).inspect_err(|_| self.sender = None)
    }

    async fn exchange(&mut self, request: Request<Full<Bytes>>) -> anyhow::Result<Answer> {
        let sender = self.ready().await?;
        let (head, mut body) = sender.send_request(request).await?.into_parts();
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            if let Ok(data) = frame?.into_data() {
                ensure!(
                    bytes.len() + data.len() <= MAX_BODY_BYTES,
                    "answer is larger than {MAX_BODY_BYTES} bytes"
                );
                bytes.extend_from_slice(&data);
            }
        }
        Ok(Answer { status: head.status, headers: head.headers, body: bytes.freeze() })
    }

    async fn ready(&mut self) -> anyhow::Result<&mut SendRequest<Full<Bytes>>> {
        // The driver task may still be finishing the last answer, or have seen a close.
        let usable = match &mut self.sender {
            Some(sender) => sender.ready().await.is_ok(),
            None => false,
        };
        if !usable {
            let stream = TcpStream::connect(&self.server.authority).await.context("connect")?;
            stream.set_nodelay(true)?;
            let (sender, connection) =
                hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
            // It ends with the sender, or with the server; errors reach the sender too.
            tokio::spawn(connection);
            self.sender = Some(sender);
        }
        self.sender.as_mut().context("connection was just opened")
    }
}

// === impl Answer ===

impl Answer {
    /// The value of a header, if it is there once and is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// When it is none; the message quotes its beginning.
    pub fn json(&self) -> anyhow::Result<serde_json::Value> {
        serde_json::from_slice(&self.body)
            .with_context(|| format!("status {}: not JSON: {}", self.status, self.excerpt()))
    }

    /// The first 200 bytes of the body as text.
    #[must_use]
    pub fn excerpt(&self) -> String {
        let end = self.body.len().min(200);
        String::from_utf8_lossy(&self.body[..end]).into_owned()
    }
}

/// The headers of a JSON request.
#[must_use]
pub fn json_headers() -> HeaderMap {
    HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))])
}

/// Waits until a GET of `target` is answered with `status`; asks every 50 ms.
///
/// # Errors
/// When that does not happen within `limit`; the message tells the last outcome.
pub async fn wait_for(
    server: &Server,
    target: &str,
    status: StatusCode,
    limit: Duration,
) -> anyhow::Result<Answer> {
    let mut connection = Connection::new(server.clone());
    let mut ticks = tokio::time::interval(Duration::from_millis(50));
    let started = tokio::time::Instant::now();
    loop {
        ticks.tick().await;
        let outcome = match connection.get(target).await {
            Ok(answer) if answer.status == status => return Ok(answer),
            Ok(answer) => format!("status {}: {}", answer.status, answer.excerpt()),
            Err(error) => format!("{error:#}"),
        };
        if started.elapsed() > limit {
            let authority = server.authority();
            bail!("http://{authority}{target} not {status} within {limit:?}: {outcome}");
        }
    }
}
