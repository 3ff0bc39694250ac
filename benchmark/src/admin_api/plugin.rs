//! Plugins that routes are made of.

use super::DIVIDE;

/// A plugin that has upstreams, as the stock seed has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plugin {
    /// Its id.
    pub id: &'static str,
    /// Its name.
    pub name: &'static str,
    /// How the addresses of its upstreams begin.
    pub protocol: &'static str,
}

impl Plugin {
    /// HTTP.
    pub const DIVIDE: Self = Self { id: DIVIDE, name: "divide", protocol: "http://" };
    /// Websockets.
    pub const WEBSOCKET: Self = Self { id: "26", name: "websocket", protocol: "ws://" };
}
