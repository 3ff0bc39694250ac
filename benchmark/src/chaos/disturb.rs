//! What happens to everything around the gateway, and to the gateway itself, while it serves.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde::Serialize;
use tokio::time::{Instant, sleep, sleep_until};

use super::Plan;
use super::relay::Relay;
use crate::process::Cores;
use crate::stage::{Admin, Gateway, Store};

/// How long an admin, or its database, stays away.
const AWAY: Duration = Duration::from_millis(300);

/// How long the way to the admin stalls: long enough for a gateway to give it up.
const STALL: Duration = Duration::from_secs(6);

/// One thing that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Disturbance {
    /// The admin is told to send everything once more.
    Resync,
    /// The admin is killed and started again.
    AdminKill,
    /// The database crashes and comes back.
    DatabaseCrash,
    /// The connection between gateway and admin is closed.
    Cut,
    /// Nothing gets through that connection, and it is not closed.
    Stall,
    /// Another gateway process takes over.
    Takeover,
}

/// How many of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Full refreshes.
    pub resyncs: u32,
    /// Kills of the admin.
    pub admin_kills: u32,
    /// Crashes of the database.
    pub database_crashes: u32,
    /// Connections that are cut.
    pub cuts: u32,
    /// Connections that stall.
    pub stalls: u32,
    /// Restarts of the gateway by takeover.
    pub takeovers: u32,
}

/// What was done.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Done {
    /// Since the beginning, in seconds.
    pub at: f64,
    /// What it was.
    pub what: Disturbance,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
}

/// Everything that can be disturbed.
pub(super) struct Stage<'a> {
    pub(super) plan: &'a Plan,
    pub(super) folder: &'a Path,
    pub(super) store: Store,
    pub(super) admin: Option<Admin>,
    pub(super) admin_port: u16,
    pub(super) relay: Relay,
    pub(super) gateway: Gateway,
    pub(super) gateway_port: u16,
    pub(super) gateway_arguments: Vec<String>,
    pub(super) gateways: u32,
}

impl Counts {
    /// All of them in an order that mixes them evenly.
    fn mixed(self) -> Vec<Disturbance> {
        let kinds = [
            (Disturbance::Resync, self.resyncs),
            (Disturbance::AdminKill, self.admin_kills),
            (Disturbance::DatabaseCrash, self.database_crashes),
            (Disturbance::Cut, self.cuts),
            (Disturbance::Stall, self.stalls),
            (Disturbance::Takeover, self.takeovers),
        ];
        // Each has its places within the whole; those places in order.
        let mut all: Vec<(f64, Disturbance)> = kinds
            .iter()
            .flat_map(|&(what, count)| {
                (0..count).map(move |number| ((f64::from(number) + 0.5) / f64::from(count), what))
            })
            .collect();
        all.sort_by(|one, other| one.0.total_cmp(&other.0));
        all.into_iter().map(|(_, what)| what).collect()
    }
}

impl Stage<'_> {
    /// Disturbs, evenly over the time; one thing at a time.
    pub(super) async fn disturb(&mut self, time: Duration) -> anyhow::Result<Vec<Done>> {
        let all = self.plan.counts.mixed();
        let begun = Instant::now();
        let pause = time / u32::try_from(all.len() + 1)?;
        let mut done = Vec::new();
        for (number, what) in (1_u32..).zip(all) {
            // Late ones follow at once.
            sleep_until(begun + pause * number).await;
            let at = begun.elapsed();
            self.one(what).await.with_context(|| format!("{what:?}, disturbance {number}"))?;
            let took_ms = u64::try_from((begun.elapsed() - at).as_millis())?;
            done.push(Done { at: at.as_secs_f64(), what, took_ms });
        }
        Ok(done)
    }

    async fn one(&mut self, what: Disturbance) -> anyhow::Result<()> {
        match what {
            Disturbance::Resync => {
                let admin = self.admin.as_ref().context("no admin")?;
                admin.log_in().await?.sync_all().await
            }
            Disturbance::AdminKill => {
                self.admin.take().context("no admin")?.kill()?;
                sleep(AWAY).await;
                self.admin = Some(self.start_admin().await?);
                Ok(())
            }
            Disturbance::DatabaseCrash => {
                postgres(self.plan, "restart", self.folder).await.map(drop)
            }
            Disturbance::Cut => {
                self.relay.cut();
                Ok(())
            }
            Disturbance::Stall => {
                self.relay.stall(true);
                sleep(STALL).await;
                self.relay.stall(false);
                Ok(())
            }
            Disturbance::Takeover => self.take_over().await,
        }
    }

    pub(super) async fn start_admin(&self) -> anyhow::Result<Admin> {
        let Self { plan, folder, admin_port, store, .. } = self;
        Admin::start_on(&plan.binaries, &any(), folder, *admin_port, store).await
    }

    async fn take_over(&mut self) -> anyhow::Result<()> {
        self.gateways += 1;
        let log = self.folder.join(format!("gateway-{}.log", self.gateways));
        let mut arguments = self.gateway_arguments.clone();
        arguments.push("--takeover".to_owned());
        let (port, relay) = (self.gateway_port, self.relay.address.port());
        let next = Gateway::spawn(&self.plan.binaries, &any(), log, port, relay, &arguments)?;
        next.says("took over").await?;
        self.gateway.ends().await?;
        self.gateway = next;
        Ok(())
    }
}

/// All cores.
pub(super) fn any() -> Cores {
    Cores("0-1023".to_owned())
}

/// Runs the script that keeps a PostgreSQL server in a folder below `folder`; returns what it prints.
pub(super) async fn postgres(plan: &Plan, action: &str, folder: &Path) -> anyhow::Result<String> {
    let script = plan.postgres.as_ref().context("no script for PostgreSQL")?;
    let mut command = Command::new(script);
    command.arg(action).arg(folder.join("postgres"));
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = tokio::task::spawn_blocking(move || command.output()).await?;
    let output = output.with_context(|| format!("run {}", script.display()))?;
    ensure!(output.status.success(), "{} {action}: {}", script.display(), output.status);
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbances_are_mixed_evenly() {
        let counts = Counts {
            resyncs: 6,
            admin_kills: 2,
            database_crashes: 1,
            cuts: 0,
            stalls: 0,
            takeovers: 2,
        };
        use Disturbance::{AdminKill, DatabaseCrash, Resync, Takeover};
        let mixed = counts.mixed();
        assert_eq!(mixed.len(), 11);
        for (what, count) in [(Resync, 6), (AdminKill, 2), (DatabaseCrash, 1), (Takeover, 2)] {
            assert_eq!(mixed.iter().filter(|one| **one == what).count(), count, "{what:?}");
        }
        let half = mixed.len() / 2;
        assert_eq!(mixed[..half].iter().filter(|one| **one == Resync).count(), 3);
        assert_eq!(mixed[..half].iter().filter(|one| **one == AdminKill).count(), 1);
    }
}
