//! `shenyu.upstreamCheck.*`: probing of upstreams.

use std::time::Duration;

use longmen_core::config::{KeySpec, Kind, Reader, Section, TimeUnit};

const POSITIVE_MILLIS: Kind = Kind::Time { unit: TimeUnit::Millis, min_ms: 1 };

/// The keys of the upstream check.
pub(super) const SECTION: Section = Section {
    title: "Upstream health check",
    about: "",
    keys: &[
        KeySpec::new(
            "shenyu.upstreamCheck.enabled",
            Kind::Bool,
            "false",
            "Whether upstreams are probed by opening a connection.",
        ),
        KeySpec::new(
            "shenyu.upstreamCheck.poolSize",
            Kind::Int { min: 1, max: 10_000 },
            "10",
            "Probes at the same time.",
        ),
        KeySpec::new(
            "shenyu.upstreamCheck.timeout",
            POSITIVE_MILLIS,
            "3000",
            "How long a probe may take.",
        ),
        KeySpec::new(
            "shenyu.upstreamCheck.interval",
            POSITIVE_MILLIS,
            "5000",
            "The pause between two rounds.",
        ),
        KeySpec::new(
            "shenyu.upstreamCheck.healthyThreshold",
            Kind::Int { min: 1, max: 1000 },
            "1",
            "Intervals without a failure after which an upstream is taken in again.",
        ),
        KeySpec::new(
            "shenyu.upstreamCheck.unhealthyThreshold",
            Kind::Int { min: 1, max: 1000 },
            "1",
            "Intervals without a success after which an upstream is taken out.",
        ),
        KeySpec::new(
            "shenyu.upstreamCheck.printEnabled",
            Kind::Bool,
            "false",
            "Whether the states are logged now and then.",
        ),
        KeySpec::new("shenyu.upstreamCheck.printInterval", POSITIVE_MILLIS, "60000", "How often."),
        KeySpec::new(
            "shenyu.upstreamCheck.ejectAfter",
            Kind::Int { min: 0, max: 1_000_000 },
            "5",
            "Failed attempts in a row after which requests avoid an upstream for a time; 0 never. Not bound to `enabled`.",
        ),
        KeySpec::new(
            "shenyu.upstreamCheck.ejectTime",
            POSITIVE_MILLIS,
            "5s",
            "How long the first time; doubled each time it happens again soon.",
        ),
        KeySpec::new(
            "shenyu.upstreamCheck.ejectMaxTime",
            POSITIVE_MILLIS,
            "60s",
            "The longest time.",
        ),
    ],
};

/// Probing of upstreams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamCheckConfig {
    /// Whether at all.
    pub enabled: bool,
    /// Probes at the same time.
    pub pool_size: usize,
    /// How long a probe may take.
    pub timeout: Duration,
    /// The pause between two rounds.
    pub interval: Duration,
    /// Intervals without a failure after which an upstream is taken in again.
    pub healthy_threshold: u32,
    /// Intervals without a success after which an upstream is taken out.
    pub unhealthy_threshold: u32,
    /// How often the states are logged; `None`: never.
    pub print_interval: Option<Duration>,
    /// Failed attempts in a row after which requests avoid an upstream; 0 never.
    pub eject_after: u32,
    /// How long the first time.
    pub eject_time: Duration,
    /// The longest time.
    pub eject_max_time: Duration,
}

impl UpstreamCheckConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let print: bool = reader.get("shenyu.upstreamCheck.printEnabled");
        let print_interval = reader.get("shenyu.upstreamCheck.printInterval");
        Self {
            enabled: reader.get("shenyu.upstreamCheck.enabled"),
            pool_size: reader.get("shenyu.upstreamCheck.poolSize"),
            timeout: reader.get("shenyu.upstreamCheck.timeout"),
            interval: reader.get("shenyu.upstreamCheck.interval"),
            healthy_threshold: reader.get("shenyu.upstreamCheck.healthyThreshold"),
            unhealthy_threshold: reader.get("shenyu.upstreamCheck.unhealthyThreshold"),
            print_interval: print.then_some(print_interval),
            eject_after: reader.get("shenyu.upstreamCheck.ejectAfter"),
            eject_time: reader.get("shenyu.upstreamCheck.ejectTime"),
            eject_max_time: reader.get("shenyu.upstreamCheck.ejectMaxTime"),
        }
    }
}
