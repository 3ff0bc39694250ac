//! Puts what links receive in force.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use longmen_core::snapshot::saved::{Objects, Saved};
use longmen_core::snapshot::{ConfigState, Position, Published, Publisher};
use longmen_core::sync::{Frame, GatewayFault, Group};
use longmen_core::telemetry::metrics::Metrics;
use tokio::sync::{Mutex, Notify, OwnedMutexGuard};
use tokio::task::{JoinError, spawn_blocking};

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
    /// The first of them.
    first_faults: std::sync::Mutex<Vec<GatewayFault>>,
    /// Changes written at this gateway since an admin said everything.
    local_changes: AtomicU64,
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
        let first = published.faults.iter().take(SHOWN_FAULTS).cloned().collect();
        *self.first_faults.lock().unwrap_or_else(PoisonError::into_inner) = first;
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

/// So many faults are kept to be shown.
const SHOWN_FAULTS: usize = 100;

/// What is kept of a gateway.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) objects: Objects,
    pub(crate) position: Position,
    pub(crate) local_changes: u64,
    /// As [`Applier::restored_ms`].
    pub(crate) restored_ms: Option<i64>,
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

    /// The first of those objects, with what is wrong.
    pub(crate) fn first_faults(&self) -> Vec<GatewayFault> {
        self.told.first_faults.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes in force that were written at this gateway itself, and that no admin knows of.
    pub(crate) fn local_changes(&self) -> u64 {
        self.told.local_changes.load(Ordering::Relaxed)
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
    pub(crate) fn restore(&self, saved: Saved) -> Published {
        let Saved { head, state } = saved;
        let mut publisher = self.publisher.blocking_lock();
        self.told.restored_ms.store(head.saved_ms, Ordering::Relaxed);
        self.told.local_changes.store(head.local_changes, Ordering::Relaxed);
        let position = head.position();
        let published =
            self.told.publish(&mut publisher, |publisher| publisher.restore(state, position));
        self.told.changed.store(false, Ordering::Release);
        published
    }

    /// Looks at the objects in force, on a thread where that may take its time. Changes do not wait for
    /// `look`.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&ConfigState) -> T + Send + 'static,
    ) -> T {
        let publisher = self.locked().await;
        let looking = spawn_blocking(move || {
            let state = publisher.state().clone();
            drop(publisher);
            look(&state)
        });
        finished(looking.await).await
    }

    /// Asks the publisher itself, on a thread where that may take a moment. Changes wait for `ask`, which
    /// has to be short whatever is configured.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&Publisher) -> T + Send + 'static,
    ) -> T {
        let publisher = self.locked().await;
        finished(spawn_blocking(move || ask(&publisher)).await).await
    }

    /// Applies what was written at this gateway itself, in one step. The version in force stays.
    pub(crate) async fn local(&self, frames: Vec<Frame>) -> Published {
        let told = Arc::clone(&self.told);
        self.elsewhere(move |publisher| {
            told.local_changes.fetch_add(1, Ordering::Relaxed);
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

    /// What is in force, to be kept.
    pub(crate) async fn copy(&self) -> Kept {
        let publisher = self.locked().await;
        let (told, restored_ms) = (Arc::clone(&self.told), self.restored_ms());
        let copying = spawn_blocking(move || {
            told.changed.store(false, Ordering::Release);
            Kept {
                objects: Objects::of(publisher.state()),
                position: publisher.position(),
                local_changes: told.local_changes.load(Ordering::Relaxed),
                restored_ms,
            }
        });
        finished(copying.await).await
    }

    /// What could not be kept is to be kept another time.
    pub(crate) fn not_kept(&self) {
        self.told.changed.store(true, Ordering::Release);
        self.told.change.notify_one();
    }

    async fn locked(&self) -> OwnedMutexGuard<Publisher> {
        Arc::clone(&self.publisher).lock_owned().await
    }

    /// Applies one change set in one step.
    pub(crate) async fn change(&self, frames: Vec<Frame>, position: Position) -> Published {
        let objects: usize = frames.iter().map(|frame| frame.payload.len()).sum();
        let published = if objects <= INLINE {
            let mut publisher = self.locked().await;
            self.told.publish(&mut publisher, |publisher| publisher.apply(&frames, position))
        } else {
            self.elsewhere(move |publisher| publisher.apply(&frames, position)).await
        };
        self.told.confirm();
        published
    }

    /// Puts a refresh in force in one step; `keep` as [`Publisher::replace`]. `whole`: it is one of
    /// everything, so that nothing is left of what was written at this gateway itself.
    pub(crate) async fn replace(
        &self,
        frames: Vec<Frame>,
        position: Position,
        whole: bool,
        keep: impl FnOnce(&ConfigState, &mut ConfigState) + Send + 'static,
    ) -> Published {
        let told = Arc::clone(&self.told);
        let replaced = self.elsewhere(move |publisher| {
            if whole {
                told.local_changes.store(0, Ordering::Relaxed);
            }
            publisher.replace(&frames, position, keep)
        });
        let published = replaced.await;
        self.told.confirm();
        published
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
        finished(spawn_blocking(move || told.publish(&mut publisher, work)).await).await
    }
}

/// What came of a task on another thread.
async fn finished<T>(ended: Result<T, JoinError>) -> T {
    match ended {
        Ok(value) => value,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Only at the end of the process: nobody will see what came of it.
            Err(_) => std::future::pending().await,
        },
    }
}
