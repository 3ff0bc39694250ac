//! One websocket session with an admin, until it ends.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use http::{HeaderValue, Request};
use longmen_core::sync::{
    INSTANCE_HEADER, NAMESPACE_HEADER, NEGOTIATION_HEADER, NEGOTIATION_VERSION, PORT_HEADER,
    TOKEN_HEADER,
};
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::transport::{Place, Transport};
use super::{LinkOptions, report};

/// Pings that stay without any sign of life until a session counts as dead.
const MISSED: u32 = 3;

/// Why a session could not be opened, or ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionError {
    #[error("{0}")]
    Url(String),
    #[error("cannot connect: {0}")]
    Connect(#[source] std::io::Error),
    #[error("connecting took longer than {0:?}")]
    Slow(Duration),
    #[error("handshake: {0}")]
    Handshake(String),
    #[error("connection lost: {0}")]
    Lost(String),
    #[error("the admin closed the connection")]
    Closed,
    #[error("no sign of life from the admin for {0:?}")]
    Dead(Duration),
    #[error("no answer to the request for everything within {0:?}")]
    NoRefresh(Duration),
    #[error("{0}")]
    Protocol(String),
}

/// An open session.
pub(super) struct Session {
    socket: WebSocketStream<Transport>,
    /// Whether the admin is one of ours.
    pub(super) ours: bool,
    ping: Duration,
    next_ping: Instant,
    last_sign: Instant,
}

impl Session {
    /// Connects and shakes hands.
    pub(super) async fn open(url: &str, options: &LinkOptions) -> Result<Self, SessionError> {
        let limit = options.connect_timeout;
        match timeout(limit, Self::connect(url, options)).await {
            Ok(result) => result,
            Err(_) => Err(SessionError::Slow(limit)),
        }
    }

    async fn connect(url: &str, options: &LinkOptions) -> Result<Self, SessionError> {
        let request = request(url, options)?;
        let place = Place::of(request.uri(), "ws", "wss").ok_or_else(|| {
            let expected = "expected ws://host:port/websocket or wss://host:port/websocket";
            SessionError::Url(format!("url {url:?}: {expected}"))
        })?;
        let stream = place.connect(&options.tls).await.map_err(SessionError::Connect)?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(options.max_message_bytes))
            .max_frame_size(Some(options.max_message_bytes));
        let (socket, answer) = client_async_with_config(request, stream, Some(config))
            .await
            .map_err(|error| SessionError::Handshake(handshake(&error)))?;
        let ours = answer
            .headers()
            .get(NEGOTIATION_HEADER)
            .is_some_and(|version| version == NEGOTIATION_VERSION);
        let now = Instant::now();
        let ping = options.ping_interval;
        Ok(Self { socket, ours, ping, next_ping: now + ping, last_sign: now })
    }

    /// Sends a text.
    pub(super) async fn send(&mut self, text: impl Into<String>) -> Result<(), SessionError> {
        self.socket.send(Message::text(text.into())).await.map_err(|error| lost(&error))
    }

    /// The next text from the admin. In between: a ping and a report at every interval, pongs, and
    /// the watch over signs of life.
    ///
    /// Cancel safe: a text is never lost.
    pub(super) async fn next(&mut self) -> Result<String, SessionError> {
        loop {
            let received = tokio::select! {
                received = self.socket.next() => received,
                () = tokio::time::sleep_until(self.next_ping) => {
                    self.alive().await?;
                    continue;
                }
            };
            self.last_sign = Instant::now();
            match received {
                Some(Ok(Message::Text(text))) => return Ok(text.as_str().to_owned()),
                Some(Ok(Message::Close(_))) | None => return Err(SessionError::Closed),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(lost(&error)),
            }
        }
    }

    async fn alive(&mut self) -> Result<(), SessionError> {
        let limit = self.ping * MISSED;
        if self.last_sign.elapsed() > limit {
            return Err(SessionError::Dead(limit));
        }
        self.next_ping = Instant::now() + self.ping;
        self.socket.send(Message::Ping(Vec::new().into())).await.map_err(|error| lost(&error))?;
        self.send(report::text()).await
    }

    /// Ends the session in good order: close code 1000, and not longer than a moment.
    pub(super) async fn close(mut self) {
        let frame = CloseFrame { code: CloseCode::Normal, reason: "".into() };
        let _ = timeout(Duration::from_millis(500), self.socket.close(Some(frame))).await;
    }
}

/// The handshake request: what a stock gateway sends, and our word.
fn request(url: &str, options: &LinkOptions) -> Result<Request<()>, SessionError> {
    let bad = |error: &dyn std::fmt::Display| SessionError::Url(format!("url {url:?}: {error}"));
    let mut request = url.into_client_request().map_err(|error| bad(&error))?;
    let headers = request.headers_mut();
    let mut add = |name: &'static str, value: &str| match HeaderValue::from_str(value) {
        Ok(value) => {
            headers.insert(name, value);
            Ok(())
        }
        Err(error) => Err(bad(&format!("header {name}: {error}"))),
    };
    // Names of headers have no case on the wire.
    add(lower(NAMESPACE_HEADER), &options.namespace)?;
    add(lower(PORT_HEADER), &options.port.to_string())?;
    add("origin", &options.origin)?;
    add(NEGOTIATION_HEADER, NEGOTIATION_VERSION)?;
    add(INSTANCE_HEADER, &options.identity.next())?;
    if let Some(token) = &options.token {
        add(TOKEN_HEADER, token)?;
    }
    Ok(request)
}

/// The names the reference spells with capitals, as the header map wants them.
fn lower(name: &str) -> &'static str {
    if name == NAMESPACE_HEADER { "namespaceid" } else { "clientport" }
}

/// What a refused handshake says: the status, since that tells what to change.
fn handshake(error: &Error) -> String {
    match error {
        Error::Http(answer) => {
            let status = answer.status();
            let hint = match status.as_u16() {
                401 => " (is shenyu.sync.token the token of the admin?)",
                403 => " (is shenyu.sync.websocket.allowOrigin one of the admin's allowOrigins?)",
                _ => "",
            };
            format!("the admin answered {status}{hint}")
        }
        other => other.to_string(),
    }
}

fn lost(error: &Error) -> SessionError {
    match error {
        Error::ConnectionClosed | Error::AlreadyClosed => SessionError::Closed,
        other => SessionError::Lost(other.to_string()),
    }
}
