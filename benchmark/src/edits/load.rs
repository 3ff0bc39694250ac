//! A steady load over many paths, each answer checked.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, anyhow, ensure};
use http::StatusCode;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::probe::echoes;
use crate::client::{Connection, Server};
use crate::stats::{Histogram, Summary};

/// Different failures that are told apart; the rest is counted together.
const MAX_KINDS: usize = 20;

/// Step from one path to the next: prime, so that it reaches all of them, and large, so that
/// neighbours in time are not neighbours in the table.
const STRIDE: usize = 7_919;

/// A load that runs on a thread of its own.
#[derive(Debug)]
pub(super) struct Load {
    stop: CancellationToken,
    thread: JoinHandle<anyhow::Result<LoadResult>>,
}

/// What the load saw.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadResult {
    /// Requests sent per second.
    pub rate: f64,
    /// From the moment a request was due to its whole answer.
    pub latency: Summary,
    /// Answers that were not as they should be, by kind.
    pub failures: BTreeMap<String, u64>,
}

#[derive(Default)]
struct Seen {
    latency: Histogram,
    failures: BTreeMap<String, u64>,
}

// === impl Load ===

impl Load {
    /// Starts to send `rate` requests per second, spread evenly over the connections, and waits
    /// until each of them has had its first answer: what is measured then is measured under load.
    pub(super) async fn start(
        gateway: Server,
        paths: Arc<[String]>,
        rate: u32,
        connections: u32,
    ) -> anyhow::Result<Self> {
        ensure!(connections > 0, "connections: expected at least 1");
        let stop = CancellationToken::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let token = stop.clone();
        let (waiting, mut answered) = mpsc::channel(1);
        let load = async move { run(gateway, paths, rate, connections, token, waiting).await };
        let thread = std::thread::Builder::new()
            .name("load".into())
            .spawn(move || runtime.block_on(load))?;
        // Nothing is ever sent: the channel closes when the last connection drops its end.
        let _closed: Option<()> = answered.recv().await;
        Ok(Self { stop, thread })
    }

    /// Lets the requests in flight finish and sums up.
    pub(super) async fn stop(self) -> anyhow::Result<LoadResult> {
        self.stop.cancel();
        let joined = tokio::task::spawn_blocking(move || self.thread.join()).await;
        joined.context("wait for the load")?.map_err(|_| anyhow!("the load panicked"))?
    }
}

async fn run(
    gateway: Server,
    paths: Arc<[String]>,
    rate: u32,
    connections: u32,
    stop: CancellationToken,
    waiting: mpsc::Sender<()>,
) -> anyhow::Result<LoadResult> {
    if rate == 0 {
        drop(waiting);
        stop.cancelled().await;
        return Ok(LoadResult::default());
    }
    let started = Instant::now();
    let gap = Duration::from_secs(1) / rate;
    let mut lanes = JoinSet::new();
    for lane in 0..connections {
        let lane = Lane {
            connection: Connection::new(gateway.clone()),
            paths: Arc::clone(&paths),
            next: lane as usize,
            step: connections as usize,
            due: started + gap * lane,
            gap: gap * connections,
            waiting: Some(waiting.clone()),
        };
        lanes.spawn(lane.run(stop.clone()));
    }
    drop(waiting);
    let mut all = Seen::default();
    while let Some(seen) = lanes.join_next().await {
        let seen = seen.context("a connection of the load")?;
        all.latency.merge(&seen.latency);
        for (what, count) in seen.failures {
            *all.failures.entry(what).or_default() += count;
        }
    }
    let latency = all.latency.summary();
    #[expect(clippy::cast_precision_loss, reason = "a count of requests is far below 2^52")]
    let rate = latency.count as f64 / started.elapsed().as_secs_f64();
    Ok(LoadResult { rate, latency, failures: all.failures })
}

/// One connection's share of the load.
struct Lane {
    connection: Connection,
    paths: Arc<[String]>,
    next: usize,
    step: usize,
    due: Instant,
    gap: Duration,
    /// Held until the first answer.
    waiting: Option<mpsc::Sender<()>>,
}

impl Lane {
    async fn run(mut self, stop: CancellationToken) -> Seen {
        let mut seen = Seen::default();
        loop {
            tokio::select! {
                () = stop.cancelled() => return seen,
                () = tokio::time::sleep_until(self.due) => {}
            }
            let path = &self.paths[self.next.wrapping_mul(STRIDE) % self.paths.len()];
            let failure = match self.connection.get(path).await {
                Ok(answer) if answer.status != StatusCode::OK => {
                    Some(format!("status {}: {}", answer.status, answer.excerpt()))
                }
                Ok(answer) if !echoes(&answer, path) => {
                    Some(format!("not what was asked for: {}", answer.excerpt()))
                }
                Ok(_) => None,
                Err(error) => Some(format!("no answer: {}", error.root_cause())),
            };
            if let Some(what) = failure {
                seen.count(what);
            }
            // From when it was due, so that a stall counts for all it holds up.
            seen.latency.record(self.due.elapsed());
            self.waiting = None;
            self.next = self.next.wrapping_add(self.step);
            self.due += self.gap;
        }
    }
}

impl Seen {
    fn count(&mut self, what: String) {
        let known = self.failures.len() < MAX_KINDS || self.failures.contains_key(&what);
        let what = if known { what } else { "others".to_owned() };
        *self.failures.entry(what).or_default() += 1;
    }
}
