//! Counters of connections, for each upstream host.
//!
//! Each worker has counters of its own for each host, written under the lock of its pool, which a
//! request takes anyway: plain loads and stores, no cache line shared with another worker. Readers
//! add the workers up and may see one a moment ahead of another.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::upstream::Address;

/// Why a connection, or a place in the pool, could not be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConnectFailure {
    /// The name has no addresses, or cannot be looked up.
    Dns,
    /// Refused, unreachable, reset.
    Connect,
    /// It took too long.
    Timeout,
    /// The TLS handshake failed.
    Tls,
    /// The proxy refused or failed.
    Proxy,
    /// Too many requests wait for a connection already.
    PoolFull,
    /// No connection came free in time.
    PoolTimeout,
}

impl ConnectFailure {
    /// All of them, in the order of their counters.
    pub const ALL: [Self; 7] = [
        Self::Dns,
        Self::Connect,
        Self::Timeout,
        Self::Tls,
        Self::Proxy,
        Self::PoolFull,
        Self::PoolTimeout,
    ];

    /// The label in metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Timeout => "timeout",
            Self::Tls => "tls",
            Self::Proxy => "proxy",
            Self::PoolFull => "pool_full",
            Self::PoolTimeout => "pool_timeout",
        }
    }
}

/// What one worker counts for one host.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) opened: AtomicU64,
    pub(super) reused: AtomicU64,
    pub(super) closed_idle: AtomicU64,
    pub(super) open: AtomicU64,
    pub(super) idle: AtomicU64,
    pub(super) waiting: AtomicU64,
    replayed: AtomicU64,
    rewritten: AtomicU64,
    failed: [AtomicU64; ConnectFailure::ALL.len()],
}

impl Counters {
    pub(super) fn failed(&self, failure: ConnectFailure) {
        self.failed[failure as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn replayed(&self) {
        self.replayed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn rewritten(&self) {
        self.rewritten.fetch_add(1, Ordering::Relaxed);
    }
}

/// Adds without a locked instruction: only for counters that are written under one lock.
pub(super) fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed) + n, Ordering::Relaxed);
}

/// Sets a gauge.
pub(super) fn set(gauge: &AtomicU64, n: usize) {
    gauge.store(n as u64, Ordering::Relaxed);
}

/// The connections of one upstream host, over all workers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConnectionStats {
    /// `scheme://host:port`.
    pub address: String,
    /// Connections opened so far.
    pub opened: u64,
    /// Requests so far that went out on a kept connection.
    pub reused: u64,
    /// Connections closed so far because they were unused too long, or too old.
    pub closed_idle: u64,
    /// Requests so far that were repeated because the kept connection was dead.
    pub replayed: u64,
    /// Requests so far that strategy `reqwest` left to the raw client.
    pub target_rewritten: u64,
    /// Connections in use or being opened. With strategy `reqwest`: requests under way.
    pub in_use: u64,
    /// Unused connections. Strategy `reqwest` does not tell.
    pub idle: u64,
    /// Requests that wait for a connection of a fixed pool.
    pub waiting: u64,
    /// Failures so far, in the order of [`ConnectFailure::ALL`].
    pub failed: [u64; ConnectFailure::ALL.len()],
}

impl ConnectionStats {
    fn take_in(&mut self, counters: &Counters) {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (open, idle) = (get(&counters.open), get(&counters.idle));
        self.opened += get(&counters.opened);
        self.reused += get(&counters.reused);
        self.closed_idle += get(&counters.closed_idle);
        self.replayed += get(&counters.replayed);
        self.target_rewritten += get(&counters.rewritten);
        self.in_use += open.saturating_sub(idle);
        self.idle += idle;
        self.waiting += get(&counters.waiting);
        for (sum, counter) in self.failed.iter_mut().zip(&counters.failed) {
            *sum += get(counter);
        }
    }

    /// How often one kind of failure happened.
    #[must_use]
    pub fn failures(&self, failure: ConnectFailure) -> u64 {
        self.failed[failure as usize]
    }
}

/// All counters of one client, of all workers.
///
/// Bounded by what is configured: a host that no pool has a place for any more is forgotten.
#[derive(Debug, Default)]
pub(super) struct HostBook {
    hosts: Mutex<HashMap<u64, HostEntry>>,
}

#[derive(Debug)]
struct HostEntry {
    address: Arc<Address>,
    workers: Vec<(usize, Arc<Counters>)>,
}

impl HostBook {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, HostEntry>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counters of a worker for a host; those it had before, if they are still there.
    pub(super) fn counters(
        &self,
        key: u64,
        address: &Address,
        worker: usize,
    ) -> (Arc<Address>, Arc<Counters>) {
        let mut hosts = self.lock();
        let entry = hosts.entry(key).or_insert_with(|| HostEntry {
            address: Arc::new(address.clone()),
            workers: Vec::new(),
        });
        let found = entry.workers.iter().find(|(number, _)| *number == worker);
        let counters = match found {
            Some((_, counters)) => Arc::clone(counters),
            None => {
                let counters = Arc::new(Counters::default());
                entry.workers.push((worker, Arc::clone(&counters)));
                counters
            }
        };
        (Arc::clone(&entry.address), counters)
    }

    /// Forgets hosts that nobody has counters of.
    pub(super) fn sweep(&self) {
        self.lock().retain(|_, entry| {
            entry.workers.iter().any(|(_, counters)| Arc::strong_count(counters) > 1)
        });
    }

    /// Sums over the workers, by address.
    pub(super) fn read(&self) -> Vec<ConnectionStats> {
        let mut all: Vec<_> = self
            .lock()
            .values()
            .map(|entry| {
                let mut sum = ConnectionStats {
                    address: entry.address.to_string(),
                    ..ConnectionStats::default()
                };
                for (_, counters) in &entry.workers {
                    sum.take_in(counters);
                }
                sum
            })
            .collect();
        all.sort_unstable_by(|a, b| a.address.cmp(&b.address));
        all
    }
}
