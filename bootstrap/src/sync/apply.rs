//! Puts what links receive in force.

use std::sync::Arc;

use longmen_core::snapshot::{ConfigState, Position, Published, Publisher};
use longmen_core::sync::{Frame, Group};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::spawn_blocking;

/// The publisher, shared by links. Changes are applied one after the other, on the control runtime.
///
/// Who waits for a large build waits as a task: the runtime goes on with everything else.
#[derive(Debug, Clone)]
pub(crate) struct Applier(Arc<Mutex<Publisher>>);

/// Up to so many objects a set is applied where it arrives: cheaper than the way to another thread.
const INLINE: usize = 64;

impl Applier {
    pub(crate) fn new(publisher: Publisher) -> Self {
        Self(Arc::new(Mutex::new(publisher)))
    }

    async fn locked(&self) -> OwnedMutexGuard<Publisher> {
        Arc::clone(&self.0).lock_owned().await
    }

    /// Applies one change set in one step.
    pub(crate) async fn change(&self, frames: Vec<Frame>, position: Position) -> Published {
        let objects: usize = frames.iter().map(|frame| frame.payload.len()).sum();
        if objects <= INLINE {
            return self.locked().await.apply(&frames, position);
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
        if let Ok(mut publisher) = self.0.try_lock() {
            publisher.release();
        }
    }

    /// Large sets are compiled on a thread of their own.
    async fn elsewhere(
        &self,
        work: impl FnOnce(&mut Publisher) -> Published + Send + 'static,
    ) -> Published {
        let mut publisher = self.locked().await;
        match spawn_blocking(move || work(&mut publisher)).await {
            Ok(published) => published,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // Only at the end of the process: nobody will see what is in force.
                Err(_) => std::future::pending().await,
            },
        }
    }
}
