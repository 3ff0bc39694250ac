//! `shenyu.management.*`, `shenyu.metrics.*` and `shenyu.local.*`: what operators use.

use std::net::{IpAddr, SocketAddr};

use longmen_core::config::{COUNT, KeySpec, Kind, Notice, Reader, Section};

/// The hash of `123456` that the reference ships.
const SHIPPED_LOCAL_HASH: &str = "ba3253876aed6bc22d4a6ff53d8406c6ad864195ed144ab5c87621b6c233b548\
                                  baeae6956df346ec8c17f5ea10f35ee3cbc514797ed7ddd3145464e2a0bab413";

/// The keys of this section.
pub(super) const SECTION: Section = Section {
    title: "Management",
    about: "",
    keys: &[
        KeySpec::new(
            "shenyu.management.port",
            Kind::Port,
            "8090",
            "The port of health, metrics and data endpoints; 0 takes any free one.",
        )
        .or(&["management.server.port", "shenyu.metrics.port"]),
        KeySpec::new(
            "shenyu.management.address",
            Kind::Address,
            "127.0.0.1",
            "The address it listens on.",
        )
        .or(&["management.server.address", "shenyu.metrics.host"]),
        KeySpec::new(
            "shenyu.management.onPublicPort",
            Kind::Bool,
            "false",
            "Whether the data endpoints answer on the public port too. Anybody can then read routes and upstreams.",
        ),
        KeySpec::new(
            "shenyu.metrics.enabled",
            Kind::Bool,
            "true",
            "Whether requests are counted and `/actuator/prometheus` (or `/metrics`) answers on the management address.",
        ),
        KeySpec::new(
            "shenyu.metrics.maxSeries",
            COUNT,
            "10000",
            "The most time series by upstream; the rest is counted as `other`.",
        ),
        KeySpec::new(
            "shenyu.local.enabled",
            Kind::Bool,
            "false",
            "Whether `/shenyu/…` answers to the `localKey` header.",
        ),
        KeySpec::new(
            "shenyu.local.sha512Key",
            Kind::Sha512,
            "",
            "The hash of the local key; without one nobody gets in.",
        ),
        KeySpec::inert("shenyu.metrics.name", "there is one kind of metrics"),
        KeySpec::inert("shenyu.metrics.jmxConfig", "Java's management"),
        KeySpec::inert("shenyu.metrics.props.*", "Java's management"),
        KeySpec::inert("management.*", "health, info and metrics are always there"),
        KeySpec::pending("shenyu.alert.enabled", Kind::Bool, "alarms posted to an admin"),
        KeySpec::inert("shenyu.alert.admins", "alarms are not switched on"),
    ],
};

/// The management port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagementConfig {
    /// The port; 0 takes any free one.
    pub port: u16,
    /// The address to listen on.
    pub address: IpAddr,
    /// Whether the data endpoints answer on the public port too.
    pub on_public_port: bool,
    /// Whether requests are counted.
    pub metrics_enabled: bool,
    /// The most time series.
    pub metrics_max_series: usize,
}

/// The local admin endpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalConfig {
    /// Whether they answer at all.
    pub enabled: bool,
    /// The key's SHA-512 as 128 lower-case hexadecimal digits; `None`: nobody gets in.
    pub key_hash: Option<String>,
    /// Whether `key_hash` is the one that the reference ships: good from loopback peers only.
    pub is_shipped_key: bool,
}

impl ManagementConfig {
    /// The address and port to bind.
    pub fn socket(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.port)
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let config = Self {
            port: reader.get("shenyu.management.port"),
            address: reader.get("shenyu.management.address"),
            on_public_port: reader.get("shenyu.management.onPublicPort"),
            metrics_enabled: reader.get("shenyu.metrics.enabled"),
            metrics_max_series: reader.get("shenyu.metrics.maxSeries"),
        };
        if config.on_public_port {
            reader.note(Notice::warn(
                "shenyu.management.onPublicPort is on: anybody who reaches the public port can read \
                 routes and upstreams",
            ));
        }
        config
    }
}

impl LocalConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let enabled = reader.get("shenyu.local.enabled");
        let key_hash: Option<String> = reader.optional("shenyu.local.sha512Key");
        let is_shipped_key = key_hash.as_deref() == Some(SHIPPED_LOCAL_HASH);
        if enabled && is_shipped_key {
            reader.note(Notice::warn(
                "shenyu.local.sha512Key is the hash of 123456 that ShenYu ships: it counts for \
                 loopback peers only",
            ));
        }
        Self { enabled, key_hash, is_shipped_key }
    }
}
