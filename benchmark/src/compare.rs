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

pub use result::{CompareResult, TargetResult};
pub use targets::Target;

use crate::process::Cores;
use crate::series::{Round, Series};
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
    let mut series: Vec<_> = targets.iter().map(|target| Series::new(&target.name)).collect();
    let load = |target: &Target, seconds| {
        wrk::run(&plan.other_cores, plan.connections, seconds, &target.url(&plan.path))
    };
    for target in targets {
        // Connections, caches and the branch predictor get warm outside the measured time.
        load(target, 1)?;
    }
    for number in 1..=plan.rounds {
        for (target, series) in targets.iter().zip(&mut series) {
            let round = Round::measure(target.pid, || load(target, plan.seconds));
            series.rounds.push(round.with_context(|| target.name.clone())?);
        }
        eprint!("\rround {number} of {}", plan.rounds);
    }
    eprintln!();
    Ok(CompareResult::new(plan, series))
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
