//! What a pool has of one upstream host.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, oneshot};

use super::super::conn::Http1;
use super::super::http2::Http2;
use super::super::stats::{Counters, add, set};
use super::Grant;
use crate::upstream::Address;

/// What an upstream speaks over TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::upstream::client) enum Protocol {
    /// Nobody has asked yet.
    #[default]
    Unknown,
    /// HTTP/1.1 alone.
    Http1,
    /// HTTP/2.
    Http2,
}

/// One at a time opens a connection that all may share.
pub(in crate::upstream::client) type Gate = Arc<Mutex<()>>;

/// How long a sight of the upstream's patience counts.
const PATIENCE_KEPT: Duration = Duration::from_mins(1);

/// What closes connections that were unused for less than this is no limit of idle time.
const PATIENCE_MIN: Duration = Duration::from_millis(100);

/// How long an upstream leaves connections unused, seen when it closes them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Patience(Option<(Duration, Instant)>);

impl Patience {
    /// The upstream has closed a connection that was unused for so long.
    pub(super) fn learn(&mut self, unused: Duration) {
        if unused < PATIENCE_MIN {
            return;
        }
        let now = Instant::now();
        let known = self.0.filter(|(_, seen)| now.duration_since(*seen) < PATIENCE_KEPT);
        let shortest = known.map_or(unused, |(known, _)| known.min(unused));
        self.0 = Some((shortest, now));
    }

    pub(super) fn is_known(&self) -> bool {
        self.0.is_some_and(|(_, seen)| seen.elapsed() < PATIENCE_KEPT)
    }

    /// Whether a connection that was unused for so long may be closed just now.
    pub(super) fn may_end(&self, unused: Duration) -> bool {
        // The last tenth before the limit is the time that a close may be on its way.
        self.0.is_some_and(|(limit, _)| unused.saturating_mul(10) > limit.saturating_mul(9))
            && self.is_known()
    }
}

pub(super) struct Waiter {
    pub(super) give: oneshot::Sender<Grant>,
    /// Whether only a new connection will do.
    pub(super) fresh: bool,
}

pub(super) struct Slot {
    pub(super) address: Arc<Address>,
    pub(super) counters: Arc<Counters>,
    /// Unused HTTP/1.1 connections, the youngest last.
    pub(super) idle: Vec<Http1>,
    pub(super) patience: Patience,
    pub(super) http2: Vec<Http2>,
    pub(super) waiters: VecDeque<Waiter>,
    /// Connections open or being opened.
    pub(super) open: usize,
    pub(super) protocol: Protocol,
    pub(super) gate: Gate,
}

impl Slot {
    pub(super) fn new((address, counters): (Arc<Address>, Arc<Counters>)) -> Self {
        Self {
            address,
            counters,
            idle: Vec::new(),
            patience: Patience::default(),
            http2: Vec::new(),
            waiters: VecDeque::new(),
            open: 0,
            protocol: Protocol::default(),
            gate: Gate::default(),
        }
    }

    pub(super) fn is_unused(&self) -> bool {
        self.open == 0
            && self.waiters.is_empty()
            && self.idle.is_empty()
            && self.http2.is_empty()
            && !self.patience.is_known()
    }

    /// Gives a connection to whoever has waited longest; without one it comes back.
    pub(super) fn hand_over(&mut self, connection: Http1) -> Option<Http1> {
        let mut connection = connection;
        while let Some(waiter) = self.waiters.front() {
            if waiter.fresh && !waiter.give.is_closed() {
                // Its end makes room for a new one.
                return None;
            }
            let Some(waiter) = self.waiters.pop_front() else { break };
            set(&self.counters.waiting, self.waiters.len());
            match waiter.give.send(Grant::Kept(connection)) {
                Ok(()) => {
                    add(&self.counters.reused, 1);
                    return None;
                }
                Err(Grant::Kept(back)) => connection = back,
                Err(Grant::Open(_)) => return None,
            }
        }
        Some(connection)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Patience;

    #[test]
    fn the_last_tenth_before_the_shortest_limit_seen_is_avoided() {
        let mut patience = Patience::default();
        assert!(!patience.may_end(Duration::from_secs(3_600)), "nothing is known");
        patience.learn(Duration::from_millis(20));
        assert!(!patience.may_end(Duration::from_secs(3_600)), "a restart is no limit");
        patience.learn(Duration::from_secs(5));
        patience.learn(Duration::from_secs(2));
        patience.learn(Duration::from_secs(9));
        assert!(!patience.may_end(Duration::from_millis(1_800)));
        assert!(patience.may_end(Duration::from_millis(1_801)));
    }
}
