//! Puts what links receive in force.

use std::sync::{Arc, Mutex, PoisonError};

use longmen_core::snapshot::{ConfigState, Position, Published, Publisher};
use longmen_core::sync::Frame;
use tokio::task::spawn_blocking;

/// The publisher, shared by links. Changes are applied one after the other, on the control runtime.
#[derive(Debug, Clone)]
pub(crate) struct Applier(Arc<Mutex<Publisher>>);

/// Up to so many objects a set is applied where it arrives: cheaper than the way to another thread.
const INLINE: usize = 64;

impl Applier {
    pub(crate) fn new(publisher: Publisher) -> Self {
        Self(Arc::new(Mutex::new(publisher)))
    }

    fn locked<T>(&self, work: impl FnOnce(&mut Publisher) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Applies one change set in one step.
    pub(crate) async fn change(&self, frames: Vec<Frame>, position: Position) -> Published {
        let objects: usize = frames.iter().map(|frame| frame.payload.len()).sum();
        if objects <= INLINE {
            return self.locked(|publisher| publisher.apply(&frames, position));
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
            work(&mut shared.lock().unwrap_or_else(PoisonError::into_inner))
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
