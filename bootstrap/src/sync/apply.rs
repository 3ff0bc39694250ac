//! Puts what links receive in force.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use longmen_core::snapshot::{ConfigState, Position, Published, Publisher};
use longmen_core::sync::Frame;
use longmen_core::telemetry::metrics::Metrics;
use tokio::task::spawn_blocking;

/// The publisher, shared by links. Changes are applied one after the other, on the control runtime.
#[derive(Debug, Clone)]
pub(crate) struct Applier(Arc<Mutex<Timed>>);

/// The publisher, and who is told how long it takes.
#[derive(Debug)]
struct Timed {
    publisher: Publisher,
    metrics: Option<Metrics>,
    faults: usize,
}

impl Timed {
    fn publish(&mut self, work: impl FnOnce(&mut Publisher) -> Published) -> Published {
        let begun = Instant::now();
        let published = work(&mut self.publisher);
        if let Some(metrics) = &self.metrics {
            metrics.published(begun.elapsed());
        }
        self.faults = published.faults.len();
        published
    }
}

/// Up to so many objects a set is applied where it arrives: cheaper than the way to another thread.
const INLINE: usize = 64;

impl Applier {
    /// An applier; `metrics` are told how long publications take.
    pub(crate) fn new(publisher: Publisher, metrics: Option<Metrics>) -> Self {
        Self(Arc::new(Mutex::new(Timed { publisher, metrics, faults: 0 })))
    }

    fn held(&self) -> MutexGuard<'_, Timed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn locked<T>(&self, work: impl FnOnce(&mut Publisher) -> T) -> T {
        work(&mut self.held().publisher)
    }

    /// Objects that are not in force as configured.
    pub(crate) fn faults(&self) -> usize {
        self.held().faults
    }

    /// Old snapshots that somebody still holds.
    pub(crate) fn retired(&self) -> usize {
        self.locked(|publisher| publisher.retired())
    }

    /// Applies one change set in one step.
    pub(crate) async fn change(&self, frames: Vec<Frame>, position: Position) -> Published {
        let objects: usize = frames.iter().map(|frame| frame.payload.len()).sum();
        if objects <= INLINE {
            return self.held().publish(|publisher| publisher.apply(&frames, position));
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
    pub(crate) fn position(&self) -> Position {
        self.locked(|publisher| publisher.position())
    }

    /// The groups that hold anything.
    pub(crate) fn filled(&self) -> std::collections::HashSet<longmen_core::sync::Group> {
        self.locked(|publisher| publisher.state().filled())
    }

    /// Frees old snapshots that nobody holds any more.
    pub(crate) fn release(&self) {
        self.locked(Publisher::release);
    }

    /// Large sets are compiled on a thread of their own, so that links go on.
    async fn elsewhere(
        &self,
        work: impl FnOnce(&mut Publisher) -> Published + Send + 'static,
    ) -> Published {
        let shared = Arc::clone(&self.0);
        let done = spawn_blocking(move || {
            shared.lock().unwrap_or_else(PoisonError::into_inner).publish(work)
        });
        match done.await {
            Ok(published) => published,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // Only at the end of the process: nobody will see what is in force.
                Err(_) => std::future::pending().await,
            },
        }
    }
}
