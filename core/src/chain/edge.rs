//! What a worker knows about the front of the gateway: whom it believes, what it tells upstreams
//! about clients, and who watches.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use http::HeaderValue;

use super::client_address;
use crate::config::Cidr;
use crate::telemetry::Observer;

/// What becomes of `X-Forwarded-For`, `-Proto`, `-Host` and `Via` (`shenyu.forwarded.mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Forwarded {
    /// None added; the client's are passed on.
    #[default]
    Off,
    /// Added to those of trusted peers; those of others are replaced.
    Append,
    /// Always replaced.
    Replace,
}

/// The front of the gateway as all connections of a worker share it. The default adds, believes and
/// watches nothing.
#[derive(Debug, Default)]
pub struct Edge {
    /// Networks of proxies whose forwarding headers are believed; empty: nobody's.
    pub trusted: Box<[Cidr]>,
    /// What upstreams are told about the way a request came.
    pub forwarded: Forwarded,
    /// Whether upstreams are sent `X-Request-Id` and `traceparent`.
    pub id_upstream: bool,
    /// Whether answers carry `X-Request-Id`.
    pub id_response: bool,
    /// Whether bodies of GET and HEAD requests are dropped.
    pub drop_get_body: bool,
    /// Whether queries leave in ShenYu's form.
    pub normalize_query: bool,
    /// Who counts and logs requests.
    pub observer: Option<Observer>,
}

impl Edge {
    /// Whether requests need an id.
    #[must_use]
    pub fn wants_ids(&self) -> bool {
        self.id_upstream || self.id_response || self.logs()
    }

    /// Whether requests are logged.
    #[must_use]
    pub fn logs(&self) -> bool {
        self.observer.as_ref().is_some_and(Observer::logs)
    }

    /// Whether forwarding headers of this address are believed.
    #[must_use]
    pub fn trusts(&self, address: IpAddr) -> bool {
        client_address::is_trusted(&self.trusted, address)
    }
}

/// What is known about the client's connection.
#[derive(Debug)]
pub struct Connection {
    /// The socket's peer.
    pub peer: SocketAddr,
    /// The socket's own address.
    pub local: SocketAddr,
    /// What the worker knows about the front.
    pub edge: Arc<Edge>,
    peer_value: OnceLock<HeaderValue>,
}

impl Connection {
    /// A connection that was accepted.
    #[must_use]
    pub const fn new(peer: SocketAddr, local: SocketAddr, edge: Arc<Edge>) -> Self {
        Self { peer, local, edge, peer_value: OnceLock::new() }
    }

    /// The scheme clients used. There is no TLS on the public port yet.
    #[must_use]
    #[expect(clippy::unused_self, reason = "with TLS on the public port it is the connection's")]
    pub const fn scheme(&self) -> &'static str {
        "http"
    }

    /// The peer's address as it stands in a header; written once per connection.
    #[must_use]
    pub fn peer_value(&self) -> &HeaderValue {
        self.peer_value.get_or_init(|| {
            let text = self.peer.ip().to_canonical().to_string();
            HeaderValue::try_from(text).expect("an address is made of digits, letters, . and :")
        })
    }
}
