//! Where a request goes, once a proxy plugin has chosen.

use std::sync::Arc;
use std::time::Duration;

use crate::upstream::{Endpoint, LoadBalance};

/// What kind of call the target wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TargetKind {
    /// An ordinary HTTP exchange.
    Http,
    /// A websocket: the upstream switches protocols first, then the client is told.
    WebSocket,
}

/// How the call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TargetPolicy {
    /// Per attempt, until the response head.
    pub timeout: Duration,
    /// Attempts after the first.
    pub retries: u32,
    /// Whether a further attempt goes to another upstream.
    pub failover: bool,
    /// How another upstream is chosen; what it measures is measured.
    pub balance: LoadBalance,
}

/// The chosen upstream.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where.
    pub endpoint: Arc<Endpoint>,
    /// What kind of call.
    pub kind: TargetKind,
    /// How.
    pub policy: TargetPolicy,
}
