//! Restarts by takeover, and stops, under load: nothing may be lost.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde::Serialize;

use crate::admin_api::{AdminApi, PathCondition, Rule};
use crate::load::LoadRun;
use crate::origin::Origin;
use crate::process::Cores;
use crate::stage::{Admin, Folder, Gateway, free_port};
use crate::steady::{Outcome, Refused, Steady};
use crate::wrk;

/// What to do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Folder of the binaries.
    pub binaries: PathBuf,
    /// Connections of `wrk`, and half the clients that check every answer.
    pub connections: u32,
    /// Restarts under one load.
    pub restarts: u32,
    /// Stops, each of a gateway of its own.
    pub stops: u32,
    /// Time between two restarts, and before a stop.
    pub pause: Duration,
}

/// What was seen.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RestartsResult {
    /// The load that did not know of the restarts. Each error is a lost request or connection.
    pub wrk: LoadRun,
    /// Clients that checked every answer, half of them with a connection for each request.
    pub restarts: Checked,
    /// For each restart: milliseconds from the start of the process until it served alone.
    pub takeover_ms: Vec<u64>,
    /// Clients of the gateways that were stopped; being refused was their end.
    pub stops: Checked,
    /// For each stop: milliseconds from the signal to the end of the process.
    pub stop_ms: Vec<u64>,
}

/// What clients saw.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Checked {
    /// Right answers.
    pub answers: u64,
    /// What went wrong, in words.
    pub failures: Vec<String>,
}

impl Checked {
    fn add(&mut self, outcome: Outcome) {
        self.answers += outcome.answers;
        self.failures.extend(outcome.failures);
    }
}

struct Scene<'a> {
    plan: &'a Plan,
    folder: &'a Path,
    admin: Admin,
    started: u32,
}

/// Starts everything, restarts and stops under load, and ends everything.
///
/// # Errors
/// When something cannot be started, or a process does not do its part in time. Lost requests are no
/// error here; see [`RestartsResult::check`].
pub async fn measure(plan: &Plan) -> anyhow::Result<RestartsResult> {
    let folder = Folder::create("restarts")?;
    let admin = Admin::start(&plan.binaries, &any(), folder.path()).await?;
    let origin = Origin::builder().name("R").start()?;
    route(&mut admin.log_in().await?, &origin.addr().to_string()).await?;
    let mut scene = Scene { plan, folder: folder.path(), admin, started: 0 };
    let (wrk, restarts, takeover_ms) = scene.restarts().await?;
    let (stops, stop_ms) = scene.stops().await?;
    Ok(RestartsResult { wrk, restarts, takeover_ms, stops, stop_ms })
}

fn any() -> Cores {
    Cores("0-1023".to_owned())
}

async fn route(api: &mut AdminApi, upstream: &str) -> anyhow::Result<()> {
    let condition = PathCondition::pattern("/**");
    let selector = api.create_selector("restarts", 1, &condition).await?;
    api.bind(&selector, "restarts", &[upstream.to_owned()]).await?;
    let name = "restarts".to_owned();
    api.create_rule(&Rule { selector_id: selector, name, sort: 1, condition }).await
}

impl Scene<'_> {
    fn spawn(&mut self, port: u16, arguments: &[&str]) -> anyhow::Result<Gateway> {
        self.started += 1;
        let log = self.folder.join(format!("gateway-{}.log", self.started));
        let mut all = vec!["--shenyu.shutdown.grace=20000".to_owned()];
        all.extend(arguments.iter().map(ToString::to_string));
        Gateway::spawn(&self.plan.binaries, &any(), log, port, self.admin.port(), &all)
    }

    async fn restarts(&mut self) -> anyhow::Result<(LoadRun, Checked, Vec<u64>)> {
        let (port, management) = (free_port()?, free_port()?);
        let management = format!("--shenyu.management.port={management}");
        let mut gateway = self.spawn(port, &[&management])?;
        gateway.serves("/hello").await?;
        let Plan { connections, restarts, pause, .. } = *self.plan;
        let clients = Steady::start(address(port), u64::from(connections / 4), Refused::Fails);
        let url = format!("http://127.0.0.1:{port}/4k");
        // Long enough for all restarts, should each take a second.
        let seconds = (pause + Duration::from_secs(1)) * restarts + pause;
        let seconds = u32::try_from(seconds.as_secs()).unwrap_or(u32::MAX);
        let load =
            tokio::task::spawn_blocking(move || wrk::run(&any(), connections, seconds, &url));
        let mut times = Vec::new();
        for _ in 0..restarts {
            tokio::time::sleep(pause).await;
            let begun = Instant::now();
            let next = self.spawn(port, &[&management, "--takeover"])?;
            next.says("took over").await?;
            times.push(milliseconds(begun));
            gateway.ends().await?;
            gateway = next;
        }
        let under_load = !load.is_finished();
        let wrk = load.await.context("the load")??;
        ensure!(under_load, "the load ended before the last restart");
        let mut checked = Checked::default();
        checked.add(clients.end(true).await);
        Ok((wrk, checked, times))
    }

    async fn stops(&mut self) -> anyhow::Result<(Checked, Vec<u64>)> {
        let (mut checked, mut times) = (Checked::default(), Vec::new());
        for _ in 0..self.plan.stops {
            let port = free_port()?;
            let management = format!("--shenyu.management.port={}", free_port()?);
            let mut gateway = self.spawn(port, &[&management])?;
            gateway.serves("/hello").await?;
            let each = u64::from(self.plan.connections / 2);
            let clients = Steady::start(address(port), each, Refused::Ends);
            tokio::time::sleep(self.plan.pause).await;
            let begun = Instant::now();
            gateway.process.terminate()?;
            checked.add(clients.end(false).await);
            gateway.ends().await?;
            times.push(milliseconds(begun));
        }
        Ok((checked, times))
    }
}

fn address(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

fn milliseconds(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}

impl RestartsResult {
    /// # Errors
    /// When anything was lost.
    pub fn check(&self) -> anyhow::Result<()> {
        let failures = self.restarts.failures.len() + self.stops.failures.len();
        ensure!(
            self.wrk.errors == 0 && failures == 0,
            "{} errors of wrk, {failures} of the clients that check",
            self.wrk.errors
        );
        Ok(())
    }

    /// The result as a table for people.
    #[must_use]
    pub fn table(&self) -> String {
        let Self { wrk, restarts, takeover_ms, stops, stop_ms } = self;
        let mut table = format!(
            "restarts   wrk: {} requests, {} errors, p99 {} ms; checked: {} right, {} wrong; ms: {takeover_ms:?}\n\
             stops      checked: {} right, {} wrong; ms: {stop_ms:?}\n",
            wrk.requests,
            wrk.errors,
            wrk.p99_ms,
            restarts.answers,
            restarts.failures.len(),
            stops.answers,
            stops.failures.len(),
        );
        for failure in restarts.failures.iter().chain(&stops.failures).take(20) {
            table.push_str(&format!("           {failure}\n"));
        }
        table
    }
}
