//! Periodic jobs that exactly one of several admins does.

use std::future::Future;
use std::time::Duration;

use longmen_core::telemetry::Throttle;
use longmen_db::{Store, lease};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// How long a lease is good for.
const LEASE: Duration = Duration::from_secs(10);

/// How often it is renewed, and how often those who have none ask for it. With [`LEASE`] another admin
/// takes over at most 13 s after the last renewal.
const RENEW: Duration = Duration::from_secs(3);

/// By how much a holder stops before its lease runs out at the database: for what it has just sent.
const MARGIN: Duration = Duration::from_secs(2);

/// Does `work` for as long as this admin holds the lease of `job`, again and again until `stop`.
///
/// A holder whose renewals fail drops its work in good time, before another admin can begin. On a store
/// that only one admin can use the work just goes on.
pub(crate) async fn run<F: Future<Output = ()>>(
    store: Store,
    job: &'static str,
    owner: String,
    stop: CancellationToken,
    work: impl Fn() -> F,
) {
    if !store.is_shared() {
        tokio::select! {
            () = work() => {}
            () = stop.cancelled() => {}
        }
        return;
    }
    let leased = Leased { store, job, owner, failed: Throttle::default() };
    while !stop.is_cancelled() {
        if let Some(until) = leased.take().await {
            tracing::debug!(job, "this admin does the job now");
            tokio::select! {
                () = work() => {}
                () = leased.keep(until) => tracing::debug!(job, "the job is somebody else's now"),
                () = stop.cancelled() => {}
            }
        }
        tokio::select! {
            () = sleep(RENEW) => {}
            () = stop.cancelled() => {}
        }
    }
    // So that the next one need not wait.
    let _ = timeout(MARGIN, lease::release(&leased.store, job, &leased.owner)).await;
}

struct Leased {
    store: Store,
    job: &'static str,
    owner: String,
    failed: Throttle,
}

impl Leased {
    /// Takes or renews the lease. Out: until when the work may go on.
    async fn take(&self) -> Option<Instant> {
        // Counted from before the database counts.
        let asked = Instant::now();
        let lease_ms = i64::try_from(LEASE.as_millis()).unwrap_or(i64::MAX);
        let taking = lease::acquire(&self.store, self.job, &self.owner, lease_ms);
        match timeout(LEASE - MARGIN, taking).await {
            Ok(Ok(held)) => held.map(|_| asked + LEASE - MARGIN),
            Ok(Err(error)) => {
                self.note(&error);
                None
            }
            Err(late) => {
                self.note(&late);
                None
            }
        }
    }

    /// Renews until the lease is lost, or may be lost soon.
    async fn keep(&self, mut until: Instant) {
        loop {
            sleep(RENEW).await;
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(until) => return,
                renewed = self.take() => match renewed {
                    Some(renewed) => until = renewed,
                    // Not this time; there is time left for another try.
                    None if Instant::now() + RENEW < until => {}
                    None => return,
                }
            }
        }
    }

    fn note(&self, error: &dyn std::error::Error) {
        if let Some(others) = self.failed.pass() {
            tracing::warn!(job = self.job, "no lease for a periodic job: {error}{others}");
        }
    }
}
