//! `longmen-bench restarts`: restarts and stops under load.

use std::time::Duration;

use super::block_on;
use super::shared::{Binaries, Results};
use crate::report::Circumstances;
use crate::restarts::{Plan, measure};

/// Arguments of `longmen-bench restarts`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Connections of wrk, and half the clients that check every answer.
    #[arg(long, default_value_t = 64)]
    connections: u32,
    /// Restarts by takeover.
    #[arg(long, default_value_t = 10)]
    restarts: u32,
    /// Stops by SIGTERM.
    #[arg(long, default_value_t = 5)]
    stops: u32,
    /// Milliseconds between two restarts, and before a stop.
    #[arg(long, default_value_t = 1_500)]
    pause: u64,
    #[command(flatten)]
    binaries: Binaries,
    #[command(flatten)]
    results: Results,
}

/// Starts everything on free ports, prints a table and writes the result.
///
/// # Errors
/// When something cannot be started, or a request or a connection was lost.
pub fn run(args: Args) -> anyhow::Result<()> {
    let circumstances = Circumstances::now();
    let plan = Plan {
        binaries: args.binaries.folder()?,
        connections: args.connections,
        restarts: args.restarts,
        stops: args.stops,
        pause: Duration::from_millis(args.pause),
    };
    let result = block_on(measure(&plan))?;
    print!("{}", result.table());
    args.results.write("restarts", &circumstances, &result)?;
    result.check()
}
