//! `longmen-bench failing`: one bad upstream among four.

use std::time::Duration;

use super::block_on;
use super::shared::{Binaries, CoreArgs, Results};
use crate::failing::{Plan, measure};
use crate::report::Circumstances;

/// Arguments of `longmen-bench failing`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Clients, each with a connection of its own.
    #[arg(long, default_value_t = 200)]
    clients: u32,
    /// Requests a second of all clients together.
    #[arg(long, default_value_t = 1_000)]
    rate: u32,
    /// Length of one run in seconds.
    #[arg(long, default_value_t = 12)]
    seconds: u64,
    /// Rounds; each has one run of every trouble.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    #[command(flatten)]
    cores: CoreArgs,
    #[command(flatten)]
    binaries: Binaries,
    #[command(flatten)]
    results: Results,
}

/// Starts everything on free ports, measures, prints a table and writes the result.
///
/// # Errors
/// When something cannot be started or measured.
pub fn run(args: Args) -> anyhow::Result<()> {
    let circumstances = Circumstances::now();
    let (proxy_cores, other_cores) = args.cores.split();
    let plan = Plan {
        binaries: args.binaries.folder()?,
        clients: args.clients,
        rate: args.rate,
        time: Duration::from_secs(args.seconds),
        proxy_cores,
        other_cores,
        rounds: args.rounds,
    };
    let result = block_on(measure(&plan))?;
    print!("{}", result.table());
    args.results.write("failing", &circumstances, &result)?;
    Ok(())
}
