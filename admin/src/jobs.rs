//! Periodic jobs that exactly one of the admins on a database runs.
//!
//! Each has a lease ([`longmen_db::Lease`]). Its holder shows every two seconds that it lives, and lets go
//! of the job seven seconds after the last time that it could: whoever waits takes the lease when it saw
//! no sign for ten. Each side counts by its own clock, from moments of which the holder's is the earlier,
//! so the three seconds between are there however the clocks differ. A job that is let go of is dropped
//! where it stands; what it writes it writes under `require_lease`, so that nothing of it comes later.

use std::future::Future;
use std::time::Duration;

use longmen_db::{Lease, LeaseState, Store};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

/// How often a holder shows that it lives, and whoever waits looks.
const EVERY: Duration = Duration::from_secs(2);

/// How long after its last sign a holder goes on.
const HOLD: Duration = Duration::from_secs(7);

/// How long whoever waits must see no sign. With one look more it is over 12 s after the last sign.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long giving a lease back may hold up a stop.
const FAREWELL: Duration = Duration::from_secs(1);

/// One job of all admins.
#[derive(Debug)]
pub(crate) struct Job {
    store: Store,
    name: &'static str,
}

/// How it came that a job is not run any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Stopped,
    Lost,
}

impl Job {
    /// The job of this name, not begun.
    pub(crate) const fn new(store: Store, name: &'static str) -> Self {
        Self { store, name }
    }

    /// Runs `work`, which goes on for ever, whenever this admin holds the lease, until `stop`.
    pub(crate) async fn run<F>(self, stop: CancellationToken, work: impl Fn(Lease) -> F)
    where
        F: Future<Output = ()>,
    {
        loop {
            let (lease, since) = tokio::select! {
                () = stop.cancelled() => return,
                taken = self.taken() => taken,
            };
            tracing::info!(job = self.name, term = lease.term(), "this admin runs the job");
            let end = tokio::select! {
                biased;
                () = stop.cancelled() => End::Stopped,
                () = self.kept(&lease, since) => End::Lost,
                () = work(lease.clone()) => End::Stopped,
            };
            if end == End::Lost {
                tracing::warn!(job = self.name, "this admin lets go of the job");
                continue;
            }
            if timeout(FAREWELL, self.store.give_lease_back(&lease)).await.is_err() {
                tracing::debug!(job = self.name, "a lease was not given back in time");
            }
            return;
        }
    }

    /// Waits for the lease. Out: with a moment before it was taken.
    async fn taken(&self) -> (Lease, Instant) {
        let mut seen: Option<(LeaseState, Instant)> = None;
        loop {
            let looked = timeout(HOLD, self.store.look_at_lease(self.name)).await;
            let now = Instant::now();
            if let Ok(Ok(state)) = looked {
                let since = match &seen {
                    Some((before, since)) if *before == state => *since,
                    _ => now,
                };
                // Only one admin has a file, so what it finds there is left by itself.
                let over = state.is_free() || !self.store.is_shared();
                if over || now >= since + PATIENCE {
                    let taken = timeout(HOLD, self.store.take_lease(self.name, &state)).await;
                    if let Ok(Ok(Some(lease))) = taken {
                        return (lease, now);
                    }
                }
                seen = Some((state, since));
            }
            let next = now + EVERY;
            let due = seen.as_ref().map(|(_, since)| *since + PATIENCE);
            sleep_until(due.filter(|due| *due > now).map_or(next, |due| due.min(next))).await;
        }
    }

    /// Shows that this admin lives, until the lease is another's or has not been shown for too long.
    async fn kept(&self, lease: &Lease, since: Instant) {
        if !self.store.is_shared() {
            return std::future::pending().await;
        }
        let mut until = since + HOLD;
        loop {
            tokio::select! {
                biased;
                () = sleep_until(until) => return,
                () = sleep(EVERY) => {}
            }
            let asked = Instant::now();
            match timeout_at(until, self.store.renew_lease(lease)).await {
                Ok(Ok(true)) => until = asked + HOLD,
                Ok(Ok(false)) | Err(_) => return,
                Ok(Err(error)) => {
                    tracing::debug!(job = self.name, %error, "a lease could not be renewed yet");
                }
            }
        }
    }
}
