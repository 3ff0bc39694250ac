//! Puts what links receive in force.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::time::Instant;

use longmen_core::snapshot::{ConfigState, Position, Published, Publisher};
use longmen_core::sync::{Frame, Group};
use longmen_core::telemetry::metrics::Metrics;
use tokio::sync::{Mutex, Notify, OwnedMutexGuard};
use tokio::task::spawn_blocking;

/// The publisher, shared by links. Changes are applied one after the other, on the control runtime.
///
/// Who waits for a large build waits as a task: the runtime goes on with everything else.
#[derive(Debug, Clone)]
pub(crate) struct Applier {
    publisher: Arc<Mutex<Publisher>>,
    told: Arc<Told>,
}

/// What is told about publications.
#[derive(Debug, Default)]
struct Told {
    metrics: Option<Metrics>,
    faults: AtomicUsize,
    retired: AtomicUsize,
    /// When the file was written that is in force, in milliseconds since 1970-01-01 UTC; 0 once an admin
    /// has said what is.
    restored_ms: AtomicI64,
    /// Whether an admin has said what is in force.
    confirmed: AtomicBool,
    /// Whether something came into force that is not kept yet.
    changed: AtomicBool,
    change: Notify,
}

impl Told {
    fn publish(
        &self,
        publisher: &mut Publisher,
        work: impl FnOnce(&mut Publisher) -> Published,
    ) -> Published {
        let begun = Instant::now();
        let published = work(publisher);
        if let Some(metrics) = &self.metrics {
            metrics.published(begun.elapsed());
        }
        self.faults.store(published.faults.len(), Ordering::Relaxed);
        self.retired.store(publisher.retired(), Ordering::Relaxed);
        self.changed.store(true, Ordering::Release);
        self.change.notify_one();
        published
    }

    fn confirm(&self) {
        self.restored_ms.store(0, Ordering::Relaxed);
        self.confirmed.store(true, Ordering::Release);
    }
}

/// Up to so many objects a set is applied where it arrives: cheaper than the way to another thread.
const INLINE: usize = 64;

impl Applier {
    /// An applier; `metrics` are told how long publications take.
    pub(crate) fn new(publisher: Publisher, metrics: Option<Metrics>) -> Self {
        let told = Arc::new(Told { metrics, ..Told::default() });
        Self { publisher: Arc::new(Mutex::new(publisher)), told }
    }

    /// Objects that are not in force as configured.
    pub(crate) fn faults(&self) -> usize {
        self.told.faults.load(Ordering::Relaxed)
    }

    /// Old snapshots that somebody still holds.
    pub(crate) fn retired(&self) -> usize {
        self.told.retired.load(Ordering::Relaxed)
    }

    /// An admin has said that what is in force is the newest.
    pub(crate) fn confirm(&self) {
        self.told.confirm();
    }

    /// Whether an admin has said what is in force since the start.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.told.confirmed.load(Ordering::Acquire)
    }

    /// When the file was written that is in force, in milliseconds since 1970-01-01 UTC; `None` where
    /// what is in force comes from an admin.
    pub(crate) fn restored_ms(&self) -> Option<i64> {
        Some(self.told.restored_ms.load(Ordering::Relaxed)).filter(|ms| *ms != 0)
    }

    /// Puts a kept configuration in force, at the start: nobody else has the publisher then.
    pub(crate) fn restore(
        &self,
        state: ConfigState,
        position: Position,
        saved_ms: i64,
    ) -> Published {
        let mut publisher = self.publisher.blocking_lock();
        self.told.restored_ms.store(saved_ms, Ordering::Relaxed);
        let published =
            self.told.publish(&mut publisher, |publisher| publisher.restore(state, position));
        self.told.changed.store(false, Ordering::Release);
        published
    }

    /// The objects in force, for somebody to look at.
    pub(crate) async fn copy_to_show(&self) -> (ConfigState, Position) {
        let publisher = self.locked().await;
        (publisher.state().clone(), publisher.position())
    }

    /// Applies what was written at this gateway itself, in one step. The version in force stays.
    pub(crate) async fn local(&self, frames: Vec<Frame>) -> Published {
        self.elsewhere(move |publisher| {
            let position = publisher.position();
            publisher.apply(&frames, position)
        })
        .await
    }

    /// Waits until something has come into force since the last [`Applier::copy`].
    pub(crate) async fn changed(&self) {
        while !self.has_changed() {
            self.told.change.notified().await;
        }
    }

    /// Whether something has come into force since the last [`Applier::copy`].
    pub(crate) fn has_changed(&self) -> bool {
        self.told.changed.load(Ordering::Acquire)
    }

    /// The objects in force, which are shared, and where they stand.
    pub(crate) async fn copy(&self) -> (ConfigState, Position) {
        let publisher = self.locked().await;
        let told = Arc::clone(&self.told);
        let copying = spawn_blocking(move || {
            told.changed.store(false, Ordering::Release);
            (publisher.state().clone(), publisher.position())
        });
        match copying.await {
            Ok(copied) => copied,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => std::future::pending().await,
            },
        }
    }

    async fn locked(&self) -> OwnedMutexGuard<Publisher> {
        Arc::clone(&self.publisher).lock_owned().await
    }

    /// Applies one change set in one step.
    pub(crate) async fn change(&self, frames: Vec<Frame>, position: Position) -> Published {
        self.confirm();
        let objects: usize = frames.iter().map(|frame| frame.payload.len()).sum();
        if objects <= INLINE {
            let mut publisher = self.locked().await;
            return self
                .told
                .publish(&mut publisher, |publisher| publisher.apply(&frames, position));
        }
        self.elsewhere(move |publisher| publisher.apply(&frames, position)).await
    }

    /// Puts a full refresh in force in one step; `keep` as [`Publisher::replace`].
    pub(crate) async fn replace(
        &self,
        frames: Vec<Frame>,
        position: Position,
        keep: impl FnOnce(&ConfigState, &mut ConfigState) + Send + 'static,
    ) -> Published {
        let replaced =
            self.elsewhere(move |publisher| publisher.replace(&frames, position, keep)).await;
        self.confirm();
        replaced
    }

    /// The position in force.
    pub(crate) async fn position(&self) -> Position {
        self.locked().await.position()
    }

    /// The groups that hold anything.
    pub(crate) async fn filled(&self) -> std::collections::HashSet<Group> {
        self.locked().await.state().filled()
    }

    /// Frees old snapshots that nobody holds any more; while a build is under way, another time.
    pub(crate) fn release(&self) {
        if let Ok(mut publisher) = self.publisher.try_lock() {
            publisher.release();
            self.told.retired.store(publisher.retired(), Ordering::Relaxed);
        }
    }

    /// Large sets are compiled on a thread of their own.
    async fn elsewhere(
        &self,
        work: impl FnOnce(&mut Publisher) -> Published + Send + 'static,
    ) -> Published {
        let mut publisher = self.locked().await;
        let told = Arc::clone(&self.told);
        match spawn_blocking(move || told.publish(&mut publisher, work)).await {
            Ok(published) => published,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // Only at the end of the process: nobody will see what is in force.
                Err(_) => std::future::pending().await,
            },
        }
    }
}
