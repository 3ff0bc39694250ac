//! The one pointer that requests load.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};

use super::Snapshot;

/// Publishes snapshots by one pointer store.
#[derive(Debug)]
pub struct SnapshotStore(ArcSwap<Snapshot>);

impl SnapshotStore {
    /// A store that holds an empty snapshot: nothing is configured yet.
    #[must_use]
    pub fn new() -> Self {
        Self(ArcSwap::from_pointee(Snapshot::default()))
    }

    /// The snapshot in force, for one request. Writes no memory that another worker writes.
    #[must_use]
    pub fn load(&self) -> Guard<Arc<Snapshot>> {
        self.0.load()
    }

    /// The snapshot in force, to be kept for longer.
    #[must_use]
    pub fn load_full(&self) -> Arc<Snapshot> {
        self.0.load_full()
    }

    /// Puts a snapshot in force and returns the one before, so that its drop can be left to the
    /// caller.
    pub(super) fn swap(&self, snapshot: Arc<Snapshot>) -> Arc<Snapshot> {
        self.0.swap(snapshot)
    }
}

impl Default for SnapshotStore {
    fn default() -> Self {
        Self::new()
    }
}
