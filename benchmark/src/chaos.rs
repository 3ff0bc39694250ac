//! Does anything fail while everything changes? Clients that know what every answer may be send at a
//! steady pace, while the routes they use are edited without pause, and admins, databases, connections
//! and gateways are killed, cut and restarted.

mod disturb;
mod editor;
mod relay;
mod routes;
mod streams;
mod timeline;
mod traffic;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde::Serialize;

use crate::admin_api::{PathCondition, Plugin};
use crate::client::Server;
use crate::load::LoadRun;
use crate::origin::Origin;
use crate::soak::Look;
use crate::stage::{Admin, Folder, Gateway, Store, free_port};
use crate::wrk;

pub use disturb::{Counts, Disturbance, Done};
pub use editor::EditorResult;
pub use streams::StreamsResult;
pub use traffic::TrafficResult;
pub use watch::WatchResult;

/// The load before the first edit and after the last: it must be right without any.
const CALM: Duration = Duration::from_secs(2);

/// The path that `wrk` asks for.
const STEADY: &str = "/4k";

/// What to do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Folder of the binaries.
    pub binaries: PathBuf,
    /// The script that starts, restarts and stops a PostgreSQL server; SQLite without one.
    pub postgres: Option<PathBuf>,
    /// How long to edit and to disturb.
    pub time: Duration,
    /// Routes under edit.
    pub routes: u32,
    /// Edits.
    pub edits: u32,
    /// Requests per second of the clients that check, all together.
    pub rate: u32,
    /// Those clients.
    pub clients: u32,
    /// Connections of `wrk` beside them; 0 for none.
    pub wrk: u32,
    /// Streams that are to stay open; only without takeovers.
    pub streams: u32,
    /// What else happens.
    pub counts: Counts,
}

/// What was seen.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChaosResult {
    /// The clients that check.
    pub traffic: TrafficResult,
    /// The editor.
    pub editor: EditorResult,
    /// When edits were in force.
    pub watch: WatchResult,
    /// The open streams.
    pub streams: StreamsResult,
    /// The load for volume; each error is a lost request or connection.
    pub wrk: Option<LoadRun>,
    /// What was done, in its order.
    pub disturbances: Vec<Done>,
    /// Looks at the gateway's process.
    pub looks: Vec<Look>,
}

/// Starts everything, disturbs it, and ends everything.
///
/// # Errors
/// When something cannot be started, or does not do its part in time. Answers that were wrong are no
/// error here; see [`ChaosResult::check`].
pub async fn measure(plan: &Plan) -> anyhow::Result<ChaosResult> {
    ensure!(plan.streams == 0 || plan.counts.takeovers == 0, "streams end with their gateway");
    ensure!(plan.rate >= plan.clients && plan.clients > 0, "rate: expected at least one a client");
    let folder = Folder::create("chaos")?;
    let store = match &plan.postgres {
        Some(_) => Store::Postgres(disturb::postgres(plan, "start", folder.path()).await?),
        None => Store::Sqlite,
    };
    let measured = on_stage(plan, folder.path(), store).await;
    if plan.postgres.is_some() {
        disturb::postgres(plan, "stop", folder.path()).await?;
    }
    measured
}

async fn on_stage(plan: &Plan, folder: &Path, store: Store) -> anyhow::Result<ChaosResult> {
    let origins = (0..routes::UPSTREAMS)
        .map(|number| Origin::builder().name(routes::name(number)).start())
        .collect::<Result<Vec<_>, _>>()?;
    let admin_port = free_port()?;
    let admin =
        Admin::start_on(&plan.binaries, &disturb::any(), folder, admin_port, &store).await?;
    let mut api = admin.log_in().await?;
    let routes = routes::Routes::create(&mut api, plan.routes as usize, &origins).await?;
    let steady = [origins[0].addr().to_string()];
    let pattern = PathCondition::pattern(STEADY);
    routes::create(&mut api, "steady", &pattern, STEADY, &steady).await?;
    let stream_routes = streams::route(&mut api, &steady).await?;

    let relay = relay::Relay::start(admin_port).await?;
    let (gateway_port, management) = (free_port()?, free_port()?);
    let gateway_arguments = vec![format!("--shenyu.management.port={management}")];
    let log = folder.join("gateway-1.log");
    let relayed = relay.address.port();
    let any = disturb::any();
    let mut gateway =
        Gateway::spawn(&plan.binaries, &any, log, gateway_port, relayed, &gateway_arguments)?;
    gateway.serves(STEADY).await?;
    let mut stage = disturb::Stage {
        plan,
        folder,
        store,
        admin: Some(admin),
        admin_port,
        relay,
        gateway,
        gateway_port,
        gateway_arguments,
        gateways: 1,
    };
    play(&mut stage, &routes, stream_routes).await
}

async fn play(
    stage: &mut disturb::Stage<'_>,
    routes: &Arc<routes::Routes>,
    stream_routes: Vec<(Plugin, String)>,
) -> anyhow::Result<ChaosResult> {
    let plan = stage.plan;
    let server = Server::parse(&format!("http://127.0.0.1:{}", stage.gateway_port))?;
    let admin = Server::parse(&format!("http://127.0.0.1:{}", stage.admin_port))?;
    let watch = watch::Watch::start(admin.clone(), Arc::clone(routes));
    let traffic = traffic::Traffic::start(&server, routes, plan.rate, plan.clients);
    let streams = streams::Streams::open(&server, plan.streams).await?;
    let load = (plan.wrk > 0).then(|| {
        let (connections, url) = (plan.wrk, format!("http://{}{STEADY}", server.authority()));
        let seconds = u32::try_from((plan.time + CALM).as_secs()).unwrap_or(u32::MAX);
        tokio::task::spawn_blocking(move || wrk::run(&disturb::any(), connections, seconds, &url))
    });
    tokio::time::sleep(CALM).await;
    let pid = stage.gateway.process.id();
    let looks = looks(pid, plan.time);
    let editor = editor::Editor::new(admin, Arc::clone(routes), stream_routes);
    let editor = editor.run(plan.edits, plan.time);
    let (editor, disturbances, looks) = tokio::join!(editor, stage.disturb(plan.time), looks);
    let (editor, disturbances) = (editor?, disturbances?);
    let watch = watch.end().await?;
    tokio::time::sleep(CALM).await;
    let traffic = traffic.end().await;
    let streams = streams.end().await;
    let wrk = match load {
        Some(load) => Some(load.await.context("the load")??),
        None => None,
    };
    Ok(ChaosResult { traffic, editor, watch, streams, wrk, disturbances, looks })
}

/// Looks at a process ten times; fewer where it has ended.
async fn looks(pid: u32, time: Duration) -> Vec<Look> {
    let begun = std::time::Instant::now();
    let mut looks = Vec::new();
    for _ in 0..10 {
        looks.extend(Look::at(pid, begun));
        tokio::time::sleep(time / 10).await;
    }
    looks.extend(Look::at(pid, begun));
    looks
}

impl ChaosResult {
    /// # Errors
    /// When anything failed, was wrong, stale or cut.
    pub fn check(&self) -> anyhow::Result<()> {
        let TrafficResult { failed, wrong, stale, served, .. } = self.traffic;
        ensure!(
            failed + wrong + stale == 0 && served > 0,
            "{failed} failed, {wrong} wrong, {stale} stale, {served} served"
        );
        ensure!(self.streams.broken.is_empty(), "{} streams broken", self.streams.broken.len());
        let errors = self.wrk.map_or(0, |run| run.errors);
        ensure!(errors == 0, "{errors} errors of wrk");
        Ok(())
    }

    /// The result as a table for people.
    #[must_use]
    pub fn table(&self) -> String {
        let Self { traffic, editor, watch, streams, .. } = self;
        let mut table = format!(
            "requests   {} sent; {} served, {} without route; {} failed, {} wrong, {} stale; p50 {} µs, p99 {} µs\n\
             edits      {} confirmed, {} attempts repeated; p50 {} µs, p99 {} µs\n\
             in force   {} seen; since confirmed p50 {} µs, p99 {} µs, max {} µs; version {}\n\
             streams    {} whole, {} broken; {} messages\n",
            traffic.requests,
            traffic.served,
            traffic.without_route,
            traffic.failed,
            traffic.wrong,
            traffic.stale,
            traffic.latency.p50_us,
            traffic.latency.p99_us,
            editor.edits,
            editor.repeated,
            editor.confirmed.p50_us,
            editor.confirmed.p99_us,
            watch.in_force.count,
            watch.in_force.p50_us,
            watch.in_force.p99_us,
            watch.in_force.max_us,
            watch.version,
            streams.whole,
            streams.broken.len(),
            streams.messages,
        );
        if let Some(wrk) = self.wrk {
            let LoadRun { requests, errors, p99_ms, .. } = wrk;
            table.push_str(&format!(
                "wrk        {requests} requests, {errors} errors, p99 {p99_ms} ms\n"
            ));
        }
        for Look { at, rss_kib, descriptors } in &self.looks {
            table.push_str(&format!("{at:>7.0} s {rss_kib:>9} KiB {descriptors:>6} descriptors\n"));
        }
        let examples = traffic
            .examples
            .iter()
            .flat_map(|(kind, texts)| texts.iter().map(move |text| format!("{kind}: {text}\n")));
        table.extend(examples);
        table.extend(streams.broken.iter().take(10).map(|text| format!("stream: {text}\n")));
        table
    }
}
