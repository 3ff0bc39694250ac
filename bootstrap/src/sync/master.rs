//! The master rule among stock admins.
//!
//! Source: ShenYu 2.7.1, master check: the first at one interval after the start, then at each. A
//! connection whose admin stands alone ends the check for good. One whose admin did not say it is
//! the master is closed. If none is left at the next check, all are opened again. There, a fresh
//! connection is judged in the same moment; here it has until the next check.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use longmen_core::sync::{RunningMode, RunningModeKind};
use tokio::sync::Notify;
use tracing::{debug, info};

/// What is known about one stock admin, shared by its link and the check.
#[derive(Debug, Clone, Default)]
pub(super) struct Peer(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    open: AtomicBool,
    /// Closed by the check: the link waits to be let in again.
    parked: AtomicBool,
    mode: Mutex<Option<(RunningModeKind, bool)>>,
    leave: Notify,
    enter: Notify,
}

impl Peer {
    /// The connection is open; nothing was said yet.
    pub(super) fn opened(&self) {
        self.0.open.store(true, Ordering::Release);
        *self.mode() = None;
    }

    /// The connection is closed.
    pub(super) fn closed(&self) {
        self.0.open.store(false, Ordering::Release);
        *self.mode() = None;
    }

    /// The admin said what it is.
    pub(super) fn says(&self, mode: &RunningMode) {
        *self.mode() = Some((mode.running_mode, mode.is_master));
    }

    /// Waits until the check wants the connection closed.
    pub(super) async fn told_to_leave(&self) {
        self.0.leave.notified().await;
    }

    /// Waits while the check keeps this link out.
    pub(super) async fn let_in(&self) {
        while self.0.parked.load(Ordering::Acquire) {
            self.0.enter.notified().await;
        }
    }

    fn mode(&self) -> std::sync::MutexGuard<'_, Option<(RunningModeKind, bool)>> {
        self.0.mode.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks all stock admins at each interval until one stands alone.
pub(super) async fn check(peers: Vec<Peer>, interval: Duration) {
    let mut ticks = tokio::time::interval(interval);
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let mut kept = 0;
        for peer in peers.iter().filter(|peer| peer.0.open.load(Ordering::Acquire)) {
            let said = *peer.mode();
            match said {
                Some((RunningModeKind::Standalone, _)) => {
                    debug!("the admin stands alone: no more master checks");
                    return;
                }
                Some((RunningModeKind::Cluster, true)) => kept += 1,
                Some((RunningModeKind::Cluster, false)) | None => {
                    info!(mode = ?said, "the admin is not the master: closing its connection");
                    peer.0.parked.store(true, Ordering::Release);
                    peer.0.leave.notify_one();
                }
            }
        }
        if kept == 0 && !peers.iter().any(|peer| peer.0.open.load(Ordering::Acquire)) {
            // No master is connected and nobody is just being sent away: everyone may try again.
            readmit(&peers);
        }
    }
}

fn readmit(peers: &[Peer]) {
    for peer in peers.iter().filter(|peer| !peer.0.open.load(Ordering::Acquire)) {
        if peer.0.parked.swap(false, Ordering::AcqRel) {
            peer.0.enter.notify_one();
        }
    }
}
