//! Unused connections of one worker.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use hyper::client::conn::http1::SendRequest;

use super::ClientOptions;
use crate::body::Body;

struct Idle {
    sender: SendRequest<Body>,
    since: Instant,
}

/// Per upstream the unused connections, last in first out: the busiest stay warm, the others age.
///
/// The lock is a worker's own and held for a push or a pop; with workers of their own runtime it is
/// never waited for.
pub(super) struct Pool {
    idle: Mutex<HashMap<u64, Vec<Idle>, foldhash::fast::RandomState>>,
    keep_alive: bool,
    max_idle: Duration,
    max_per_upstream: usize,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("max_idle", &self.max_idle).finish_non_exhaustive()
    }
}

impl Pool {
    pub(super) fn new(options: &ClientOptions) -> Self {
        Self {
            idle: Mutex::default(),
            keep_alive: options.keep_alive,
            max_idle: options.max_idle,
            max_per_upstream: options.max_idle_per_upstream,
        }
    }

    fn lock(
        &self,
    ) -> std::sync::MutexGuard<'_, HashMap<u64, Vec<Idle>, foldhash::fast::RandomState>> {
        self.idle.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The youngest usable connection to an upstream.
    pub(super) fn pop(&self, key: u64) -> Option<SendRequest<Body>> {
        let mut idle = self.lock();
        let list = idle.get_mut(&key)?;
        while let Some(found) = list.pop() {
            if found.since.elapsed() > self.max_idle {
                // Younger ones are on top: the rest is older still.
                list.clear();
                return None;
            }
            if !found.sender.is_closed() {
                return Some(found.sender);
            }
        }
        None
    }

    /// Takes a connection back whose last answer has ended.
    pub(super) fn push(&self, key: u64, sender: SendRequest<Body>) {
        if !self.keep_alive || sender.is_closed() {
            return;
        }
        let mut idle = self.lock();
        let list = idle.entry(key).or_default();
        if list.len() < self.max_per_upstream {
            list.push(Idle { sender, since: Instant::now() });
        }
    }

    /// Closes what is too old or closed already.
    pub(super) fn sweep(&self) {
        let mut idle = self.lock();
        for list in idle.values_mut() {
            list.retain(|entry| {
                entry.since.elapsed() <= self.max_idle && !entry.sender.is_closed()
            });
        }
        idle.retain(|_, list| !list.is_empty());
    }
}
