//! Puts what links receive in force.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use longmen_core::snapshot::{ConfigState, Position, Published, Publisher};
use longmen_core::sync::{Frame, Group};
use longmen_core::telemetry::metrics::Metrics;
use tokio::sync::{Mutex, OwnedMutexGuard};
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
        published
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

    async fn locked(&self) -> OwnedMutexGuard<Publisher> {
        Arc::clone(&self.publisher).lock_owned().await
    }

    /// Applies one change set in one step.
    pub(crate) async fn change(&self, frames: Vec<Frame>, position: Position) -> Published {
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
        self.elsewhere(move |publisher| publisher.replace(&frames, position, keep)).await
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
