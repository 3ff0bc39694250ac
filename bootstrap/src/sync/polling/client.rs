//! One kept connection to one admin.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use longmen_core::sync::{INSTANCE_HEADER, NEGOTIATION_HEADER};
use longmen_core::upstream::TlsConnector;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::super::Identity;
use super::super::transport::Place;

/// Why a request got no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClientError {
    #[error("url {0:?}: expected http://host:port or https://host:port")]
    Url(String),
    #[error("cannot connect: {0}")]
    Connect(#[source] std::io::Error),
    #[error("connecting took longer than {0:?}")]
    SlowConnect(Duration),
    #[error("connection lost: {0}")]
    Lost(#[source] hyper::Error),
    #[error("no answer within {0:?}")]
    Slow(Duration),
    #[error("an answer is larger than {0} bytes (shenyu.sync.http.maxBodySize)")]
    TooBig(usize),
    #[error("a request cannot be made: {0}")]
    Request(#[source] http::Error),
}

/// A whole answer.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
}

/// Limits of a client.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) connect: Duration,
    /// The longest pause inside an answer.
    pub(super) idle: Duration,
    pub(super) body_bytes: usize,
}

/// Sends requests to one admin, one at a time.
pub(super) struct Client {
    place: Place,
    authority: String,
    tls: TlsConnector,
    identity: Arc<Identity>,
    /// The path before those of the admin, without a slash at the end.
    prefix: String,
    limits: Limits,
    open: Option<Connection>,
}

struct Connection {
    sender: SendRequest<Empty<Bytes>>,
    /// What the gateway calls itself on this connection. Another one counts as later: the admin that
    /// takes it may know of the one before only by what others wrote down.
    instance: HeaderValue,
    /// Drives the connection; its end ends that.
    _driver: JoinSet<()>,
}

impl Client {
    /// A client of the admin at `url`, not connected yet.
    ///
    /// # Errors
    /// The url is none that can be spoken to.
    pub(super) fn new(
        url: &str,
        limits: Limits,
        tls: TlsConnector,
        identity: Arc<Identity>,
    ) -> Result<Self, ClientError> {
        let bad = || ClientError::Url(url.to_owned());
        let uri: Uri = url.parse().map_err(|_| bad())?;
        let place = Place::of(&uri, "http", "https").ok_or_else(bad)?;
        let authority = uri.authority().ok_or_else(bad)?.to_string();
        let prefix = uri.path().trim_end_matches('/').to_owned();
        Ok(Self { place, authority, tls, identity, prefix, limits, open: None })
    }

    /// Sends a request without a body and reads the answer, whose head must come within `patience`.
    /// All requests of this channel may be sent twice: one that found its kept connection closed is.
    ///
    /// # Errors
    /// Why there is no answer; the connection is given up then.
    pub(super) async fn send(
        &mut self,
        method: &Method,
        target: &str,
        headers: &HeaderMap,
        patience: Duration,
    ) -> Result<Answer, ClientError> {
        let kept = self.open.take();
        let was_kept = kept.is_some();
        match self.attempt(kept, method, target, headers, patience).await {
            Err(ClientError::Lost(_)) if was_kept => {
                self.attempt(None, method, target, headers, patience).await
            }
            answered => answered,
        }
    }

    async fn attempt(
        &mut self,
        kept: Option<Connection>,
        method: &Method,
        target: &str,
        headers: &HeaderMap,
        patience: Duration,
    ) -> Result<Answer, ClientError> {
        let mut connection = match kept {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{target}", self.prefix))
            .header(header::HOST, &self.authority)
            .body(Empty::new())
            .map_err(ClientError::Request)?;
        request.headers_mut().extend(headers.clone());
        if headers.contains_key(NEGOTIATION_HEADER) {
            request.headers_mut().insert(INSTANCE_HEADER, connection.instance.clone());
        }
        let exchange = async {
            connection.sender.ready().await?;
            connection.sender.send_request(request).await
        };
        let response = timeout(patience, exchange).await;
        let response = response.map_err(|_| ClientError::Slow(patience))?;
        let (head, body) = response.map_err(ClientError::Lost)?.into_parts();
        let body = self.whole(body).await?;
        self.open = Some(connection);
        Ok(Answer { status: head.status, body })
    }

    async fn connect(&self) -> Result<Connection, ClientError> {
        let connecting = async {
            let stream = self.place.connect(&self.tls).await.map_err(ClientError::Connect)?;
            handshake(TokioIo::new(stream)).await.map_err(ClientError::Lost)
        };
        let limit = self.limits.connect;
        let connected = timeout(limit, connecting).await;
        let (sender, connection) = connected.map_err(|_| ClientError::SlowConnect(limit))??;
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            // How it ends, the request under way is told.
            let _ = connection.await;
        });
        let instance = HeaderValue::try_from(self.identity.next())
            .map_err(|error| ClientError::Request(error.into()))?;
        Ok(Connection { sender, instance, _driver: driver })
    }

    async fn whole(&self, mut body: Incoming) -> Result<Bytes, ClientError> {
        let Limits { idle, body_bytes, .. } = self.limits;
        let mut whole = BytesMut::new();
        loop {
            let frame = timeout(idle, body.frame()).await.map_err(|_| ClientError::Slow(idle))?;
            let Some(frame) = frame else { return Ok(whole.freeze()) };
            let Ok(data) = frame.map_err(ClientError::Lost)?.into_data() else { continue };
            if whole.len().saturating_add(data.len()) > body_bytes {
                return Err(ClientError::TooBig(body_bytes));
            }
            whole.extend_from_slice(&data);
        }
    }
}

/// A value as a parameter of a query.
pub(super) fn escaped(value: &str) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use longmen_core::upstream::TlsOptions;

    use super::*;

    #[test]
    fn urls_name_host_port_and_a_path_before_the_admin_s() {
        let limits = Limits { connect: Duration::ZERO, idle: Duration::ZERO, body_bytes: 0 };
        let parts = |url: &str| {
            let tls = TlsConnector::new(&TlsOptions::default()).unwrap();
            let Client { place, prefix, .. } =
                Client::new(url, limits, tls, Arc::default()).ok()?;
            Some((place.host, place.port, prefix))
        };
        assert_eq!(parts("http://a:9095/"), Some(("a".into(), 9095, String::new())));
        assert_eq!(parts("http://[::1]/ctx/"), Some(("::1".into(), 80, "/ctx".into())));
        assert_eq!(parts("https://a/"), Some(("a".into(), 443, String::new())));
        for wrong in ["http://u:p@a", "a:9095", "ws://a/websocket"] {
            assert_eq!(parts(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn values_are_escaped() {
        assert_eq!(escaped("Sup3r&Secret +ü"), "Sup3r%26Secret%20%2B%C3%BC");
    }
}
