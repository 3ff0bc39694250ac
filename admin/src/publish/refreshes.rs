//! States of whole namespaces as frames, each read and written once for all who want it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::ws::Utf8Bytes;
use longmen_db::{Store, full_state};
use tokio::time::Instant;

use super::changes::Scope;
use super::patience::Patience;
use super::sequence::{self, State};

/// How long frames are kept that nobody asks for.
const KEEP: Duration = Duration::from_secs(10);

/// Which frames are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// The answer to a stock gateway that asks for everything.
    Myself,
    /// What stock gateways get again.
    Again(Scope),
    /// A full refresh of our gateways.
    Ours,
}

/// The frames of one namespace at one version.
#[derive(Debug)]
pub(super) struct Rendered {
    /// The epoch of the version.
    pub(super) epoch: Arc<str>,
    /// The version that the state is.
    pub(super) version: u64,
    /// The frames, in order.
    pub(super) frames: Vec<Utf8Bytes>,
}

/// Renders states and shares them.
#[derive(Debug)]
pub(super) struct Refreshes {
    store: Store,
    patience: Patience,
    slots: Mutex<HashMap<(String, Kind), Arc<Slot>>>,
}

#[derive(Debug)]
struct Slot {
    /// Held while the state is read: whoever waits for it finds the frames of the first.
    rendered: tokio::sync::Mutex<Option<Arc<Rendered>>>,
    used: Mutex<Instant>,
}

impl Refreshes {
    pub(super) fn new(store: Store, patience: Patience) -> Self {
        Self { store, patience, slots: Mutex::default() }
    }

    /// The frames of `kind`, of the given epoch and not older than `floor`, or of a state read now.
    ///
    /// # Errors
    /// The database's; that it took too long, the wait for another's reading included.
    pub(super) async fn get(
        &self,
        namespace: &str,
        kind: &Kind,
        epoch: &str,
        floor: u64,
    ) -> anyhow::Result<Arc<Rendered>> {
        let shared = self.shared(namespace, kind, epoch, floor);
        self.patience.state("a namespace's state", shared).await
    }

    async fn shared(
        &self,
        namespace: &str,
        kind: &Kind,
        epoch: &str,
        floor: u64,
    ) -> anyhow::Result<Arc<Rendered>> {
        let slot = self.slot(namespace, kind);
        let mut held = slot.rendered.lock().await;
        if let Some(rendered) = held.as_ref()
            && &*rendered.epoch == epoch
            && rendered.version >= floor
        {
            return Ok(Arc::clone(rendered));
        }
        let rendered = Arc::new(self.render(namespace, kind.clone()).await?);
        *held = Some(Arc::clone(&rendered));
        Ok(rendered)
    }

    /// Lets go of what nobody has asked for in a while.
    pub(super) fn sweep(&self) {
        let now = Instant::now();
        self.lock().retain(|_, slot| {
            let used = *slot.used.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::strong_count(slot) > 1 || now.duration_since(used) < KEEP
        });
    }

    fn slot(&self, namespace: &str, kind: &Kind) -> Arc<Slot> {
        let mut slots = self.lock();
        let slot = slots.entry((namespace.to_owned(), kind.clone())).or_insert_with(|| {
            Arc::new(Slot {
                rendered: tokio::sync::Mutex::default(),
                used: Mutex::new(Instant::now()),
            })
        });
        *slot.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        Arc::clone(slot)
    }

    async fn render(&self, namespace: &str, kind: Kind) -> anyhow::Result<Rendered> {
        let mut tx = self.store.read().await?;
        let full = full_state(&mut tx, namespace).await?;
        drop(tx);
        let namespace = namespace.to_owned();
        // Writing a large state as JSON takes long enough to hold up other sessions.
        let rendered = tokio::task::spawn_blocking(move || {
            let (epoch, version) = (full.epoch.clone(), full.version);
            let state = State::from(full);
            let frames = match &kind {
                Kind::Myself => sequence::answer_to_myself(&namespace, &state),
                Kind::Again(scope) => sequence::refresh(&namespace, &state, scope),
                Kind::Ours => sequence::full_refresh(&namespace, &epoch, version, &state),
            };
            Rendered { epoch: epoch.into(), version, frames }
        });
        Ok(rendered.await?)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, Kind), Arc<Slot>>> {
        // Nothing inside the lock can leave the map half changed.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
