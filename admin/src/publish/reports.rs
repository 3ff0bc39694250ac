//! What this admin heard of gateways and instances, into the tables of all admins.
//!
//! A row for each gateway, not for each word: every second what is new is written in one transaction, at
//! most so many rows, and those that do not fit take their turn in the next one. So 500 edits a second
//! cost each gateway one row a second at most, and all gateways together a fixed number.

use std::sync::Arc;
use std::time::Duration;

use longmen_core::telemetry::Throttle;
use longmen_db::repository::{gateway, instance};
use longmen_db::{Actor, Lease, require_lease};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use super::Shared;

/// How often what is new is written.
const EVERY: Duration = Duration::from_secs(1);

/// How often this admin says that it runs; three times within what the others wait for it.
const ALIVE_EVERY: Duration = Duration::from_secs(4);

/// After this long without a word the others take this admin for gone, and its gateways with it.
const TAKEN_FOR_GONE_MS: i64 = 11_000;

/// Rows of gateways, and of instances, that are written at a time.
const MAX_ROWS: usize = 256;

/// How long the last words may hold up a stop.
const FAREWELL: Duration = Duration::from_secs(2);

/// How often gateways of admins that are gone are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// How long gateways that went are listed, and how many at most.
const KEEP_MS: i64 = 86_400_000;
const KEEP: i64 = 1_024;

/// This admin among the others.
#[derive(Debug, Default)]
pub(super) struct Reporter {
    /// When it last said that it runs. Held while something is written.
    alive: tokio::sync::Mutex<Option<Instant>>,
    failed: Throttle,
}

impl Shared {
    /// Writes until `stop`.
    pub(super) async fn report(self: Arc<Self>, stop: CancellationToken) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
            }
            let written = tokio::select! {
                () = stop.cancelled() => return,
                written = self.write_reports() => written,
            };
            if let Err(error) = written
                && let Some(others) = self.reporter.failed.pass()
            {
                tracing::warn!("what gateways reported was not stored yet: {error:#}{others}");
            }
        }
    }

    /// Writes what is new. Whoever reads the table calls it first, to see what this admin knows.
    pub(super) async fn write_reports(&self) -> anyhow::Result<()> {
        let mut alive = self.reporter.alive.lock().await;
        let lives = alive.is_none_or(|at| at.elapsed() >= ALIVE_EVERY);
        let beats = self.instances.take(MAX_ROWS);
        let taken = self.gateways.take(MAX_ROWS, self.store.process_id(), &self.name());
        if !lives && beats.is_empty() && taken.rows.is_empty() {
            return Ok(());
        }
        // Dropped half-way at a stop: what was taken is written by the farewell all the same.
        let mut back = Back { shared: self, beats, taken, written: false };
        let write = async {
            let mut uow = self.store.begin(Actor::system()).await?;
            let mut silent_ms = None;
            if lives {
                silent_ms = gateway::admin_lives(&mut uow, &self.name(), self.started_ms).await?;
            }
            gateway::put(&mut uow, &back.taken.rows).await?;
            instance::beat(&mut uow, &back.beats).await?;
            uow.commit().await?;
            Ok::<_, longmen_db::Error>(silent_ms)
        };
        let silent_ms = self.patience.query("the reports of gateways", write).await?;
        back.written = true;
        drop(back);
        if lives {
            *alive = Some(Instant::now());
        }
        if silent_ms.is_some_and(|silent| silent >= TAKEN_FOR_GONE_MS) {
            self.gateways.write_all();
        }
        Ok(())
    }

    /// The last words, once all sessions have ended.
    pub(super) async fn say_goodbye(&self) {
        let leave = async {
            self.write_reports().await?;
            let mut uow = self.store.begin(Actor::system()).await?;
            gateway::admin_leaves(&mut uow, self.store.now_ms()).await?;
            uow.commit().await?;
            anyhow::Ok(())
        };
        match timeout(FAREWELL, leave).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!("the admin left without a word: {error:#}"),
            Err(_) => tracing::debug!("the admin left without a word, the store did not answer"),
        }
    }

    /// Marks and forgets gateways that are gone, for as long as this admin holds the lease.
    pub(super) async fn sweep(self: Arc<Self>, lease: Lease) {
        let mut ticks = interval(SWEEP_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let swept = async {
                let mut uow = self.store.begin(Actor::system()).await?;
                require_lease(&mut uow, &lease).await?;
                let now_ms = self.store.now_ms();
                let swept = gateway::sweep(&mut uow, now_ms, KEEP_MS, KEEP).await?;
                uow.commit().await?;
                Ok::<_, longmen_db::Error>(swept)
            };
            match self.patience.query("gateways that are gone", swept).await {
                Ok((0, 0)) => {}
                Ok((marked, forgotten)) => {
                    tracing::debug!(marked, forgotten, "gateways that are gone");
                }
                Err(error) => tracing::debug!("gateways that are gone stay listed: {error:#}"),
            }
        }
    }
}

/// What was taken to be written; it goes back unless it was.
struct Back<'a> {
    shared: &'a Shared,
    beats: Vec<(instance::InstanceKey, String)>,
    taken: super::gateways::Taken,
    written: bool,
}

impl Drop for Back<'_> {
    fn drop(&mut self) {
        if self.written {
            self.shared.gateways.written(&self.taken);
        } else {
            self.shared.instances.put_back(std::mem::take(&mut self.beats));
            self.shared.gateways.put_back(&self.taken);
        }
    }
}
