//! What one bad upstream among four does to the answers of the other three.
//!
//! Clients send at a fixed pace; each notes which upstream answered, and how long that took.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde::Serialize;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use crate::admin_api::{AdminApi, PathCondition, Rule};
use crate::client::{Connection, Server};
use crate::origin::{Fault, Origin};
use crate::process::Cores;
use crate::stage::{Admin, Folder, Gateway, free_port};
use crate::stats::{Histogram, Summary};

const PATH: &str = "/4k";

/// The name of the upstream that is bad.
const BAD: &str = "U4";

/// The time limit of an attempt. A failed one is repeated once, at another upstream.
const LIMIT: Duration = Duration::from_millis(500);

/// Failures that are told in words.
const MAX_EXAMPLES: usize = 3;

/// What is wrong with the fourth upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Trouble {
    /// Nothing.
    None,
    /// Nobody listens on its port.
    Dead,
    /// Each answer begins 300 ms late.
    Slow,
    /// It takes requests and never answers within their time limit of 500 ms.
    Mute,
    /// Its process ends and comes back, two seconds each.
    Flapping,
    /// It closes each connection once it has read a request, two seconds of every four.
    Closing,
}

/// How to measure.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Folder of the binaries.
    pub binaries: PathBuf,
    /// Clients.
    pub clients: u32,
    /// Requests a second of all clients together.
    pub rate: u32,
    /// Length of one run.
    pub time: Duration,
    /// Cores of the gateway.
    pub proxy_cores: Cores,
    /// Cores of the admin.
    pub other_cores: Cores,
    /// Rounds; each has one run of every trouble.
    pub rounds: u32,
}

/// One run.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// What was wrong.
    pub trouble: Trouble,
    /// Answers of the three good upstreams.
    pub good: Summary,
    /// Right answers of the bad one.
    pub bad: Summary,
    /// Requests without a right answer.
    pub failed: u64,
    /// The first few of those, in words.
    pub examples: Vec<String>,
}

/// All runs.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FailingResult {
    /// Requests a second that were sent.
    pub rate: u32,
    /// The runs in their order.
    pub runs: Vec<Run>,
}

/// What the clients have seen.
#[derive(Debug, Default)]
struct Seen {
    good: Histogram,
    bad: Histogram,
    failed: u64,
    examples: Vec<String>,
}

const TROUBLES: [Trouble; 6] = [
    Trouble::None,
    Trouble::Dead,
    Trouble::Slow,
    Trouble::Mute,
    Trouble::Flapping,
    Trouble::Closing,
];

/// Starts everything, runs all troubles in turn, and stops everything again.
///
/// # Errors
/// When something cannot be started or routed.
pub async fn measure(plan: &Plan) -> anyhow::Result<FailingResult> {
    ensure!(plan.rate >= plan.clients && plan.clients > 0, "rate: expected at least one a client");
    let folder = Folder::create("failing")?;
    let admin = Admin::start(&plan.binaries, &plan.other_cores, folder.path()).await?;
    let good = (1..4)
        .map(|number| Origin::builder().name(format!("U{number}")).start())
        .collect::<Result<Vec<_>, _>>()?;
    let bad = format!("127.0.0.1:{}", free_port()?);
    let mut upstreams: Vec<_> = good.iter().map(|origin| origin.addr().to_string()).collect();
    upstreams.push(bad.clone());
    route(&mut admin.log_in().await?, &upstreams).await.context("route to four upstreams")?;
    let mut runs = Vec::new();
    for round in 0..plan.rounds {
        for trouble in TROUBLES {
            // A gateway of its own: what it has learned of an upstream must not help the next run.
            let log = folder.path().join(format!("gateway-{round}-{trouble:?}.log"));
            let arguments = [format!("--shenyu.management.port={}", free_port()?)];
            let port = free_port()?;
            let cores = &plan.proxy_cores;
            let mut gateway =
                Gateway::spawn(&plan.binaries, cores, log, port, admin.port(), &arguments)?;
            let fourth = Origin::builder().name(BAD).bind(bad.as_str()).start()?;
            gateway.serves(PATH).await?;
            runs.push(run(plan, &gateway.server, trouble, fourth).await?);
            eprint!("\rround {} of {}: {trouble:?}          ", round + 1, plan.rounds);
        }
    }
    eprintln!();
    Ok(FailingResult { rate: plan.rate, runs })
}

async fn route(api: &mut AdminApi, upstreams: &[String]) -> anyhow::Result<()> {
    let selector = api.create_selector("failing", 1, &PathCondition::equal(PATH)).await?;
    api.bind(&selector, "failing", upstreams).await?;
    let (name, condition) = ("failing".to_owned(), PathCondition::equal(PATH));
    let rule = Rule { selector_id: selector, name, sort: 1, condition };
    let handle = json!({
        "loadBalance": "roundRobin", "retryStrategy": "failover", "retry": 1,
        "timeout": u64::try_from(LIMIT.as_millis()).unwrap_or(u64::MAX),
    });
    api.create_rule_with(&rule, &handle).await
}

async fn run(
    plan: &Plan,
    gateway: &Server,
    trouble: Trouble,
    fourth: Origin,
) -> anyhow::Result<Run> {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let stop = CancellationToken::new();
    let mut clients = JoinSet::new();
    let pause = Duration::from_secs(1) * plan.clients / plan.rate;
    for number in 0..plan.clients {
        // Spread over the pause, so that they do not all send at once.
        let first = Instant::now() + pause * number / plan.clients;
        let client = client(gateway.clone(), first, pause, stop.clone(), Arc::clone(&seen));
        clients.spawn(client);
    }
    // The connections of all clients are open and every upstream has answered.
    tokio::time::sleep(Duration::from_secs(1)).await;
    *seen.lock().unwrap_or_else(PoisonError::into_inner) = Seen::default();
    let fourth = make_trouble(trouble, fourth, plan.time).await?;
    stop.cancel();
    while let Some(ended) = clients.join_next().await {
        ended.context("a client")?;
    }
    // Not before the last answer: what it still has in work would be failed over.
    drop(fourth);
    let seen = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
    let Seen { good, bad, failed, examples } = seen;
    Ok(Run { trouble, good: good.summary(), bad: bad.summary(), failed, examples })
}

/// Makes trouble for this time; gives the fourth upstream back, if it is alive in the end.
async fn make_trouble(
    trouble: Trouble,
    fourth: Origin,
    time: Duration,
) -> anyhow::Result<Option<Origin>> {
    const PHASE: Duration = Duration::from_secs(2);
    let until = Instant::now() + time;
    match trouble {
        Trouble::None => {}
        Trouble::Slow => fourth.set_fault(Fault::SlowHead(Duration::from_millis(300))),
        Trouble::Mute => fourth.set_fault(Fault::SlowHead(Duration::from_secs(600))),
        Trouble::Dead => {
            drop(fourth);
            tokio::time::sleep_until(until).await;
            return Ok(None);
        }
        Trouble::Closing => {
            while Instant::now() < until {
                fourth.set_fault(Fault::Close);
                tokio::time::sleep(PHASE).await;
                fourth.set_fault(Fault::None);
                tokio::time::sleep(PHASE).await;
            }
        }
        Trouble::Flapping => {
            let address = fourth.addr().to_string();
            let mut fourth = fourth;
            while Instant::now() < until {
                // As a process that is killed: whatever it had open is closed.
                drop(fourth);
                tokio::time::sleep(PHASE).await;
                fourth = Origin::builder().name(BAD).bind(address.as_str()).start()?;
                tokio::time::sleep(PHASE).await;
            }
            return Ok(Some(fourth));
        }
    }
    tokio::time::sleep_until(until).await;
    Ok(Some(fourth))
}

async fn client(
    gateway: Server,
    first: Instant,
    pause: Duration,
    stop: CancellationToken,
    seen: Arc<Mutex<Seen>>,
) {
    let mut connection = Connection::new(gateway);
    let mut ticks = interval_at(first, pause);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    while !stop.is_cancelled() {
        ticks.tick().await;
        // Not from when it was due: what a client lost to the bad upstream is counted there.
        let sent = Instant::now();
        let outcome = connection.get(PATH).await;
        let time = sent.elapsed();
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let failure = match outcome {
            Ok(answer) if answer.status == 200 && answer.body.len() == 4_000 => {
                let by_bad = answer.header("x-upstream") == Some(BAD);
                if by_bad { &mut seen.bad } else { &mut seen.good }.record(time);
                continue;
            }
            Ok(answer) => format!("status {}: {}", answer.status, answer.excerpt()),
            Err(error) => format!("{error:#}"),
        };
        seen.failed += 1;
        if seen.examples.len() < MAX_EXAMPLES {
            seen.examples.push(failure);
        }
    }
}

impl FailingResult {
    /// The result as a table for people.
    #[must_use]
    pub fn table(&self) -> String {
        let mut table = format!(
            "{} requests/s; times of the answers of the three good upstreams\n\
             {:<10} {:>8} {:>9} {:>9} {:>9} {:>10} {:>7}  examples\n",
            self.rate, "fourth", "answers", "p50 µs", "p99 µs", "max µs", "by fourth", "failed"
        );
        for run in &self.runs {
            let trouble = format!("{:?}", run.trouble).to_lowercase();
            table.push_str(&format!(
                "{trouble:<10} {:>8} {:>9} {:>9} {:>9} {:>10} {:>7}  {}\n",
                run.good.count,
                run.good.p50_us,
                run.good.p99_us,
                run.good.max_us,
                run.bad.count,
                run.failed,
                run.examples.join(" | ")
            ));
        }
        table
    }
}
