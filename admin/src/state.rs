//! What all calls share.

use std::sync::Arc;

use longmen_db::Store;

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{auth::Passwords, config::AdminConfig, publish::Publisher};

/// The shared parts of one running admin; clones are handles to the same.
#[derive(Debug, Clone)]
pub struct AppState(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    config: AdminConfig,
    store: Store,
    passwords: Passwords,
    publisher: Publisher,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl AppState {
    pub(crate) fn new(
        config: AdminConfig,
        store: Store,
        publisher: Publisher,
        stop: CancellationToken,
    ) -> Self {
        Self(Arc::new(Shared {
            config,
            store,
            passwords: Passwords::default(),
            publisher,
            stop,
            tasks: TaskTracker::new(),
        }))
    }

    /// The settings of this admin.
    #[must_use]
    pub fn config(&self) -> &AdminConfig {
        &self.0.config
    }

    /// Where everything is kept.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// Makes and checks password hashes.
    #[must_use]
    pub fn passwords(&self) -> &Passwords {
        &self.0.passwords
    }

    /// The sync with gateways.
    #[must_use]
    pub fn publisher(&self) -> &Publisher {
        &self.0.publisher
    }

    /// Cancelled when the admin stops.
    #[must_use]
    pub fn stop(&self) -> &CancellationToken {
        &self.0.stop
    }

    /// Where tasks that outlive a call are spawned; the stop waits for them.
    #[must_use]
    pub fn tasks(&self) -> &TaskTracker {
        &self.0.tasks
    }

    /// Milliseconds since 1970-01-01 UTC, by the store's clock.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.0.store.now_ms()
    }
}
