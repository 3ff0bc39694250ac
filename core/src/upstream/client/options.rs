//! What a client is made from.

use std::path::PathBuf;
use std::time::Duration;

/// How many connections an upstream host may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PoolLimit {
    /// As many as there are requests at once; unused ones are kept.
    #[default]
    Elastic,
    /// At most `max_connections` for each upstream host, counted over all workers; requests past
    /// that wait.
    Fixed {
        /// Connections for each upstream host, at least 1.
        max_connections: usize,
        /// Requests for each upstream host that may wait; past that 503 at once.
        max_pending: usize,
        /// How long a request may wait.
        acquire_timeout: Duration,
    },
    /// A connection for each request.
    Disabled,
}

/// How connections are kept.
#[derive(Debug, Clone)]
pub struct PoolOptions {
    /// How many there may be.
    pub limit: PoolLimit,
    /// How long an unused connection is kept. Below what upstreams keep, so that they are not the
    /// ones who close first.
    pub max_idle: Duration,
    /// Unused connections kept for each upstream host and worker.
    pub max_idle_per_upstream: usize,
    /// The age past which a connection takes no further request; `None`: any age.
    pub max_life: Option<Duration>,
    /// How often unused and old connections are looked at.
    pub eviction_interval: Duration,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            limit: PoolLimit::Elastic,
            max_idle: Duration::from_millis(4_000),
            max_idle_per_upstream: 1024,
            max_life: None,
            eviction_interval: Duration::from_secs(1),
        }
    }
}

/// A client certificate with its key.
#[derive(Clone)]
pub enum KeyStore {
    /// PKCS#12.
    Pkcs12 {
        /// The file.
        path: PathBuf,
        /// Its password.
        password: String,
    },
    /// PEM: chain and unencrypted key in one file.
    Pem {
        /// The file.
        path: PathBuf,
    },
}

impl std::fmt::Debug for KeyStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (kind, path) = match self {
            Self::Pkcs12 { path, .. } => ("Pkcs12", path),
            Self::Pem { path } => ("Pem", path),
        };
        f.debug_tuple(kind).field(path).finish()
    }
}

/// TLS towards upstreams.
#[derive(Debug, Clone)]
pub struct TlsOptions {
    /// Whether any certificate is believed.
    pub insecure: bool,
    /// PEM files with roots to believe beside the system's.
    pub trusted_certificates: Vec<PathBuf>,
    /// The client certificate; `None`: none is shown.
    pub key_store: Option<KeyStore>,
    /// How long a handshake may take.
    pub handshake_timeout: Duration,
    /// How long our end of a connection may take to be sent; zero: no limit.
    pub close_flush_timeout: Duration,
}

impl Default for TlsOptions {
    fn default() -> Self {
        Self {
            insecure: false,
            trusted_certificates: Vec::new(),
            key_store: None,
            handshake_timeout: Duration::from_secs(10),
            close_flush_timeout: Duration::from_secs(3),
        }
    }
}

/// An HTTP proxy that upstreams are reached through, by `CONNECT`.
#[derive(Clone)]
pub struct ProxyOptions {
    /// Its name or IP literal.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// User and password.
    pub credentials: Option<(String, String)>,
    /// Hosts that are called directly. Anchor the expression where the whole name is meant.
    pub direct: Option<regex::Regex>,
}

impl std::fmt::Debug for ProxyOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProxyOptions")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("direct", &self.direct)
            .finish_non_exhaustive()
    }
}

/// How upstreams are connected to and connections kept.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Limit of one connection: look-up, all addresses, and the way through a proxy. The TLS
    /// handshake has a limit of its own.
    pub connect_timeout: Duration,
    /// Whether connections are kept for further requests.
    pub keep_alive: bool,
    /// How they are kept.
    pub pool: PoolOptions,
    /// The largest head of an answer, in bytes.
    pub max_response_header_bytes: usize,
    /// Whether HTTP/2 is offered over TLS.
    pub http2: bool,
    /// The most bytes of a request body that are kept for a repetition on a fresh connection.
    pub replay_bytes: usize,
    /// Whether heads are logged at level trace.
    pub wiretap: bool,
    /// TLS.
    pub tls: TlsOptions,
    /// A proxy on the way.
    pub proxy: Option<ProxyOptions>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            keep_alive: true,
            pool: PoolOptions::default(),
            max_response_header_bytes: 64 << 10,
            http2: false,
            replay_bytes: 64 << 10,
            wiretap: false,
            tls: TlsOptions::default(),
            proxy: None,
        }
    }
}
