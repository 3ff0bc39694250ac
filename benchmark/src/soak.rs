//! A soak: mixed traffic over a long time, every answer checked, clients and upstreams that misbehave,
//! and the gateway's memory and descriptors watched meanwhile.

mod events;
mod pattern;
mod routes;
mod rude;
mod slow;
mod small;
mod sockets;
mod tally;
mod transfer;
mod vanish;
mod wire;

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde::Serialize;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::client::Server;
use crate::origin::Origin;
use crate::process;

pub use tally::{Kind, Tally};

/// How long lanes may take to come to their end once time is up: a transfer in flight ends.
const WIND_DOWN: Duration = Duration::from_secs(120);

/// How long the gateway may take to let go of what its clients left behind.
const SETTLE: Duration = Duration::from_secs(15);

/// What to send for how long. Numbers of lanes; a lane is a client that does one thing after another.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The admin, `http://host:port`.
    pub admin: String,
    /// The user to log in as.
    pub user: String,
    /// The user's password.
    pub password: String,
    /// The gateway, `http://host:port`.
    pub gateway: String,
    /// The gateway's process, to be watched.
    pub pid: Option<u32>,
    /// How long.
    pub time: Duration,
    /// Small requests.
    pub small: u32,
    /// Transfers up and down at once.
    pub transfers: u32,
    /// Bytes of each transfer.
    pub transfer_bytes: u64,
    /// Event streams.
    pub events: u32,
    /// Websockets.
    pub sockets: u32,
    /// Clients that send and read slowly.
    pub slow: u32,
    /// Clients that leave in the middle.
    pub vanishing: u32,
    /// Requests to an upstream that closes, stalls, resets and sends garbage.
    pub rude: u32,
}

/// What was seen.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SoakResult {
    /// How long it took, in seconds.
    pub seconds: f64,
    /// By kind of traffic.
    pub kinds: Vec<Kind>,
    /// Looks at the gateway's process, ten seconds apart.
    pub looks: Vec<Look>,
    /// The process once everything had ended and settled.
    pub after: Option<Look>,
}

/// The gateway's process at one moment.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Look {
    /// Since the start, in seconds.
    pub at: f64,
    /// Resident memory in KiB.
    pub rss_kib: u64,
    /// Open descriptors.
    pub descriptors: usize,
}

/// What every lane needs.
#[derive(Debug, Clone)]
struct Lane {
    number: u32,
    gateway: Server,
    /// The value of the header that routes.
    route: Arc<str>,
    bytes: u64,
    stop: CancellationToken,
    tally: Arc<Tally>,
}

/// Runs the traffic and looks at the gateway.
///
/// # Errors
/// When the routes cannot be put in place, or the process cannot be looked at.
pub async fn soak(plan: &Plan) -> anyhow::Result<SoakResult> {
    let gateway = Server::parse(&plan.gateway)?;
    let upstreams = [Origin::builder().name("S1").start()?, Origin::builder().name("S2").start()?];
    let rude = rude::start().await?;
    let routes = routes::Routes::create(plan, &upstreams, rude.address).await?;
    routes.wait(&gateway).await?;
    let before = plan.pid.map(|pid| Look::at(pid, Instant::now())).transpose()?;
    let tally = Arc::new(Tally::default());
    let stop = CancellationToken::new();
    let lane = |number| Lane {
        number,
        gateway: gateway.clone(),
        route: Arc::clone(&routes.name),
        bytes: plan.transfer_bytes,
        stop: stop.clone(),
        tally: Arc::clone(&tally),
    };
    let started = Instant::now();
    let mut lanes = JoinSet::new();
    spawn(&mut lanes, plan.small, lane, small::run);
    spawn(&mut lanes, plan.transfers, lane, transfer::run);
    spawn(&mut lanes, plan.events, lane, events::run);
    spawn(&mut lanes, plan.sockets, lane, sockets::run);
    spawn(&mut lanes, plan.slow, lane, slow::run);
    spawn(&mut lanes, plan.vanishing, lane, vanish::run);
    spawn(&mut lanes, plan.rude, lane, rude::run);
    let looks = watch(plan, started).await?;
    stop.cancel();
    let ended = tokio::time::timeout(WIND_DOWN, async {
        while let Some(lane) = lanes.join_next().await {
            lane.context("a lane of the soak")?;
        }
        anyhow::Ok(())
    });
    ended.await.with_context(|| format!("lanes still busy {WIND_DOWN:?} after the end"))??;
    let seconds = started.elapsed().as_secs_f64();
    let after = settled(plan, started, before).await?;
    routes.remove().await?;
    Ok(SoakResult { seconds, kinds: tally.kinds(), looks, after })
}

fn spawn<F: Future<Output = ()> + Send + 'static>(
    lanes: &mut JoinSet<()>,
    count: u32,
    lane: impl Fn(u32) -> Lane,
    run: impl Fn(Lane) -> F,
) {
    for number in 0..count {
        lanes.spawn(run(lane(number)));
    }
}

/// Looks at the process until time is up.
async fn watch(plan: &Plan, started: Instant) -> anyhow::Result<Vec<Look>> {
    let mut looks = Vec::new();
    let mut ticks = tokio::time::interval(Duration::from_secs(10));
    while started.elapsed() < plan.time {
        let left = plan.time.saturating_sub(started.elapsed());
        tokio::select! {
            _ = ticks.tick() => looks.extend(plan.pid.map(|pid| Look::at(pid, started)).transpose()?),
            () = tokio::time::sleep(left) => {}
        }
    }
    Ok(looks)
}

/// The process once it has as few descriptors as before, or after a while.
async fn settled(
    plan: &Plan,
    started: Instant,
    before: Option<Look>,
) -> anyhow::Result<Option<Look>> {
    let (Some(pid), Some(before)) = (plan.pid, before) else { return Ok(None) };
    let deadline = Instant::now() + SETTLE;
    loop {
        let look = Look::at(pid, started)?;
        if look.descriptors <= before.descriptors || Instant::now() > deadline {
            return Ok(Some(look));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

impl Look {
    pub(crate) fn at(pid: u32, started: Instant) -> anyhow::Result<Self> {
        let folder = format!("/proc/{pid}/fd");
        let descriptors =
            std::fs::read_dir(&folder).with_context(|| format!("read {folder}"))?.count();
        let rss_kib = process::resident_kib(pid)?;
        Ok(Self { at: started.elapsed().as_secs_f64(), rss_kib, descriptors })
    }
}

impl SoakResult {
    /// # Errors
    /// When an answer was wrong, or a kind of traffic saw none at all.
    pub fn check(&self) -> anyhow::Result<()> {
        for kind in &self.kinds {
            ensure!(
                kind.wrong == 0,
                "{}: {} wrong, such as {:?}",
                kind.name,
                kind.wrong,
                kind.examples
            );
            ensure!(kind.right > 0, "{}: nothing came to its end", kind.name);
        }
        Ok(())
    }

    /// The result as a table for people.
    #[must_use]
    pub fn table(&self) -> String {
        let mut table = format!("{:<12} {:>10} {:>7}  examples\n", "traffic", "right", "wrong");
        for kind in &self.kinds {
            let examples = kind.examples.join(" | ");
            table.push_str(&format!(
                "{:<12} {:>10} {:>7}  {examples}\n",
                kind.name, kind.right, kind.wrong
            ));
        }
        for look in self.looks.iter().chain(&self.after) {
            let Look { at, rss_kib, descriptors } = look;
            table.push_str(&format!("{at:>7.0} s {rss_kib:>9} KiB {descriptors:>6} descriptors\n"));
        }
        table
    }
}
