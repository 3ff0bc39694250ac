//! `longmen-bench admins`: two admins on one PostgreSQL, one of which is killed.

use std::time::Duration;

use super::shared::{Binaries, Results};
use crate::admins::{Plan, measure};
use crate::report::Circumstances;

use super::block_on;

/// Arguments of `longmen-bench admins`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Runs, one after the other on one database.
    #[arg(long, default_value_t = 20)]
    runs: u32,
    /// Seconds for which the edits of one run go on.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Edits per second.
    #[arg(long, default_value_t = 500)]
    rate: u32,
    /// Rules.
    #[arg(long, default_value_t = 1_000)]
    rules: u32,
    /// Clients that edit.
    #[arg(long, default_value_t = 32)]
    clients: u32,
    /// Cut the connections on which the admins listen, twice a second.
    #[arg(long)]
    cut_listeners: bool,
    /// Have half of the notifications lost.
    #[arg(long)]
    lose_notifications: bool,
    /// A PostgreSQL server, postgres://user:password@host:port/database; one is started when absent.
    #[arg(long, env = "LONGMEN_TEST_POSTGRES_URL", hide_env_values = true)]
    postgres: Option<String>,
    /// Print the table alone and write no result.
    #[arg(long)]
    dry: bool,
    #[command(flatten)]
    binaries: Binaries,
    #[command(flatten)]
    results: Results,
}

/// Makes the runs, prints a table and writes the result.
///
/// # Errors
/// When something cannot be started, or what must agree does not.
pub fn run(args: Args) -> anyhow::Result<()> {
    let circumstances = Circumstances::now();
    let plan = Plan {
        binaries: args.binaries.folder()?,
        postgres: args.postgres.filter(|url| !url.is_empty()),
        runs: args.runs,
        duration: Duration::from_secs(args.seconds),
        rate: args.rate.max(1),
        rules: args.rules.max(1),
        clients: args.clients.clamp(1, args.rules.max(1)),
        cut_listeners: args.cut_listeners,
        lose_notifications: args.lose_notifications,
    };
    let result = block_on(measure(&plan))?;
    print!("{}", result.table());
    if !args.dry {
        args.results.write("admins", &circumstances, &result)?;
    }
    result.check()
}
