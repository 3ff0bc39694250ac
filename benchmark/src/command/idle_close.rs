//! `longmen-bench idle-close`: requests at the moment at which upstreams close idle connections.

use super::block_on;
use super::shared::{Binaries, Results};
use crate::idle_close::{Plan, measure};
use crate::report::Circumstances;

/// Arguments of `longmen-bench idle-close`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Clients of each of the four groups.
    #[arg(long, default_value_t = 100)]
    clients: u32,
    /// Requests of each client; each takes about a second.
    #[arg(long, default_value_t = 200)]
    requests: u32,
    /// The gateway's way to upstreams.
    #[arg(long, default_value = "hyper", value_parser = ["hyper", "reqwest"])]
    strategy: String,
    #[command(flatten)]
    binaries: Binaries,
    #[command(flatten)]
    results: Results,
}

/// Starts everything on free ports, prints a table and writes the result.
///
/// # Errors
/// When something cannot be started, or requests were lost or executed twice.
pub fn run(args: Args) -> anyhow::Result<()> {
    let circumstances = Circumstances::now();
    let plan = Plan {
        binaries: args.binaries.folder()?,
        clients: args.clients,
        requests: args.requests,
        strategy: args.strategy,
    };
    let result = block_on(measure(&plan))?;
    print!("{}", result.table());
    args.results.write("idle-close", &circumstances, &result)?;
    result.check()
}
