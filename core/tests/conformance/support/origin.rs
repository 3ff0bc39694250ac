//! An upstream that the case itself plays.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::within;

/// A listening socket, plain or with TLS.
pub(crate) struct Origin {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
}

impl Origin {
    pub(crate) async fn new() -> Self {
        Self::at("127.0.0.1:0").await
    }

    pub(crate) async fn at(address: &str) -> Self {
        Self { listener: TcpListener::bind(address).await.unwrap(), tls: None }
    }

    pub(crate) async fn with_tls(config: ServerConfig) -> Self {
        Self { tls: Some(TlsAcceptor::from(Arc::new(config))), ..Self::new().await }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    pub(crate) fn url(&self) -> String {
        self.address().to_string()
    }

    /// The next connection.
    pub(crate) async fn accept(&self) -> Conn {
        let (stream, _) = within(self.listener.accept()).await.unwrap();
        match &self.tls {
            None => Conn::new(Stream::Plain(stream)),
            Some(tls) => {
                let stream = within(tls.accept(stream)).await.unwrap();
                Conn::new(Stream::Tls(Box::new(stream)))
            }
        }
    }

    /// The next connection, of which nothing is expected.
    pub(crate) async fn accept_raw(&self) -> TcpStream {
        within(self.listener.accept()).await.unwrap().0
    }

    /// The next connection, if its handshake succeeds.
    pub(crate) async fn try_accept(&self) -> io::Result<Conn> {
        let (stream, _) = within(self.listener.accept()).await?;
        let tls = self.tls.as_ref().expect("with TLS");
        Ok(Conn::new(Stream::Tls(Box::new(within(tls.accept(stream)).await?))))
    }

    /// Whether a connection waits to be accepted, now that the client is done with its request.
    pub(crate) async fn has_another(&self) -> bool {
        let accept = self.listener.accept();
        tokio::time::timeout(Duration::from_millis(30), accept).await.is_ok()
    }
}

pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<tokio_rustls::server::TlsStream<TcpStream>>),
}

/// A request as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Received {
    /// Up to the blank line, without it.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// The lines behind the last chunk.
    pub(crate) trailers: String,
}

impl Received {
    pub(crate) fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// One connection, from the upstream's side.
pub(crate) struct Conn {
    pub(crate) stream: Stream,
    ahead: Vec<u8>,
}

impl Conn {
    fn new(stream: Stream) -> Self {
        Self { stream, ahead: Vec::new() }
    }

    pub(crate) fn into_stream(self) -> Stream {
        assert!(self.ahead.is_empty());
        self.stream
    }

    async fn more(&mut self) -> usize {
        within(self.stream.read_buf(&mut self.ahead)).await.unwrap_or(0)
    }

    fn take(&mut self, n: usize) -> Vec<u8> {
        let rest = self.ahead.split_off(n);
        std::mem::replace(&mut self.ahead, rest)
    }

    async fn up_to(&mut self, end: &[u8]) -> String {
        loop {
            if let Some(at) = self.ahead.windows(end.len()).position(|window| window == end) {
                let mut found = self.take(at + end.len());
                found.truncate(at);
                return String::from_utf8(found).unwrap();
            }
            assert_ne!(self.more().await, 0, "the client closed before {end:?}");
        }
    }

    /// Exactly so many bytes.
    pub(crate) async fn exactly(&mut self, n: usize) -> Vec<u8> {
        while self.ahead.len() < n {
            assert_ne!(self.more().await, 0, "the client closed after {} bytes", self.ahead.len());
        }
        self.take(n)
    }

    /// The head of a request.
    pub(crate) async fn head(&mut self) -> Received {
        let head = self.up_to(b"\r\n\r\n").await;
        Received { head, body: Vec::new(), trailers: String::new() }
    }

    /// A whole request.
    pub(crate) async fn request(&mut self) -> Received {
        let mut received = self.head().await;
        if received.header("transfer-encoding") == Some("chunked") {
            loop {
                let size = self.up_to(b"\r\n").await;
                let size = usize::from_str_radix(&size, 16).unwrap();
                if size == 0 {
                    break;
                }
                received.body.extend(self.exactly(size).await);
                assert_eq!(self.exactly(2).await, b"\r\n");
            }
            loop {
                let line = self.up_to(b"\r\n").await;
                if line.is_empty() {
                    break;
                }
                received.trailers.push_str(&line);
                received.trailers.push('\n');
            }
        } else if let Some(length) = received.header("content-length") {
            let length = length.parse().unwrap();
            received.body = self.exactly(length).await;
        }
        received
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        within(self.stream.write_all(bytes.as_ref())).await.unwrap();
        within(self.stream.flush()).await.unwrap();
    }

    /// A whole answer with a text.
    pub(crate) async fn answer(&mut self, text: &str) {
        let length = text.len();
        self.send(format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{text}")).await;
    }

    /// Waits until the client has closed its side; what it sent meanwhile is passed over.
    pub(crate) async fn closed(&mut self) {
        while self.more().await > 0 {
            self.ahead.clear();
        }
    }

    /// Closes with a FIN.
    pub(crate) fn close(self) {
        drop(self.stream);
    }

    /// Closes with a RST.
    pub(crate) fn reset(self) {
        let Stream::Plain(stream) = self.stream else { panic!("only without TLS") };
        stream.set_zero_linger().unwrap();
    }

    pub(crate) fn client_certificates(&self) -> usize {
        let Stream::Tls(stream) = &self.stream else { return 0 };
        stream.get_ref().1.peer_certificates().map_or(0, <[_]>::len)
    }

    pub(crate) fn server_name(&self) -> Option<&str> {
        let Stream::Tls(stream) = &self.stream else { return None };
        stream.get_ref().1.server_name()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
