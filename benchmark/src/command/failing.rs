//! `longmen-bench failing`: one bad upstream among four.

use std::path::PathBuf;
use std::time::Duration;

use super::block_on;
use crate::failing::{Plan, measure};
use crate::process::Cores;
use crate::report::{self, Circumstances};
use crate::stage::own_folder;

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
    /// Cores of the gateway, as taskset takes them.
    #[arg(long, default_value = "0")]
    proxy_cores: String,
    /// Cores of the admin, as taskset takes them.
    #[arg(long, default_value = "1")]
    other_cores: String,
    /// Folder of the binaries; the one this program is in when absent.
    #[arg(long)]
    binaries: Option<PathBuf>,
    /// Folder the result is written into.
    #[arg(long, default_value = "benchmark/results")]
    out: PathBuf,
}

/// Starts everything on free ports, measures, prints a table and writes the result.
///
/// # Errors
/// When something cannot be started or measured.
pub fn run(args: Args) -> anyhow::Result<()> {
    let circumstances = Circumstances::now();
    let plan = Plan {
        binaries: args.binaries.map_or_else(own_folder, Ok)?,
        clients: args.clients,
        rate: args.rate,
        time: Duration::from_secs(args.seconds),
        proxy_cores: Cores(args.proxy_cores),
        other_cores: Cores(args.other_cores),
        rounds: args.rounds,
    };
    let result = block_on(measure(&plan))?;
    print!("{}", result.table());
    let path = report::write(&args.out, "failing", &circumstances, &result)?;
    println!("written to {}", path.display());
    Ok(())
}
