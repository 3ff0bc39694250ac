//! Several proxies in front of one upstream, measured in turns.
//!
//! Absolute times differ between machines and hours, so what counts are ratios within one round:
//! every round asks each target once, one after the other.

mod gateway;
mod nginx;
mod result;
mod targets;

use std::path::PathBuf;

use anyhow::{Context as _, ensure};

pub use result::{CompareResult, Round, TargetResult};
pub use targets::Target;

use crate::process::{Cores, CpuTime, resident_kib};
use crate::stage::Folder;
use crate::wrk;

/// What to compare and how.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Folder of the binaries `longmen-admin`, `longmen-bootstrap` and `longmen-bench`.
    pub binaries: PathBuf,
    /// Path of the mock upstream to ask for.
    pub path: String,
    /// Connections of the load.
    pub connections: u32,
    /// Length of one measurement in seconds.
    pub seconds: u32,
    /// Number of rounds.
    pub rounds: u32,
    /// Cores of the proxy under measurement.
    pub proxy_cores: Cores,
    /// Cores of the load generator and the upstream.
    pub other_cores: Cores,
    /// Where the upstream listens, host:port; a free port when absent.
    pub upstream: Option<String>,
    /// More targets in front of the same upstream, as name and base URL, without figures of their process.
    pub others: Vec<(String, String)>,
}

/// Starts everything, measures, and stops everything again.
///
/// # Errors
/// When something cannot be started or measured, or an answer was not what it should be.
pub async fn measure(plan: &Plan) -> anyhow::Result<CompareResult> {
    ensure!(plan.rounds > 0, "rounds: expected at least 1");
    let folder = Folder::create("compare")?;
    targets::with_all(plan, folder.path(), |targets| rounds(plan, targets)).await
}

fn rounds(plan: &Plan, targets: &[Target]) -> anyhow::Result<CompareResult> {
    let mut results: Vec<_> =
        targets.iter().map(|target| TargetResult::new(&target.name)).collect();
    for target in targets {
        // Connections, caches and the branch predictor get warm outside the measured time.
        wrk::run(&plan.other_cores, plan.connections, 1, &target.url(&plan.path))?;
    }
    for number in 1..=plan.rounds {
        for (target, result) in targets.iter().zip(&mut results) {
            result.rounds.push(round(plan, target)?);
        }
        eprint!("\rround {number} of {}", plan.rounds);
    }
    eprintln!();
    Ok(CompareResult::new(plan, results))
}

fn round(plan: &Plan, target: &Target) -> anyhow::Result<Round> {
    let cpu = |pid: Option<u32>| pid.map(CpuTime::of).transpose();
    let before = cpu(target.pid)?;
    let run = wrk::run(&plan.other_cores, plan.connections, plan.seconds, &target.url(&plan.path))?;
    let after = cpu(target.pid)?;
    ensure!(run.requests > 0, "{}: no request was answered", target.name);
    let used = before.zip(after).map(|(before, after)| after.micros_since(before));
    #[expect(clippy::cast_precision_loss, reason = "both are far below 2^52")]
    let cpu_us = used.map(|used| used as f64 / run.requests as f64);
    Ok(Round { run, cpu_us, resident_kib: target.pid.map(resident_kib).transpose()? })
}

/// The name that the upstream behind the proxies gives.
const UPSTREAM: &str = "compared";

/// Checks that a target serves the path from our upstream, so that no error page is measured.
async fn check(target: &Target, path: &str) -> anyhow::Result<()> {
    let mut connection = crate::client::Connection::new(target.server.clone());
    let answer = connection.get(path).await.with_context(|| target.name.clone())?;
    ensure!(
        answer.status == http::StatusCode::OK && answer.header("x-upstream") == Some(UPSTREAM),
        "{}: {} {path} is not our upstream's answer: {}",
        target.name,
        answer.status,
        answer.excerpt()
    );
    Ok(())
}
