//! What a pool has of one upstream host.

use std::collections::VecDeque;
use std::sync::Arc;

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
            http2: Vec::new(),
            waiters: VecDeque::new(),
            open: 0,
            protocol: Protocol::default(),
            gate: Gate::default(),
        }
    }

    pub(super) fn is_unused(&self) -> bool {
        self.open == 0 && self.waiters.is_empty() && self.idle.is_empty() && self.http2.is_empty()
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
