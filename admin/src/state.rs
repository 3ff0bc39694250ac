//! What all calls share.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{accounts::Accounts, auth::Passwords, config::AdminConfig};

/// The shared parts of one running admin; clones are handles to the same.
#[derive(Debug, Clone)]
pub struct AppState(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    config: AdminConfig,
    accounts: Accounts,
    passwords: Passwords,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl AppState {
    pub(crate) fn new(config: AdminConfig, accounts: Accounts, stop: CancellationToken) -> Self {
        Self(Arc::new(Shared {
            config,
            accounts,
            passwords: Passwords::default(),
            stop,
            tasks: TaskTracker::new(),
        }))
    }

    /// The settings of this admin.
    #[must_use]
    pub fn config(&self) -> &AdminConfig {
        &self.0.config
    }

    /// Users and what they may do.
    #[must_use]
    pub fn accounts(&self) -> &Accounts {
        &self.0.accounts
    }

    /// Makes and checks password hashes.
    #[must_use]
    pub fn passwords(&self) -> &Passwords {
        &self.0.passwords
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

    /// Milliseconds since 1970-01-01 UTC.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}
