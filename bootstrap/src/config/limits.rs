//! `shenyu.limits.*`, `shenyu.timeouts.*` and `shenyu.shutdown.*`: the bounds of everything.

use std::time::Duration;

use longmen_core::config::{BYTES, KeySpec, Kind, MILLIS, Reader, Section, TimeUnit};

const POSITIVE_MILLIS: Kind = Kind::Time { unit: TimeUnit::Millis, min_ms: 1 };

const fn at_least_one(max: i64) -> Kind {
    Kind::Int { min: 1, max }
}

/// The keys of this section.
pub(super) const SECTION: Section = Section {
    title: "Limits and times",
    about: "A time of 0 means no limit where the meaning says so.",
    keys: &[
        KeySpec::new(
            "shenyu.limits.maxInFlight",
            at_least_one(10_000_000),
            "65536",
            "Requests in work at once, to the end of their bodies; past that 503 at once.",
        ),
        KeySpec::new(
            "shenyu.limits.maxConnections",
            at_least_one(10_000_000),
            "100000",
            "Client connections open at once; past that new ones are closed. Websockets count apart.",
        ),
        KeySpec::new(
            "shenyu.limits.requestMaxBytes",
            BYTES,
            "0",
            "The largest request body, 413 past it; 0 is no limit, as bodies are streamed.",
        ),
        KeySpec::new(
            "shenyu.limits.maxRequestsPerConnection",
            Kind::Int { min: 0, max: i32::MAX as i64 },
            "0",
            "Requests after which a client connection is closed, HTTP/2 with GOAWAY; 0 is no limit.",
        ),
        KeySpec::new(
            "shenyu.limits.maxConcurrentStreams",
            at_least_one(1_000_000),
            "200",
            "HTTP/2 streams of one client connection at once.",
        ),
        KeySpec::new(
            "shenyu.timeouts.clientHead",
            POSITIVE_MILLIS,
            "10s",
            "How long a client may take to send a request head, from its first byte or from the opening of the connection.",
        ),
        KeySpec::new(
            "shenyu.timeouts.clientIdle",
            POSITIVE_MILLIS,
            "75s",
            "How long a client connection may wait for its next request.",
        ),
        KeySpec::new(
            "shenyu.timeouts.clientBodyIdle",
            POSITIVE_MILLIS,
            "30s",
            "How long a client may send nothing of a body that is not complete.",
        ),
        KeySpec::new(
            "shenyu.timeouts.clientWriteStall",
            POSITIVE_MILLIS,
            "60s",
            "How long a client may take nothing of its answer.",
        ),
        KeySpec::new(
            "shenyu.timeouts.upstreamBodyIdle",
            MILLIS,
            "0",
            "How long an upstream may send nothing of a body that is not complete; 0 is no limit.",
        ),
        KeySpec::new(
            "shenyu.timeouts.total",
            MILLIS,
            "0",
            "How long a request may take in all; 0 is no limit.",
        ),
        KeySpec::new(
            "shenyu.shutdown.delay",
            MILLIS,
            "0",
            "How long the gateway goes on as before after readiness has turned 503.",
        ),
        KeySpec::new(
            "shenyu.shutdown.grace",
            MILLIS,
            "30s",
            "How long requests in work may take to finish then.",
        ),
    ],
};

/// Bounds of what clients may hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitsConfig {
    /// Requests in work at once.
    pub max_in_flight: usize,
    /// Client connections open at once.
    pub max_connections: usize,
    /// Whether that was asked for.
    pub max_connections_is_set: bool,
    /// The largest request body, in bytes; `None`: any.
    pub request_max_bytes: Option<u64>,
    /// Requests after which a client connection is closed; `None`: never.
    pub max_requests_per_connection: Option<u64>,
    /// HTTP/2 streams of one client connection at once.
    pub max_concurrent_streams: u32,
}

/// Named time limits; the client's ones and the upstream's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeoutsConfig {
    /// For a request head.
    pub client_head: Duration,
    /// Between two requests of a connection.
    pub client_idle: Duration,
    /// Between two pieces of a request body.
    pub client_body_idle: Duration,
    /// For a client that takes nothing of its answer.
    pub client_write_stall: Duration,
    /// Between two pieces of a response body; `None`: any time.
    pub upstream_body_idle: Option<Duration>,
    /// For a request in all; `None`: any time.
    pub total: Option<Duration>,
}

/// How the gateway stops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShutdownConfig {
    /// How long it goes on as before after readiness has turned 503.
    pub delay: Duration,
    /// How long requests in work may take to finish then.
    pub grace: Duration,
}

impl LimitsConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let bytes: u64 = reader.get("shenyu.limits.requestMaxBytes");
        let requests: u64 = reader.get("shenyu.limits.maxRequestsPerConnection");
        Self {
            max_in_flight: reader.get("shenyu.limits.maxInFlight"),
            max_connections: reader.get("shenyu.limits.maxConnections"),
            max_connections_is_set: reader.is_set("shenyu.limits.maxConnections"),
            request_max_bytes: (bytes > 0).then_some(bytes),
            max_requests_per_connection: (requests > 0).then_some(requests),
            max_concurrent_streams: reader.get("shenyu.limits.maxConcurrentStreams"),
        }
    }
}

impl TimeoutsConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let idle: Duration = reader.get("shenyu.timeouts.upstreamBodyIdle");
        let total: Duration = reader.get("shenyu.timeouts.total");
        Self {
            client_head: reader.get("shenyu.timeouts.clientHead"),
            client_idle: reader.get("shenyu.timeouts.clientIdle"),
            client_body_idle: reader.get("shenyu.timeouts.clientBodyIdle"),
            client_write_stall: reader.get("shenyu.timeouts.clientWriteStall"),
            upstream_body_idle: (!idle.is_zero()).then_some(idle),
            total: (!total.is_zero()).then_some(total),
        }
    }
}

impl ShutdownConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            delay: reader.get("shenyu.shutdown.delay"),
            grace: reader.get("shenyu.shutdown.grace"),
        }
    }
}
