//! What a request carries through the chain.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::HeaderValue;
use http::request::Parts;
use http::uri::PathAndQuery;
use http_body::Body as _;
use tokio::runtime::Handle as RuntimeHandle;

use super::driver::Switched;
use super::{Connection, Exchange, Observed, Target, client_address, query};
use crate::body::{Body, BodyLimit, Meter};
use crate::condition::check_path;
use crate::error::{Fault, GatewayError, Reason};
use crate::layer::Permit;
use crate::model::MetaData;

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
    /// The request's id, where ids are wanted.
    pub request_id: Option<HeaderValue>,
    /// How large the body may be.
    pub limit: Option<BodyLimit>,
}

impl Inbound {
    /// A request that was just received.
    #[must_use]
    pub fn new(body: Body, connection: Arc<Connection>, received: Instant) -> Self {
        Self { body, connection, received, permit: None, request_id: None, limit: None }
    }

    /// Limits the body, unless it is limited further already.
    pub fn limit_body(&mut self, limit: BodyLimit) {
        tighten(&mut self.limit, limit);
    }
}

fn tighten(held: &mut Option<BodyLimit>, limit: BodyLimit) {
    if held.is_none_or(|held| limit.bytes < held.bytes) {
        *held = Some(limit);
    }
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
    /// Whether the upstream is told the host that the client asked for, not its own.
    pub preserve_host: bool,
    /// How long an attempt may take to the response head where a rule says nothing.
    pub response_timeout: Duration,
    /// The part that lives to the end of the request.
    pub exchange: Exchange,
    /// The request's id, where ids are wanted.
    pub request_id: Option<HeaderValue>,
    client: OnceLock<IpAddr>,
    client_text: OnceLock<Box<str>>,
    limit: Option<BodyLimit>,
    meter: Option<Arc<Meter>>,
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
        let id = inbound.request_id.as_ref();
        let client = OnceLock::new();
        if let Some(observed) = Observed::new(&inbound.connection, id, head.version, &head.headers)
        {
            if let Some(ip) = observed.client {
                let _ = client.set(ip);
            }
            exchange.observe(observed);
            exchange.count();
        }
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
            preserve_host: false,
            response_timeout: Duration::from_secs(3),
            exchange,
            request_id: inbound.request_id,
            client,
            client_text: OnceLock::new(),
            limit: inbound.limit,
            meter: None,
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

    /// The client's address: the right-most hop that is not one of our proxies.
    ///
    /// Found out when first asked for, and kept.
    #[must_use]
    pub fn client_ip(&self) -> IpAddr {
        *self.client.get_or_init(|| {
            let trusted = &self.connection.edge.trusted;
            client_address::resolve(trusted, self.connection.peer.ip(), &self.head.headers)
        })
    }

    /// [`RequestContext::client_ip`] as text, without port.
    #[must_use]
    pub fn client_text(&self) -> &str {
        self.client_text.get_or_init(|| self.client_ip().to_string().into())
    }

    /// Limits the request body, unless it is limited further already. What is announced as longer is
    /// the caller's to refuse; a longer one of unknown length is cut off and refused.
    pub fn limit_body(&mut self, limit: BodyLimit) {
        tighten(&mut self.limit, limit);
    }

    /// Puts limit and count on the body, and drops what GET and HEAD are not to carry.
    ///
    /// A body that needs neither is left as it is.
    pub(super) fn meter_body(&mut self) {
        if self.body.is_end_stream() {
            return;
        }
        // The server holds bodies to the length that they announce.
        let unknown = self.body.size_hint().exact().is_none();
        let method = &self.head.method;
        if *method == http::Method::GET || *method == http::Method::HEAD {
            if self.connection.edge.drop_get_body {
                self.head.headers.remove(http::header::CONTENT_LENGTH);
                crate::body::drain(std::mem::take(&mut self.body));
                return;
            }
            if unknown {
                // Clients take these methods to have no body unless the head says otherwise.
                let chunked = HeaderValue::from_static("chunked");
                self.head.headers.insert(http::header::TRANSFER_ENCODING, chunked);
            }
        }
        let limit = self.limit.filter(|_| unknown);
        if limit.is_none() && !self.exchange.is_observed() {
            return;
        }
        let meter = Arc::new(Meter::default());
        self.exchange.metered(&meter);
        self.body = std::mem::take(&mut self.body)
            .metered(limit.map(|limit| limit.bytes), Arc::clone(&meter));
        self.meter = Some(meter);
    }

    /// The refusal of a body that turned out larger than its limit.
    pub(super) fn over_limit(&self) -> Option<GatewayError> {
        let limit = self.limit?;
        let over = self.meter.as_ref().is_some_and(|meter| meter.is_over());
        over.then(|| (limit.refusal)(limit.bytes))
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
        let anew = self.connection.edge.normalize_query;
        let path = match (&self.rewrite_uri, &self.real_url) {
            (Some(path), _) if !path.trim().is_empty() => path,
            (_, Some(path)) => path,
            _ if anew => return target(query::normalized(self.raw_path(), self.raw_query())),
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
        if anew {
            return target(query::normalized(&text, self.raw_query()));
        }
        if let Some(query) = self.raw_query() {
            // A rewritten path may bring parameters of its own; the client's follow.
            text.push(if path.contains('?') { '&' } else { '?' });
            text.push_str(query);
        }
        target(text)
    }
}

fn target(text: String) -> Result<PathAndQuery, GatewayError> {
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
