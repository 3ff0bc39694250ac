//! Kept connections, and how many there may be.
//!
//! One pool for each worker; with a fixed number of connections one for all workers, so that a
//! connection that one worker gives back serves another's request.

mod permit;
mod slot;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::conn::Http1;
use super::http2::{Http2, Stream};
use super::stats::{ConnectFailure, HostBook, add, set};
use super::{ClientOptions, PoolLimit};
use crate::upstream::Endpoint;

pub(super) use permit::Permit;
pub(super) use slot::{Gate, Protocol};
use slot::{Slot, Waiter};

type Slots = HashMap<u64, Slot, foldhash::fast::RandomState>;

/// What a request may go out on.
pub(super) enum Grant {
    /// A connection that another request gave back.
    Kept(Http1),
    /// The right to open one.
    Open(Permit),
}

/// For each upstream host the unused connections, last in first out: the busiest stay warm, the
/// others age.
///
/// The lock is a worker's own (but for fixed pools) and held for a push or a pop; with workers of
/// their own runtime it is never waited for. Counters are written under it.
pub(super) struct Pool {
    worker: usize,
    keep: bool,
    max_idle: Duration,
    max_life: Option<Duration>,
    max_idle_per_upstream: usize,
    limit: usize,
    max_pending: usize,
    acquire_timeout: Duration,
    book: Arc<HostBook>,
    slots: Mutex<Slots>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("worker", &self.worker).finish_non_exhaustive()
    }
}

impl Pool {
    pub(super) fn new(options: &ClientOptions, book: &Arc<HostBook>, worker: usize) -> Self {
        let pool = &options.pool;
        let (limit, max_pending, acquire_timeout) = match pool.limit {
            PoolLimit::Fixed { max_connections, max_pending, acquire_timeout } => {
                (max_connections.max(1), max_pending, acquire_timeout)
            }
            PoolLimit::Elastic | PoolLimit::Disabled => (usize::MAX, 0, Duration::ZERO),
        };
        Self {
            worker,
            keep: options.keep_alive && pool.limit != PoolLimit::Disabled,
            max_idle: pool.max_idle,
            max_life: pool.max_life,
            max_idle_per_upstream: pool.max_idle_per_upstream,
            limit,
            max_pending,
            acquire_timeout,
            book: Arc::clone(book),
            slots: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_slot<T>(&self, endpoint: &Endpoint, f: impl FnOnce(&mut Slot) -> T) -> T {
        let mut slots = self.lock();
        f(slots.entry(endpoint.pool_key).or_insert_with(|| {
            let key = endpoint.pool_key;
            Slot::new(self.book.counters(key, &endpoint.address, self.worker))
        }))
    }

    fn is_old(&self, connection: &Http1) -> bool {
        self.max_life.is_some_and(|life| connection.state.born.elapsed() > life)
    }

    /// Whether connections are kept at all.
    pub(super) fn keeps(&self) -> bool {
        self.keep
    }

    /// The youngest usable connection to an upstream. For a request that must not be sent twice only
    /// one that the upstream is not about to close, as far as its habits are known.
    pub(super) fn pop(&self, key: u64, repeatable: bool) -> Option<Http1> {
        let mut slots = self.lock();
        let slot = slots.get_mut(&key)?;
        let mut usable = None;
        while let Some(found) = slot.idle.pop() {
            if found.sender.is_closed() {
                if let Some(unused) = found.closed_after() {
                    slot.patience.learn(unused);
                }
                continue;
            }
            if !repeatable && slot.patience.may_end(found.since.elapsed()) {
                // The rest is older still; requests that may be repeated can have them.
                slot.idle.push(found);
                break;
            }
            if found.since.elapsed() > self.max_idle {
                // Younger ones are on top: the rest is older still.
                add(&slot.counters.closed_idle, slot.idle.len() as u64 + 1);
                slot.idle.clear();
            } else if self.is_old(&found) {
                add(&slot.counters.closed_idle, 1);
            } else {
                add(&slot.counters.reused, 1);
                usable = Some(found);
                break;
            }
        }
        set(&slot.counters.idle, slot.idle.len());
        usable
    }

    /// Takes a connection back whose last answer has ended.
    pub(super) fn push(&self, mut connection: Http1) {
        if !connection.end() || !self.keep || connection.sender.is_closed() {
            return;
        }
        let old = self.is_old(&connection);
        connection.since = Instant::now();
        let mut slots = self.lock();
        // Its own permit keeps the slot.
        let Some(slot) = slots.get_mut(&connection.state.key) else { return };
        if old {
            add(&slot.counters.closed_idle, 1);
            return;
        }
        if let Some(connection) = slot.hand_over(connection)
            && slot.idle.len() < self.max_idle_per_upstream
        {
            slot.idle.push(connection);
            set(&slot.counters.idle, slot.idle.len());
        }
    }

    /// The right to open a connection, or, unless it must be a `fresh` one, a connection that came
    /// free meanwhile. Waits only where the number of connections is fixed.
    pub(super) async fn acquire(
        self: &Arc<Self>,
        endpoint: &Endpoint,
        fresh: bool,
    ) -> Result<Grant, ConnectFailure> {
        let entered = self.with_slot(endpoint, |slot| {
            if slot.open < self.limit {
                return Ok(Ok(Grant::Open(self.permit(endpoint.pool_key, slot))));
            }
            if slot.waiters.len() >= self.max_pending {
                slot.counters.failed(ConnectFailure::PoolFull);
                return Err(ConnectFailure::PoolFull);
            }
            // One may have come free since the caller looked; where a fresh one is wanted, closing
            // it makes room.
            let unused = slot.idle.pop();
            set(&slot.counters.idle, slot.idle.len());
            let unused = match unused {
                Some(kept) if !fresh && !kept.sender.is_closed() => {
                    add(&slot.counters.reused, 1);
                    return Ok(Ok(Grant::Kept(kept)));
                }
                other => other,
            };
            let (give, take) = oneshot::channel();
            slot.waiters.push_back(Waiter { give, fresh });
            set(&slot.counters.waiting, slot.waiters.len());
            Ok(Err((take, unused)))
        })?;
        let (take, unused) = match entered {
            Ok(grant) => return Ok(grant),
            Err(waiting) => waiting,
        };
        drop(unused);
        let mut waiting = Waiting { pool: self, endpoint, take: Some(take) };
        let Some(take) = waiting.take.as_mut() else { return Err(ConnectFailure::PoolTimeout) };
        match timeout(self.acquire_timeout, take).await {
            Ok(Ok(grant)) => Ok(grant),
            Ok(Err(_)) | Err(_) => {
                self.with_slot(endpoint, |slot| slot.counters.failed(ConnectFailure::PoolTimeout));
                Err(ConnectFailure::PoolTimeout)
            }
        }
    }

    fn permit(self: &Arc<Self>, key: u64, slot: &mut Slot) -> Permit {
        slot.open += 1;
        set(&slot.counters.open, slot.open);
        Permit::new(self, key, slot)
    }

    /// A place on an HTTP/2 connection that is open already.
    pub(super) fn stream(&self, endpoint: &Endpoint) -> Option<Stream> {
        self.with_slot(endpoint, |slot| {
            slot.http2.retain(Http2::is_open);
            let young = |one: &&Http2| self.max_life.is_none_or(|life| one.born.elapsed() <= life);
            let best = slot.http2.iter().filter(young).min_by_key(|one| one.active())?;
            // Past its streams, one more waits in it where no other connection may be opened.
            if !best.has_room() && slot.open < self.limit {
                return None;
            }
            add(&slot.counters.reused, 1);
            Some(best.stream())
        })
    }

    /// Keeps an HTTP/2 connection for others, and takes a place on it.
    pub(super) fn share(&self, endpoint: &Endpoint, connection: Http2) -> Stream {
        let stream = connection.stream();
        if self.keep {
            self.with_slot(endpoint, |slot| {
                slot.protocol = Protocol::Http2;
                slot.http2.push(connection);
            });
        }
        stream
    }

    /// What is known of the upstream's protocol, and the gate that the first to find out passes.
    pub(super) fn protocol(&self, endpoint: &Endpoint) -> (Protocol, Gate) {
        self.with_slot(endpoint, |slot| (slot.protocol, Arc::clone(&slot.gate)))
    }

    /// Remembers that the upstream does not speak HTTP/2.
    pub(super) fn speaks_http1(&self, endpoint: &Endpoint) {
        self.with_slot(endpoint, |slot| slot.protocol = Protocol::Http1);
    }

    /// Counts one more request that the other strategy left to this one.
    pub(super) fn rewritten(&self, endpoint: &Endpoint) {
        self.with_slot(endpoint, |slot| slot.counters.rewritten());
    }

    /// Counts one more connection, of a client with connections of its own.
    pub(super) fn opened(&self, key: u64) {
        if let Some(slot) = self.lock().get(&key) {
            add(&slot.counters.opened, 1);
        }
    }

    /// Counts one more request on a kept connection.
    pub(super) fn reused(&self, endpoint: &Endpoint) {
        self.with_slot(endpoint, |slot| add(&slot.counters.reused, 1));
    }

    /// Closes what is too old or closed already, and forgets hosts without connections.
    pub(super) fn sweep(&self) {
        let mut slots = self.lock();
        for slot in slots.values_mut() {
            let before = slot.idle.len();
            let Slot { idle, patience, .. } = slot;
            idle.retain(|entry| {
                if let Some(unused) = entry.closed_after() {
                    patience.learn(unused);
                }
                !entry.sender.is_closed()
            });
            let open = slot.idle.len();
            slot.idle.retain(|entry| entry.since.elapsed() <= self.max_idle && !self.is_old(entry));
            let shared = slot.http2.len();
            slot.http2.retain(|one| one.is_open() && !one.is_idle(self.max_idle, self.max_life));
            let closed = open - slot.idle.len() + shared - slot.http2.len();
            if before != slot.idle.len() || closed > 0 {
                add(&slot.counters.closed_idle, closed as u64);
                set(&slot.counters.idle, slot.idle.len());
            }
        }
        slots.retain(|_, slot| !slot.is_unused());
        drop(slots);
        self.book.sweep();
    }
}

/// A request in the queue; leaves it when it is served, too late, or gone.
struct Waiting<'a> {
    pool: &'a Pool,
    endpoint: &'a Endpoint,
    take: Option<oneshot::Receiver<Grant>>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        // A grant that came too late goes on to the next, which takes the lock: so before it.
        drop(self.take.take());
        self.pool.with_slot(self.endpoint, |slot| {
            slot.waiters.retain(|waiter| !waiter.give.is_closed());
            set(&slot.counters.waiting, slot.waiters.len());
        });
    }
}
