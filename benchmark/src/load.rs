//! A number of requests over a number of connections, each sent as soon as the last was answered: what
//! `hey -n … -c …` sends.
//!
//! A program of its own, so that it can be kept to other cores than what is measured.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::client::Server;
use crate::process::Cores;
use crate::raw::RawClient;
use crate::stats::Histogram;

/// Longest wait for anything of one answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// How many requests over how many connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Shape {
    /// Requests in all, at least one for each connection.
    pub requests: u64,
    /// Connections, at least one; the requests are divided evenly among them.
    pub connections: u32,
}

/// What to send where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    /// Where to; its host is an IP address.
    pub server: Server,
    /// The path to ask for.
    pub path: String,
    /// How much.
    pub shape: Shape,
    /// When to end although requests are left: none is begun after that.
    pub limit: Option<Duration>,
}

/// What one run of a load generator reported.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadRun {
    /// Requests answered.
    pub requests: u64,
    /// Requests per second.
    pub rate: f64,
    /// Median latency in milliseconds.
    pub p50_ms: f64,
    /// 99th percentile of latency in milliseconds.
    pub p99_ms: f64,
    /// Connections that failed and answers that were neither 2xx nor 3xx.
    pub errors: u64,
}

#[derive(Default)]
struct Seen {
    latency: Histogram,
    errors: u64,
}

// === impl Shape ===

impl Shape {
    /// The requests of one connection; the first ones have one more where they do not divide evenly.
    fn share(self, connection: u32) -> u64 {
        let (all, connections) = (self.requests, u64::from(self.connections));
        all / connections + u64::from(u64::from(connection) < all % connections)
    }
}

impl FromStr for Shape {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let expected =
            || format!("expected requests/connections such as 90000/100, found {text:?}");
        let (requests, connections) = text.split_once('/').with_context(expected)?;
        let shape = Self {
            requests: requests.parse().with_context(expected)?,
            connections: connections.parse().with_context(expected)?,
        };
        ensure!(shape.connections > 0, "{}: no connections", expected());
        ensure!(
            shape.requests >= u64::from(shape.connections),
            "{}: fewer requests than connections",
            expected()
        );
        Ok(shape)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.requests, self.connections)
    }
}

// === impl Load ===

impl Load {
    /// Sends everything and waits for the last answer. The time of the run begins before the
    /// connections are opened. One that breaks counts as an error for the request it was in and is
    /// opened anew for the next.
    ///
    /// # Errors
    /// When the host is no IP address. What goes wrong with requests is counted.
    pub async fn send(&self) -> anyhow::Result<LoadRun> {
        let authority = self.server.authority();
        let address: SocketAddr =
            authority.parse().with_context(|| format!("{authority:?} has no IP address"))?;
        let request = format!("GET {} HTTP/1.1\r\nHost: {authority}\r\n\r\n", self.path);
        let (request, seen): (Arc<str>, _) = (request.into(), Arc::new(Mutex::default()));
        let begun = Instant::now();
        let deadline = self.limit.map(|limit| begun + limit);
        let mut lanes = JoinSet::new();
        for connection in 0..self.shape.connections {
            let share = self.shape.share(connection);
            lanes.spawn(lane(address, Arc::clone(&request), share, deadline, Arc::clone(&seen)));
        }
        while let Some(ended) = lanes.join_next().await {
            ended.context("a connection of the load")?;
        }
        let elapsed = begun.elapsed();
        let seen = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(seen.sum_up(elapsed))
    }

    /// Has a process of its own send everything, on the given cores.
    ///
    /// # Errors
    /// When it cannot be started, fails, or prints something unknown.
    pub fn send_on(&self, binaries: &Path, cores: &Cores) -> anyhow::Result<LoadRun> {
        let program = binaries.join("longmen-bench");
        let url = format!("http://{}{}", self.server.authority(), self.path);
        let mut command = Command::new("taskset");
        command.args(["-c", &cores.0]).arg(&program).args(["load", &url]);
        command.args(["--shape", &self.shape.to_string()]);
        if let Some(limit) = self.limit {
            command.args(["--limit-ms", &limit.as_millis().to_string()]);
        }
        let output =
            command.output().with_context(|| format!("start {} by taskset", program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "load of {url}: {}{text}{errors}", output.status);
        serde_json::from_str(&text).with_context(|| format!("the load printed {text:?}"))
    }
}

async fn lane(
    address: SocketAddr,
    request: Arc<str>,
    share: u64,
    deadline: Option<Instant>,
    seen: Arc<Mutex<Seen>>,
) {
    let mut kept = None;
    for _ in 0..share {
        let sent = Instant::now();
        if deadline.is_some_and(|deadline| sent >= deadline) {
            return;
        }
        let answered = exchange(address, &request, &mut kept).await;
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        if answered.is_some() {
            seen.latency.record(sent.elapsed());
        }
        seen.errors += u64::from(!matches!(answered, Some(200..400)));
    }
}

/// The status of the answer, if a whole one came. The connection stays open then.
async fn exchange(address: SocketAddr, request: &str, kept: &mut Option<RawClient>) -> Option<u16> {
    let mut client = match kept.take() {
        Some(client) => client,
        None => RawClient::connect(address, ANSWER_LIMIT).await.ok()?,
    };
    client.send(request.as_bytes()).await;
    let answer = client.answer(false).await;
    if answer.cut || answer.timed_out {
        return None;
    }
    *kept = Some(client);
    Some(answer.status())
}

impl Seen {
    fn sum_up(self, elapsed: Duration) -> LoadRun {
        let summary = self.latency.summary();
        #[expect(clippy::cast_precision_loss, reason = "both are far below 2^52")]
        let (requests, ms) = (summary.count as f64, |us: u64| us as f64 / 1_000.0);
        LoadRun {
            requests: summary.count,
            rate: requests / elapsed.as_secs_f64(),
            p50_ms: ms(summary.p50_us),
            p99_ms: ms(summary.p99_us),
            errors: self.errors,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::{Fault, Origin};

    fn load(origin: &Origin, path: &str, shape: &str) -> Load {
        let server = Server::parse(&origin.url()).expect("an address");
        Load { server, path: path.into(), shape: shape.parse().expect("a shape"), limit: None }
    }

    #[test]
    fn shapes_are_read_as_they_are_written() {
        let shape: Shape = "90000/120".parse().expect("a shape");
        assert_eq!(shape, Shape { requests: 90_000, connections: 120 });
        assert_eq!(shape.to_string(), "90000/120");
        for (wrong, why) in [
            ("900", "expected requests/connections"),
            ("900/x", "expected requests/connections"),
            ("-1/5", "expected requests/connections"),
            ("900/0", "no connections"),
            ("4/5", "fewer requests than connections"),
        ] {
            let error = wrong.parse::<Shape>().expect_err("it is no shape").to_string();
            assert!(error.contains(why) && error.contains(&format!("{wrong:?}")), "{error}");
        }
    }

    #[test]
    fn shares_add_up() {
        for (requests, connections) in [(900, 50), (90_000, 120), (7, 3), (5, 5)] {
            let shape = Shape { requests, connections };
            let shares: Vec<_> = (0..connections).map(|number| shape.share(number)).collect();
            assert_eq!(shares.iter().sum::<u64>(), requests);
            let (least, most) = (shares.iter().min(), shares.iter().max());
            assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 1), "{shares:?}");
        }
    }

    #[tokio::test]
    async fn exactly_so_many_requests_over_exactly_so_many_connections() {
        let origin = Origin::builder().start().expect("a free port on loopback");
        let run = load(&origin, "/4k", "907/50").send().await.expect("sent");
        assert_eq!((run.requests, run.errors), (907, 0));
        assert!(run.rate > 0.0 && run.p50_ms > 0.0 && run.p99_ms >= run.p50_ms, "{run:?}");
        assert_eq!((origin.requests(), origin.connections()), (907, 50));
    }

    #[tokio::test]
    async fn what_goes_wrong_is_counted() {
        let origin = Origin::builder().start().expect("a free port on loopback");
        let run = load(&origin, "/status/404", "20/2").send().await.expect("sent");
        assert_eq!((run.requests, run.errors), (20, 20));
        origin.set_fault(Fault::Close);
        let run = load(&origin, "/4k", "20/2").send().await.expect("sent");
        assert_eq!((run.requests, run.errors), (0, 20));
    }

    #[tokio::test]
    async fn no_request_is_begun_after_the_limit() {
        let origin = Origin::builder().start().expect("a free port on loopback");
        let limit = Some(Duration::from_millis(100));
        let load = Load { limit, ..load(&origin, "/delay20", "1000/2") };
        let run = load.send().await.expect("sent");
        assert_eq!(run.errors, 0);
        // Two connections, 20 ms an answer at least.
        assert!((1..=12).contains(&run.requests), "{run:?}");
    }
}
