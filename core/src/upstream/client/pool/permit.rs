//! The right to one connection.

use std::sync::{Arc, Weak};

use super::super::stats::{ConnectFailure, Counters, add, set};
use super::slot::Slot;
use super::{Grant, Pool};
use crate::upstream::Address;

/// Counts for one connection from before it is opened until its socket is gone; then it passes on
/// to whoever waits.
pub(in crate::upstream::client) struct Permit {
    /// `None` once it has been passed on. Does not hold the pool: what the pool holds would never
    /// close then.
    pool: Option<Weak<Pool>>,
    key: u64,
    address: Arc<Address>,
    counters: Arc<Counters>,
}

impl Permit {
    pub(super) fn new(pool: &Arc<Pool>, key: u64, slot: &Slot) -> Self {
        Self {
            pool: Some(Arc::downgrade(pool)),
            key,
            address: Arc::clone(&slot.address),
            counters: Arc::clone(&slot.counters),
        }
    }

    /// Where the connection leads.
    pub(in crate::upstream::client) fn address(&self) -> &Arc<Address> {
        &self.address
    }

    /// Its connection is open.
    pub(in crate::upstream::client) fn opened(&self) {
        if let Some(pool) = self.pool.as_ref().and_then(Weak::upgrade) {
            let _slots = pool.lock();
            add(&self.counters.opened, 1);
        }
    }

    /// Its connection was dead and is another one now.
    pub(in crate::upstream::client) fn replayed(&self) {
        self.repeated();
        self.opened();
    }

    /// Its connection was dead, and the request goes out on another.
    pub(in crate::upstream::client) fn repeated(&self) {
        self.counters.replayed();
    }

    /// Its connection cannot be had.
    pub(in crate::upstream::client) fn failed(&self, failure: ConnectFailure) {
        self.counters.failed(failure);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Some(pool) = self.pool.take().and_then(|pool| pool.upgrade()) else { return };
        let mut slots = pool.lock();
        let Some(slot) = slots.get_mut(&self.key) else { return };
        while let Some(waiter) = slot.waiters.pop_front() {
            set(&slot.counters.waiting, slot.waiters.len());
            let next = Self::new(&pool, self.key, slot);
            match waiter.give.send(Grant::Open(next)) {
                Ok(()) => return,
                // Taken apart here: its end would come back to this lock.
                Err(Grant::Open(mut gone)) => gone.pool = None,
                Err(Grant::Kept(_)) => {}
            }
        }
        slot.open -= 1;
        set(&slot.counters.open, slot.open);
    }
}
