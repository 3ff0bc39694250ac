//! `shenyu.httpclient.pool.*`: connections to upstreams.

use std::time::Duration;

use longmen_core::config::{KeySpec, Kind, MILLIS, Reader, Section, TimeUnit};
use longmen_core::setting_words;

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

/// The keys of this section.
pub(super) const SECTION: Section = Section {
    title: "Upstream connections",
    about: "",
    keys: &[
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
    ],
};

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

impl PoolConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
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
