//! `shenyu.httpclient.*`: how upstreams are called.

use std::path::PathBuf;
use std::time::Duration;

use longmen_core::config::{
    BYTES, KeySpec, Kind, MILLIS, Notice, Reader, Secret, Section, SizeUnit, TimeUnit,
};
use longmen_core::setting_words;

use super::compat::Compat;

/// Which client calls upstreams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientStrategy {
    /// Raw hyper with our own pool.
    Hyper,
    /// reqwest.
    Reqwest,
}

setting_words!(ClientStrategy {
    "hyper" => Self::Hyper,
    "netty" => Self::Hyper,
    "reqwest" => Self::Reqwest,
    "webClient" => Self::Reqwest,
});

/// How many connections an upstream host may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolType {
    /// As many as there are concurrent requests; idle ones are kept.
    Elastic,
    /// At most `maxConnections`; requests past that wait.
    Fixed,
    /// A new one for each request.
    Disabled,
}

setting_words!(PoolType {
    "ELASTIC" => Self::Elastic, "FIXED" => Self::Fixed, "DISABLED" => Self::Disabled,
});

const POSITIVE_MILLIS: Kind = Kind::Time { unit: TimeUnit::Millis, min_ms: 1 };
const JVM: &str = "a setting of Java's HTTP client";

/// The keys of this section.
pub(super) const SECTION: Section = Section {
    title: "Upstream client",
    about: "A time of 0 means no limit unless the meaning says otherwise.",
    keys: &[
        KeySpec::new(
            "shenyu.httpclient.strategy",
            Kind::Choice(ClientStrategy::WORDS),
            "hyper",
            "The client; `netty` is another word for `hyper`, `webClient` for `reqwest`.",
        ),
        KeySpec::new(
            "shenyu.httpclient.connectTimeout",
            POSITIVE_MILLIS,
            "5000",
            "How long a connection may take to open.",
        ),
        KeySpec::new(
            "shenyu.httpclient.responseTimeout",
            POSITIVE_MILLIS,
            "3000",
            "How long an attempt may take to the head of the answer, where the rule says nothing.",
        ),
        KeySpec::new(
            "shenyu.httpclient.readerIdleTime",
            MILLIS,
            "",
            "How long an upstream may send nothing.",
        )
        .computed("as `shenyu.timeouts.upstreamBodyIdle`"),
        KeySpec::new(
            "shenyu.httpclient.writerIdleTime",
            MILLIS,
            "",
            "How long an upstream may take nothing.",
        )
        .computed("as `shenyu.timeouts.upstreamBodyIdle`"),
        KeySpec::new(
            "shenyu.httpclient.allIdleTime",
            MILLIS,
            "",
            "How long neither side of an upstream connection may move.",
        )
        .computed("as `shenyu.timeouts.upstreamBodyIdle`"),
        KeySpec::new(
            "shenyu.httpclient.readTimeout",
            MILLIS,
            "",
            "How long a read from an upstream may take.",
        )
        .computed("as `shenyu.timeouts.upstreamBodyIdle`"),
        KeySpec::new(
            "shenyu.httpclient.writeTimeout",
            MILLIS,
            "",
            "How long a write to an upstream may take.",
        )
        .computed("as `shenyu.timeouts.upstreamBodyIdle`"),
        KeySpec::new(
            "shenyu.httpclient.keepAlive",
            Kind::Bool,
            "true",
            "Whether connections to upstreams are used again; false opens one for each request.",
        ),
        KeySpec::new(
            "shenyu.httpclient.wiretap",
            Kind::Bool,
            "false",
            "Whether upstream calls are logged at level trace, without bodies.",
        ),
        KeySpec::new(
            "shenyu.httpclient.maxInMemorySize",
            Kind::Size { unit: SizeUnit::Mebi, min: 1 },
            "1MB",
            "The most bytes of a body that are kept to be sent again.",
        ),
        KeySpec::new(
            "shenyu.httpclient.maxResponseHeaderSize",
            Kind::Size { unit: SizeUnit::Bytes, min: 8192 },
            "64KB",
            "The largest head of an upstream's answer; a larger one is a fault of the upstream.",
        ),
        KeySpec::new(
            "shenyu.httpclient.pool.type",
            Kind::Choice(PoolType::WORDS),
            "ELASTIC",
            "`ELASTIC`: no limit. `FIXED`: at most `maxConnections` for each host. `DISABLED`: a new connection for each request.",
        ),
        KeySpec::new(
            "shenyu.httpclient.pool.name",
            Kind::Text,
            "shenyu-proxy",
            "The name of the pool in metrics.",
        ),
        KeySpec::new(
            "shenyu.httpclient.pool.maxConnections",
            Kind::Int { min: 1, max: 1_000_000 },
            "",
            "Connections for each upstream host of a `FIXED` pool.",
        )
        .computed("twice the number of cores, at least 16"),
        KeySpec::new(
            "shenyu.httpclient.pool.maxPending",
            Kind::Int { min: 0, max: 1_000_000 },
            "1000",
            "Requests for each upstream host that may wait for a connection of a `FIXED` pool; past that 503 at once.",
        ),
        KeySpec::new(
            "shenyu.httpclient.pool.acquireTimeout",
            MILLIS,
            "45000",
            "How long a request may wait for a connection of a `FIXED` pool.",
        ),
        KeySpec::new(
            "shenyu.httpclient.pool.maxIdleTime",
            POSITIVE_MILLIS,
            "4000",
            "How long an idle connection is kept; keep it below the upstream's own limit.",
        ),
        KeySpec::new(
            "shenyu.httpclient.pool.maxIdleConnections",
            Kind::Int { min: 0, max: 1_000_000 },
            "1024",
            "Idle connections kept for each upstream host by each worker.",
        ),
        KeySpec::new(
            "shenyu.httpclient.pool.maxLifeTime",
            POSITIVE_MILLIS,
            "",
            "The age past which a connection is not used again.",
        )
        .computed("no limit"),
        KeySpec::new(
            "shenyu.httpclient.pool.evictionInterval",
            POSITIVE_MILLIS,
            "1000",
            "How often idle and old connections are closed.",
        ),
        KeySpec::new(
            "shenyu.httpclient.pool.metrics",
            Kind::Bool,
            "false",
            "Whether the pool has metrics.",
        ),
        KeySpec::new(
            "shenyu.httpclient.proxy.host",
            Kind::Text,
            "",
            "An HTTP proxy (CONNECT) on the way to upstreams.",
        ),
        KeySpec::new(
            "shenyu.httpclient.proxy.port",
            Kind::Int { min: 1, max: 65_535 },
            "",
            "Its port.",
        ),
        KeySpec::new("shenyu.httpclient.proxy.username", Kind::Text, "", "Its user."),
        KeySpec::new("shenyu.httpclient.proxy.password", Kind::Secret, "", "Its password."),
        KeySpec::new(
            "shenyu.httpclient.proxy.nonProxyHostsPattern",
            Kind::Pattern,
            "",
            "Hosts that are called directly.",
        ),
        KeySpec::new(
            "shenyu.httpclient.ssl.useInsecureTrustManager",
            Kind::Bool,
            "false",
            "Whether any certificate of an upstream is believed. Do not.",
        ),
        KeySpec::new(
            "shenyu.httpclient.ssl.trustedX509Certificates",
            Kind::List(&Kind::File),
            "",
            "PEM files with more roots to believe.",
        ),
        KeySpec::new(
            "shenyu.httpclient.ssl.keyStorePath",
            Kind::File,
            "",
            "The client certificate with its key.",
        )
        .or(&["shenyu.httpclient.ssl.keyStore"]),
        KeySpec::new(
            "shenyu.httpclient.ssl.keyStoreType",
            Kind::Choice(KeyStoreType::WORDS),
            "PKCS12",
            "The form of `keyStorePath`.",
        ),
        KeySpec::new(
            "shenyu.httpclient.ssl.keyStorePassword",
            Kind::Secret,
            "",
            "The password of the key store.",
        ),
        KeySpec::new(
            "shenyu.httpclient.ssl.keyPassword",
            Kind::Secret,
            "",
            "The password of the key in it.",
        ),
        KeySpec::new(
            "shenyu.httpclient.ssl.handshakeTimeout",
            POSITIVE_MILLIS,
            "10000",
            "How long a TLS handshake may take.",
        )
        .or(&["shenyu.httpclient.ssl.handshakeTimeoutMillis"]),
        KeySpec::new(
            "shenyu.httpclient.ssl.closeNotifyFlushTimeout",
            MILLIS,
            "3000",
            "How long the end of a TLS connection may take to be sent.",
        )
        .or(&["shenyu.httpclient.ssl.closeNotifyFlushTimeoutMillis"]),
        KeySpec::new(
            "shenyu.httpclient.ssl.closeNotifyReadTimeout",
            MILLIS,
            "0",
            "How long the peer's end of a TLS connection is awaited; 0 does not wait.",
        )
        .or(&["shenyu.httpclient.ssl.closeNotifyReadTimeoutMillis"]),
        KeySpec::new(
            "shenyu.httpclient.http2",
            Kind::Bool,
            "false",
            "Whether HTTP/2 is offered to upstreams over TLS.",
        ),
        KeySpec::new(
            "shenyu.httpclient.maxPerUpstream",
            Kind::Int { min: 1, max: 10_000_000 },
            "10000",
            "Concurrent requests for each upstream; past that 503 at once.",
        ),
        KeySpec::new(
            "shenyu.httpclient.replayBufferBytes",
            BYTES,
            "64KB",
            "The most bytes of a request body that are kept so that a failed attempt can be repeated.",
        ),
        KeySpec::inert("shenyu.httpclient.ssl.keyStoreProvider", JVM),
        KeySpec::inert("shenyu.httpclient.ssl.defaultConfigurationType", JVM),
        KeySpec::inert("shenyu.httpclient.threadPool.*", JVM),
    ],
};

/// The form of a key store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyStoreType {
    /// PKCS#12.
    Pkcs12,
    /// PEM, certificate chain and key in one file.
    Pem,
}

setting_words!(KeyStoreType { "PKCS12" => Self::Pkcs12, "PEM" => Self::Pem });

/// How upstreams are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpClientConfig {
    /// The client.
    pub strategy: ClientStrategy,
    /// How long a connection may take to open.
    pub connect_timeout: Duration,
    /// How long an attempt may take to the response head, where the rule says nothing.
    pub response_timeout: Duration,
    /// How long an upstream may send or take nothing, by the keys of this section; the shortest
    /// of those set. `None`: none is set, and `TimeoutsConfig::upstream_body_idle` counts.
    pub idle_timeout: Option<Duration>,
    /// Whether connections are used again.
    pub keep_alive: bool,
    /// Whether calls are logged at level trace.
    pub wiretap: bool,
    /// `maxInMemorySize`, in bytes.
    pub max_in_memory_bytes: u64,
    /// The largest head of an upstream's answer, in bytes.
    pub max_response_header_bytes: usize,
    /// Concurrent requests for each upstream.
    pub max_per_upstream: usize,
    /// The most bytes of a request body that are kept for another attempt.
    pub replay_buffer_bytes: usize,
    /// Whether HTTP/2 is offered over TLS.
    pub http2: bool,
    /// The pool of connections.
    pub pool: PoolConfig,
    /// A proxy on the way; `None`: upstreams are called directly.
    pub proxy: Option<ProxyConfig>,
    /// TLS towards upstreams.
    pub ssl: ClientTlsConfig,
}

/// The pool of connections to upstreams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolConfig {
    /// How many connections a host may have.
    pub pool_type: PoolType,
    /// The name in metrics.
    pub name: String,
    /// Connections for each host of a fixed pool.
    pub max_connections: usize,
    /// Requests for each host that may wait for a connection of a fixed pool.
    pub max_pending: usize,
    /// How long a request may wait for a connection of a fixed pool.
    pub acquire_timeout: Duration,
    /// How long an idle connection is kept.
    pub max_idle_time: Duration,
    /// Idle connections kept for each host by each worker.
    pub max_idle_connections: usize,
    /// The age past which a connection is not used again; `None`: any age.
    pub max_life_time: Option<Duration>,
    /// How often idle and old connections are closed.
    pub eviction_interval: Duration,
    /// Whether the pool has metrics.
    pub metrics: bool,
}

/// An HTTP proxy on the way to upstreams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyConfig {
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Its user.
    pub username: Option<String>,
    /// Its password.
    pub password: Option<Secret>,
    /// A regular expression; hosts it matches are called directly.
    pub non_proxy_hosts: Option<String>,
}

/// TLS towards upstreams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientTlsConfig {
    /// Whether any certificate is believed.
    pub insecure: bool,
    /// PEM files with more roots.
    pub trusted_certificates: Vec<PathBuf>,
    /// The client certificate; `None`: none is shown.
    pub key_store: Option<KeyStoreConfig>,
    /// How long a handshake may take.
    pub handshake_timeout: Duration,
    /// How long our end of a connection may take to be sent.
    pub close_flush_timeout: Duration,
    /// How long the peer's end is awaited; zero does not wait.
    pub close_read_timeout: Duration,
}

/// The client certificate shown to upstreams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyStoreConfig {
    /// The file.
    pub path: PathBuf,
    /// Its form.
    pub store_type: KeyStoreType,
    /// The password of the store.
    pub password: Option<Secret>,
    /// The password of the key in it.
    pub key_password: Option<Secret>,
}

impl HttpClientConfig {
    pub(super) fn read(reader: &mut Reader<'_>, compat: Compat) -> Self {
        let keep_alive: bool = reader.get("shenyu.httpclient.keepAlive");
        if !keep_alive && compat == Compat::Shenyu {
            reader.note(Notice::warn(
                "shenyu.httpclient.keepAlive is false: a connection to the upstream is opened for \
                 each request",
            ));
        }
        Self {
            strategy: reader.get("shenyu.httpclient.strategy"),
            connect_timeout: reader.get("shenyu.httpclient.connectTimeout"),
            response_timeout: reader.get("shenyu.httpclient.responseTimeout"),
            idle_timeout: idle_timeout(reader),
            keep_alive,
            wiretap: reader.get("shenyu.httpclient.wiretap"),
            max_in_memory_bytes: reader.get("shenyu.httpclient.maxInMemorySize"),
            max_response_header_bytes: reader.get("shenyu.httpclient.maxResponseHeaderSize"),
            max_per_upstream: reader.get("shenyu.httpclient.maxPerUpstream"),
            replay_buffer_bytes: reader.get("shenyu.httpclient.replayBufferBytes"),
            http2: reader.get("shenyu.httpclient.http2"),
            pool: PoolConfig::read(reader),
            proxy: ProxyConfig::read(reader),
            ssl: ClientTlsConfig::read(reader),
        }
    }
}

fn idle_timeout(reader: &mut Reader<'_>) -> Option<Duration> {
    [
        "shenyu.httpclient.readerIdleTime",
        "shenyu.httpclient.writerIdleTime",
        "shenyu.httpclient.allIdleTime",
        "shenyu.httpclient.readTimeout",
        "shenyu.httpclient.writeTimeout",
    ]
    .into_iter()
    .filter_map(|path| reader.optional::<Duration>(path))
    .filter(|time| !time.is_zero())
    .min()
}

impl PoolConfig {
    fn read(reader: &mut Reader<'_>) -> Self {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let max_connections = reader
            .optional("shenyu.httpclient.pool.maxConnections")
            .unwrap_or_else(|| cores().max(8) * 2);
        Self {
            pool_type: reader.get("shenyu.httpclient.pool.type"),
            name: reader.get("shenyu.httpclient.pool.name"),
            max_connections,
            max_pending: reader.get("shenyu.httpclient.pool.maxPending"),
            acquire_timeout: reader.get("shenyu.httpclient.pool.acquireTimeout"),
            max_idle_time: reader.get("shenyu.httpclient.pool.maxIdleTime"),
            max_idle_connections: reader.get("shenyu.httpclient.pool.maxIdleConnections"),
            max_life_time: reader.optional("shenyu.httpclient.pool.maxLifeTime"),
            eviction_interval: reader.get("shenyu.httpclient.pool.evictionInterval"),
            metrics: reader.get("shenyu.httpclient.pool.metrics"),
        }
    }
}

impl ProxyConfig {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let port = reader.optional("shenyu.httpclient.proxy.port");
        let username = reader.optional("shenyu.httpclient.proxy.username");
        let password = reader.secret("shenyu.httpclient.proxy.password");
        let non_proxy_hosts = reader.optional("shenyu.httpclient.proxy.nonProxyHostsPattern");
        let host = reader.optional("shenyu.httpclient.proxy.host")?;
        let Some(port) = port else {
            reader.reject(
                "shenyu.httpclient.proxy.host",
                "expected shenyu.httpclient.proxy.port beside it",
            );
            return None;
        };
        Some(Self { host, port, username, password, non_proxy_hosts })
    }
}

impl ClientTlsConfig {
    fn read(reader: &mut Reader<'_>) -> Self {
        let insecure = reader.get("shenyu.httpclient.ssl.useInsecureTrustManager");
        if insecure {
            reader.note(Notice::warn(
                "shenyu.httpclient.ssl.useInsecureTrustManager is on: upstreams are not authenticated",
            ));
        }
        let store_type = reader.get("shenyu.httpclient.ssl.keyStoreType");
        let password = reader.secret("shenyu.httpclient.ssl.keyStorePassword");
        let key_password = reader.secret("shenyu.httpclient.ssl.keyPassword");
        let key_store = reader
            .optional("shenyu.httpclient.ssl.keyStorePath")
            .map(|path| KeyStoreConfig { path, store_type, password, key_password });
        Self {
            insecure,
            trusted_certificates: reader.list("shenyu.httpclient.ssl.trustedX509Certificates"),
            key_store,
            handshake_timeout: reader.get("shenyu.httpclient.ssl.handshakeTimeout"),
            close_flush_timeout: reader.get("shenyu.httpclient.ssl.closeNotifyFlushTimeout"),
            close_read_timeout: reader.get("shenyu.httpclient.ssl.closeNotifyReadTimeout"),
        }
    }
}
