//! What a request carries through the chain.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::request::Parts;
use http::uri::PathAndQuery;
use tokio::runtime::Handle as RuntimeHandle;

use super::driver::Switched;
use super::{Exchange, Target};
use crate::body::Body;
use crate::condition::check_path;
use crate::error::{Fault, GatewayError, Reason};
use crate::layer::Permit;
use crate::model::MetaData;

/// What is known about the client's connection.
#[derive(Debug)]
pub struct Connection {
    /// The socket's peer.
    pub peer: SocketAddr,
    /// The socket's own address.
    pub local: SocketAddr,
}

/// A request body together with what the layers around the chain hand to it.
pub struct Inbound {
    /// The body.
    pub body: Body,
    /// The client's connection.
    pub connection: Arc<Connection>,
    /// When the request head was there.
    pub received: Instant,
    /// A permit to be held until the request is over.
    pub permit: Option<Permit>,
}

impl fmt::Debug for Inbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbound")
            .field("body", &self.body)
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}

/// The protocol a request is treated as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RpcType {
    /// Plain HTTP.
    Http,
    /// A websocket handshake.
    WebSocket,
    /// A protocol named by metadata or by the client.
    Other(Box<str>),
}

impl RpcType {
    /// The name as configured.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Http => "http",
            Self::WebSocket => "websocket",
            Self::Other(name) => name,
        }
    }
}

/// A request on its way through the chain.
#[derive(Debug)]
pub struct RequestContext {
    /// The request head. Plugins may change headers and method.
    pub head: Parts,
    /// The request body.
    pub body: Body,
    /// The client's connection.
    pub connection: Arc<Connection>,
    /// The protocol.
    pub rpc_type: RpcType,
    /// The registered API behind the path.
    pub metadata: Option<Arc<MetaData>>,
    /// The path after the contextPath plugin; may be empty. `None`: untouched.
    pub real_url: Option<String>,
    /// The context path that was cut off.
    pub context_path: Option<String>,
    /// The context path that matching goes on with instead.
    pub rewrite_context_path: Option<String>,
    /// The path after the rewrite plugin; wins over `real_url`.
    pub rewrite_uri: Option<String>,
    /// Where it goes.
    pub target: Option<Target>,
    /// How long an attempt may take to the response head where a rule says nothing.
    pub response_timeout: Duration,
    /// The part that lives to the end of the request.
    pub exchange: Exchange,
    /// A websocket that is about to begin.
    pub(super) switched: Option<Box<Switched>>,
    /// Whether the plugin that runs now has its hit as the last of the exchange.
    pub(super) keeps_in_hit: bool,
    runtime: RuntimeHandle,
    unix_ms: i64,
}

impl RequestContext {
    /// Takes a request in. `unix_ms` is the wall clock, `runtime` the worker's.
    #[must_use]
    pub fn new(head: Parts, inbound: Inbound, unix_ms: i64, runtime: RuntimeHandle) -> Self {
        let mut exchange = Exchange::begin(head.method.clone(), head.uri.clone(), inbound.received);
        exchange.permit = inbound.permit;
        Self {
            head,
            body: inbound.body,
            connection: inbound.connection,
            rpc_type: RpcType::Http,
            metadata: None,
            real_url: None,
            context_path: None,
            rewrite_context_path: None,
            rewrite_uri: None,
            target: None,
            response_timeout: Duration::from_secs(3),
            exchange,
            switched: None,
            keeps_in_hit: false,
            runtime,
            unix_ms,
        }
    }

    /// The path as the client sent it: percent-encoded, without query.
    #[must_use]
    pub fn raw_path(&self) -> &str {
        self.head.uri.path()
    }

    /// The query as the client sent it, without `?`; `None` without a `?`.
    #[must_use]
    pub fn raw_query(&self) -> Option<&str> {
        self.head.uri.query()
    }

    /// The wall clock when the request came, in epoch milliseconds.
    #[must_use]
    pub const fn unix_ms(&self) -> i64 {
        self.unix_ms
    }

    /// The path that conditions of the plugins see at this moment.
    ///
    /// `rewriteContextPath + rewriteUri`, else `rewriteContextPath + realUrl`, else
    /// `contextPath + realUrl`, else the raw path.
    ///
    /// Source: ShenYu 2.7.1, path that divide, websocket and rpc plugins match on.
    #[must_use]
    pub fn effective_path(&self) -> Cow<'_, str> {
        let joined = |prefix: &str, rest: &str| Cow::Owned([prefix, rest].concat());
        match (&self.rewrite_context_path, &self.rewrite_uri, &self.context_path, &self.real_url) {
            (Some(prefix), Some(rest), _, _) | (Some(prefix), None, _, Some(rest)) => {
                joined(prefix, rest)
            }
            (None, _, Some(prefix), Some(rest)) => joined(prefix, rest),
            _ => Cow::Borrowed(self.raw_path()),
        }
    }

    /// Keeps something for the plugin whose request head runs now, until the request is over: its
    /// later hooks find it in [`super::Hit::state`]. A rule without later hooks may keep guards too.
    pub fn keep<T: Send + 'static>(&mut self, state: T) {
        match self.exchange.hits.last_mut().filter(|_| self.keeps_in_hit) {
            Some(hit) => hit.state = Some(Box::new(state)),
            None => self.exchange.hold(Box::new(state)),
        }
    }

    /// Runs something beside the request, on the worker that serves it.
    pub fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(future);
    }

    /// The head for the upstream, without a copy.
    pub(super) fn take_head(&mut self) -> Parts {
        let (empty, ()) = http::Request::new(()).into_parts();
        std::mem::replace(&mut self.head, empty)
    }

    /// Whether the upstream can be called again with the same bytes.
    #[must_use]
    pub fn can_replay(&self) -> bool {
        self.body.replay().is_some()
    }

    /// Path and query for the upstream: the rewritten path, else the shortened one, else the raw
    /// one, each with the client's query untouched.
    ///
    /// An empty path becomes `/`. Bytes that may not stand in a target are percent-encoded; what is
    /// encoded already stays. Where the rewritten path has a query, the client's is added to it; the
    /// reference makes one with two `?` of them. What a client's path must not be, a path made of it
    /// must not be either: cutting `/api` off `/api../x` leaves a dot segment.
    ///
    /// # Errors
    /// A rewritten path that is refused, or no request target even so.
    pub fn upstream_target(&self) -> Result<PathAndQuery, GatewayError> {
        let path = match (&self.rewrite_uri, &self.real_url) {
            (Some(path), _) if !path.trim().is_empty() => path,
            (_, Some(path)) => path,
            _ => {
                return Ok(self
                    .head
                    .uri
                    .path_and_query()
                    .cloned()
                    .unwrap_or_else(|| PathAndQuery::from_static("/")));
            }
        };
        let mut text = String::with_capacity(path.len() + 16);
        if !path.starts_with('/') {
            text.push('/');
        }
        push_encoded(&mut text, path);
        let end = text.find('?').unwrap_or(text.len());
        check_path(&text[..end]).map_err(|fault| {
            GatewayError::bad_request(
                Reason::BadPath,
                format!("the rewritten path is refused: {fault}"),
            )
        })?;
        if let Some(query) = self.raw_query() {
            // A rewritten path may bring parameters of its own; the client's follow.
            text.push(if path.contains('?') { '&' } else { '?' });
            text.push_str(query);
        }
        PathAndQuery::from_maybe_shared(Bytes::from(text)).map_err(|error| {
            GatewayError::new(
                Fault::Gateway,
                Reason::PluginFailed,
                http::StatusCode::BAD_REQUEST,
                "the rewritten path is not a valid request target",
            )
            .detail(error)
        })
    }
}

/// Appends a path; percent-encodes what may not stand in one.
fn push_encoded(out: &mut String, path: &str) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in path.bytes() {
        let legal = byte.is_ascii_graphic()
            && !matches!(
                byte,
                b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' | b'#'
            );
        if legal {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}
