//! Opening connections: look-up, all addresses, a proxy on the way, TLS. Both strategies open
//! theirs with what is here.

mod proxy;
mod tcp;
mod tls;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use http::StatusCode;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::dns::{Dns, LookUpError};
use super::stats::ConnectFailure;
use super::{ClientOptions, SHENYU_TIMEOUT};
use crate::error::{Fault, GatewayError, Reason, Retry};
use crate::upstream::{Address, Scheme};

pub(super) use tls::{Alpn, TlsClient};
pub use tls::{TlsConnector, TlsSetupError};

/// A connection by TLS.
pub type TlsStream = tokio_rustls::client::TlsStream<TcpStream>;

/// A connection, ready for HTTP.
pub(super) enum Transport {
    Plain(TcpStream),
    Tls(Box<TlsStream>),
}

impl Transport {
    /// Whether the handshake settled on HTTP/2.
    pub(super) fn is_http2(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.get_ref().1.alpn_protocol() == Some(b"h2"),
        }
    }
}

/// Why a connection cannot be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error("{name} cannot be looked up: {source}")]
    Dns { name: Box<str>, source: LookUpError },
    #[error("{0}")]
    Tcp(#[source] io::Error),
    #[error("no connection within {0:?}")]
    Timeout(std::time::Duration),
    #[error("no TLS handshake within {0:?}")]
    TlsTimeout(std::time::Duration),
    #[error("TLS: {0}")]
    Tls(#[source] io::Error),
    #[error("proxy: {0}")]
    Proxy(#[source] io::Error),
}

impl ConnectError {
    pub(super) fn kind(&self) -> ConnectFailure {
        match self {
            Self::Dns { .. } => ConnectFailure::Dns,
            Self::Tcp(_) => ConnectFailure::Connect,
            Self::Timeout(_) | Self::TlsTimeout(_) => ConnectFailure::Timeout,
            Self::Tls(_) => ConnectFailure::Tls,
            Self::Proxy(_) => ConnectFailure::Proxy,
        }
    }

    /// What it means for the request: nothing of it was sent.
    pub(super) fn for_request(&self, address: &Address) -> GatewayError {
        failed(self.kind(), address, self)
    }
}

/// The error of a request that has no connection.
pub(super) fn failed(
    failure: ConnectFailure,
    address: &Address,
    detail: impl fmt::Display,
) -> GatewayError {
    let error = match failure {
        ConnectFailure::Timeout => GatewayError::new(
            Fault::Upstream,
            Reason::UpstreamConnectTimeout,
            StatusCode::GATEWAY_TIMEOUT,
            "connecting to the upstream took too long",
        )
        .shenyu(StatusCode::REQUEST_TIMEOUT, SHENYU_TIMEOUT),
        ConnectFailure::PoolFull | ConnectFailure::PoolTimeout => GatewayError::new(
            Fault::Gateway,
            Reason::UpstreamPool,
            StatusCode::SERVICE_UNAVAILABLE,
            "no connection to the upstream is free",
        ),
        ConnectFailure::Dns
        | ConnectFailure::Connect
        | ConnectFailure::Tls
        | ConnectFailure::Proxy => {
            let (reason, message) = match failure {
                ConnectFailure::Dns => {
                    (Reason::UpstreamDns, "the upstream's name cannot be looked up")
                }
                ConnectFailure::Tls => {
                    (Reason::UpstreamTls, "no secure connection to the upstream is possible")
                }
                _ => (Reason::UpstreamConnect, "the upstream cannot be reached"),
            };
            GatewayError::new(Fault::Upstream, reason, StatusCode::BAD_GATEWAY, message)
                .shenyu(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error")
        }
    };
    error.retry_when(Retry::Safe).detail(format_args!("{address}: {detail}"))
}

/// Opens connections, for all workers.
#[derive(Debug)]
pub(super) struct Connector {
    pub(super) dns: Dns,
    pub(super) tls: TlsClient,
    pub(super) options: Arc<ClientOptions>,
}

impl Connector {
    pub(super) fn new(dns: Dns, options: &Arc<ClientOptions>) -> Result<Self, TlsSetupError> {
        let tls = TlsClient::new(&options.tls)?;
        Ok(Self { dns, tls, options: Arc::clone(options) })
    }

    /// Whether connections to this host lead through the proxy.
    pub(super) fn is_proxied(&self, host: &str) -> bool {
        self.options
            .proxy
            .as_ref()
            .is_some_and(|proxy| !proxy.direct.as_ref().is_some_and(|direct| direct.is_match(host)))
    }

    /// Connects to an address: all addresses of the name in turn, within one limit; then TLS where
    /// the scheme asks for it, offering `alpn`.
    pub(super) async fn connect(
        &self,
        address: &Address,
        alpn: Alpn,
    ) -> Result<Transport, ConnectError> {
        let limit = self.options.connect_timeout;
        let stream = match timeout(limit, self.reach(address)).await {
            Ok(reached) => reached?,
            Err(_) => return Err(ConnectError::Timeout(limit)),
        };
        if address.scheme == Scheme::Http {
            return Ok(Transport::Plain(stream));
        }
        let limit = self.options.tls.handshake_timeout;
        match timeout(limit, self.tls.handshake(&address.host, stream, alpn)).await {
            Ok(secured) => Ok(Transport::Tls(Box::new(secured.map_err(ConnectError::Tls)?))),
            Err(_) => Err(ConnectError::TlsTimeout(limit)),
        }
    }

    /// A TCP connection to an address, or a tunnel of the proxy. No time limit.
    pub(super) async fn reach(&self, address: &Address) -> Result<TcpStream, ConnectError> {
        let Some(proxy) = self.options.proxy.as_ref().filter(|_| self.is_proxied(&address.host))
        else {
            let found = match address.ip {
                Some(ip) => vec![ip],
                None => self.look_up(&address.host, address.port).await?,
            };
            return tcp::dial(&found).await.map_err(ConnectError::Tcp);
        };
        // The name of the upstream is the proxy's to look up.
        let found = match proxy.host.parse() {
            Ok(ip) => vec![SocketAddr::new(ip, proxy.port)],
            Err(_) => self.look_up(&proxy.host, proxy.port).await?,
        };
        let stream = tcp::dial(&found).await.map_err(ConnectError::Proxy)?;
        proxy::tunnel(stream, proxy, address).await.map_err(ConnectError::Proxy)
    }

    async fn look_up(&self, name: &str, port: u16) -> Result<Vec<SocketAddr>, ConnectError> {
        let found = self.dns.resolve(name).await;
        let found = found.map_err(|source| ConnectError::Dns { name: Box::from(name), source })?;
        Ok(found.into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
    }
}
