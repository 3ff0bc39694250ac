//! `longmen-bench edits`: how soon an edit is in force.

use anyhow::ensure;

use super::block_on;
use super::shared::{Installation, Results, Setup};
use crate::edits::{Plan, measure};
use crate::report::Circumstances;

/// Arguments of `longmen-bench edits`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    installation: Installation,
    /// An upstream that answers as `longmen-bench origin` does, host:port; can be given several times.
    #[arg(long = "upstream", default_value = "127.0.0.1:8189")]
    upstreams: Vec<String>,
    /// Selectors to create, at most 1,000.
    #[arg(long, default_value_t = 1_000)]
    selectors: u32,
    /// Rules to create in each selector.
    #[arg(long, default_value_t = 10)]
    rules: u32,
    /// Requests per second through the gateway meanwhile.
    #[arg(long, default_value_t = 2_000)]
    rate: u32,
    /// Connections of that load.
    #[arg(long, default_value_t = 32)]
    connections: u32,
    /// How often each operation is measured.
    #[arg(long, default_value_t = 200)]
    repeats: u32,
    /// Pause of the poller between an answer and its next request, in microseconds.
    #[arg(long, default_value_t = 300)]
    poll_us: u64,
    /// Pause between two operations, in milliseconds.
    #[arg(long, default_value_t = 20)]
    pause_ms: u64,
    #[command(flatten)]
    setup: Setup,
    /// How long an edit may take until it counts as failed, in milliseconds.
    #[arg(long, default_value_t = 10_000)]
    limit_ms: u64,
    /// Leave the rules in place at the end.
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    results: Results,
}

/// Measures, prints a table and writes the result.
///
/// # Errors
/// When something cannot be reached, an edit had no effect, or a request of the load went wrong.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let circumstances = Circumstances::now();
    let result = block_on(measure(args.plan()))?;
    print!("{}", result.table());
    args.results.write("edits", &circumstances, &result)?;
    ensure!(result.clean(), "some edits or requests failed; see the table");
    Ok(())
}

impl Args {
    fn plan(&self) -> Plan {
        Plan {
            admin: self.installation.admin.clone(),
            user: self.installation.user.clone(),
            password: self.installation.password.clone(),
            gateway: self.installation.gateway.clone(),
            upstreams: self.upstreams.clone(),
            selectors: self.selectors,
            rules: self.rules,
            rate: self.rate,
            connections: self.connections,
            repeats: self.repeats,
            poll_us: self.poll_us,
            pause_ms: self.pause_ms,
            setup_connections: self.setup.setup_connections,
            limit_ms: self.limit_ms,
            keep: self.keep,
        }
    }
}
