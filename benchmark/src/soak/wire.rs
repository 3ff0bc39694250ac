//! Connections of the soak's clients: streaming both ways.

use std::convert::Infallible;

use anyhow::Context as _;
use bytes::Bytes;
use futures_util::stream;
use http::header::HOST;
use http::{HeaderValue, Method, Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::Lane;
use super::pattern::{CHUNK, Pattern};

/// The header that the soak's selectors look at.
pub(super) const ROUTE: &str = "x-soak";

/// A body of any kind.
pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Bytes that are there already.
pub(super) fn full(bytes: Bytes) -> Body {
    Full::new(bytes).boxed_unsync()
}

/// `total` bytes of the pattern in pieces of at most `piece` bytes.
pub(super) fn streamed(pattern: &Pattern, total: u64, piece: usize) -> Body {
    let pattern = pattern.clone();
    let pieces = stream::unfold(0_u64, move |offset| {
        let left = usize::try_from(total - offset).unwrap_or(CHUNK);
        let bytes = pattern.slice(offset, left.min(piece));
        let next = offset + bytes.len() as u64;
        std::future::ready((left > 0).then_some((Ok(Frame::data(bytes)), next)))
    });
    StreamBody::new(pieces).boxed_unsync()
}

/// One connection to the gateway.
pub(super) struct Wire {
    sender: SendRequest<Body>,
    host: HeaderValue,
}

impl Lane {
    pub(super) async fn tcp(&self) -> anyhow::Result<TcpStream> {
        let stream = TcpStream::connect(self.gateway.authority()).await;
        let stream = stream.context("connect to the gateway")?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    pub(super) async fn wire(&self) -> anyhow::Result<Wire> {
        let stream = self.tcp().await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Wire { sender, host: HeaderValue::from_str(self.gateway.authority())? })
    }

    /// A request that takes the soak's route.
    pub(super) fn request(
        &self,
        method: Method,
        target: &str,
        body: Body,
    ) -> anyhow::Result<Request<Body>> {
        let request = Request::builder().method(method).uri(target).header(ROUTE, &*self.route);
        Ok(request.body(body)?)
    }
}

impl Wire {
    /// Sends a request; returns the head of the answer, the body still to come.
    pub(super) async fn send(
        &mut self,
        mut request: Request<Body>,
    ) -> anyhow::Result<Response<Incoming>> {
        request.headers_mut().insert(HOST, self.host.clone());
        self.sender.ready().await.context("the connection was closed")?;
        self.sender.send_request(request).await.context("no answer")
    }
}
