//! Waking whoever waits for changes.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgListener};
use tokio::sync::watch;

use crate::dialect;

/// Pause before the next attempt to listen, after a failed one.
const RETRY: Duration = Duration::from_millis(500);

/// Why a waiter was woken. After each of them the table is read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// This process committed changes.
    Own,
    /// Another admin on the same database did.
    Other,
    /// The link to the database was lost or made anew: something may have been missed.
    Link,
}

/// Tells when there may be new changes. Never tells which: the table does.
///
/// Own commits arrive without a round trip. On PostgreSQL those of other admins arrive by a
/// connection that listens; while that is down they are not heard, so poll as well.
#[derive(Debug)]
pub struct WakeUp {
    own: watch::Receiver<u64>,
    remote: Option<Remote>,
}

#[derive(Debug)]
struct Remote {
    options: Arc<PgConnectOptions>,
    listener: Option<PgListener>,
}

impl WakeUp {
    pub(crate) fn new(own: watch::Receiver<u64>, postgres: Option<Arc<PgConnectOptions>>) -> Self {
        let remote = postgres.map(|options| Remote { options, listener: None });
        Self { own, remote }
    }

    /// Waits until there may be new changes.
    ///
    /// Several commits in a row may wake once. What was committed since the last call counts, so
    /// nothing is missed between two calls. The first call on PostgreSQL returns [`Wake::Link`] as
    /// soon as it listens.
    ///
    /// Cancel safe. Never returns once the store is closed on SQLite.
    pub async fn next(&mut self) -> Wake {
        let own = &mut self.own;
        let own = async {
            if own.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            Wake::Own
        };
        let Some(remote) = &mut self.remote else { return own.await };
        tokio::select! {
            biased;
            wake = own => wake,
            wake = remote.next() => wake,
        }
    }
}

impl Remote {
    async fn next(&mut self) -> Wake {
        loop {
            if let Some(listener) = &mut self.listener {
                match listener.try_recv().await {
                    Ok(Some(_)) => {
                        // What has already arrived is answered by the same read of the table.
                        while listener.next_buffered().is_some() {}
                        return Wake::Other;
                    }
                    Ok(None) => return Wake::Link,
                    Err(error) => {
                        tracing::warn!(%error, "lost the link on which other admins' changes are announced");
                        self.listener = None;
                        return Wake::Link;
                    }
                }
            }
            match dialect::listen(&self.options).await {
                Ok(listener) => {
                    self.listener = Some(listener);
                    return Wake::Link;
                }
                Err(error) => {
                    tracing::debug!(%error, "cannot listen for other admins' changes yet");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }
}
