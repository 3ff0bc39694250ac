//! `shenyu.websocket.*`: proxied websockets.

use std::time::Duration;

use longmen_core::config::{COUNT, KeySpec, Kind, MILLIS, Reader, Section, SizeUnit};

/// The keys of the websocket plugin.
pub(super) const SECTION: Section = Section {
    title: "Proxied websockets",
    about: "",
    keys: &[
        KeySpec::new(
            "shenyu.websocket.maxFramePayloadSize",
            Kind::Size { unit: SizeUnit::Mebi, min: 1 },
            "10",
            "The largest frame passed on, either way.",
        ),
        KeySpec::new(
            "shenyu.websocket.idleTimeout",
            MILLIS,
            "0",
            "How long a websocket may carry nothing; 0 is no limit.",
        ),
        KeySpec::new(
            "shenyu.websocket.maxConnections",
            COUNT,
            "100000",
            "The most websockets open at once; past that 503.",
        ),
        KeySpec::inert("shenyu.websocket.enableProxyPing", "pings always pass through"),
    ],
};

/// Proxied websockets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebsocketConfig {
    /// The largest frame passed on, in bytes of payload.
    pub max_frame_bytes: u64,
    /// How long a websocket may carry nothing; `None`: any time.
    pub idle_timeout: Option<Duration>,
    /// The most websockets open at once.
    pub max_connections: usize,
    /// Whether that was asked for.
    pub max_connections_is_set: bool,
}

impl WebsocketConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let idle: Duration = reader.get("shenyu.websocket.idleTimeout");
        Self {
            max_frame_bytes: reader.get("shenyu.websocket.maxFramePayloadSize"),
            idle_timeout: (!idle.is_zero()).then_some(idle),
            max_connections: reader.get("shenyu.websocket.maxConnections"),
            max_connections_is_set: reader.is_set("shenyu.websocket.maxConnections"),
        }
    }
}
