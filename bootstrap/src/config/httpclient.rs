//! `shenyu.httpclient.*`: how upstreams are called.

mod pool;
mod tls;

use std::time::Duration;

use longmen_core::config::{
    BYTES, KeySpec, Kind, MILLIS, Notice, Reader, Section, SizeUnit, TimeUnit,
};
use longmen_core::setting_words;

use super::compat::Compat;

pub use pool::{PoolConfig, PoolType};
pub use tls::{ClientTlsConfig, KeyStoreConfig, KeyStoreType, ProxyConfig};

pub(super) const POOL_SECTION: Section = pool::SECTION;
pub(super) const TLS_SECTION: Section = tls::SECTION;

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
        )
        .without_effect("bodies stream; what is kept to be sent again, `replayBufferBytes` says"),
        KeySpec::new(
            "shenyu.httpclient.maxResponseHeaderSize",
            Kind::Size { unit: SizeUnit::Bytes, min: 8192 },
            "64KB",
            "The largest head of an upstream's answer; a larger one is a fault of the upstream.",
        ),
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
        KeySpec::inert("shenyu.httpclient.threadPool.*", JVM),
    ],
};

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
