//! `longmen-bench chaos`: everything changes, and nothing may fail.

use std::path::PathBuf;
use std::time::Duration;

use super::block_on;
use super::shared::{Binaries, Results};
use crate::chaos::{Counts, Plan, measure};
use crate::report::Circumstances;

/// Arguments of `longmen-bench chaos`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Seconds to edit and to disturb.
    #[arg(long, default_value_t = 180)]
    seconds: u64,
    /// Edits of the routes under load.
    #[arg(long, default_value_t = 1_000)]
    edits: u32,
    /// Routes under load.
    #[arg(long, default_value_t = 20)]
    routes: u32,
    /// Requests per second of the clients that check.
    #[arg(long, default_value_t = 1_000)]
    rate: u32,
    /// Clients that check.
    #[arg(long, default_value_t = 50)]
    clients: u32,
    /// Connections of wrk beside them; 0 for none.
    #[arg(long, default_value_t = 8)]
    wrk: u32,
    /// Streams that are to stay open: websockets, event streams, transfers. Without takeovers only.
    #[arg(long, default_value_t = 0)]
    streams: u32,
    /// Full refreshes.
    #[arg(long, default_value_t = 50)]
    resyncs: u32,
    /// Kills of the admin.
    #[arg(long, default_value_t = 10)]
    admin_kills: u32,
    /// Crashes of PostgreSQL.
    #[arg(long, default_value_t = 3)]
    database_crashes: u32,
    /// Cuts of the connection between gateway and admin.
    #[arg(long, default_value_t = 5)]
    cuts: u32,
    /// Stalls of that connection.
    #[arg(long, default_value_t = 3)]
    stalls: u32,
    /// Restarts of the gateway by takeover.
    #[arg(long, default_value_t = 5)]
    takeovers: u32,
    /// Keep the admin's data in SQLite, without PostgreSQL and its crashes.
    #[arg(long)]
    sqlite: bool,
    /// The script that keeps a PostgreSQL server.
    #[arg(long, default_value = "scripts/postgres.sh")]
    postgres: PathBuf,
    #[command(flatten)]
    binaries: Binaries,
    #[command(flatten)]
    results: Results,
}

/// Starts everything on free ports, prints a table and writes the result.
///
/// # Errors
/// When something cannot be started, or anything failed.
pub fn run(args: Args) -> anyhow::Result<()> {
    let circumstances = Circumstances::now();
    let plan = Plan {
        binaries: args.binaries.folder()?,
        postgres: (!args.sqlite).then_some(args.postgres),
        time: Duration::from_secs(args.seconds),
        routes: args.routes,
        edits: args.edits,
        rate: args.rate,
        clients: args.clients,
        wrk: args.wrk,
        streams: args.streams,
        counts: Counts {
            resyncs: args.resyncs,
            admin_kills: args.admin_kills,
            database_crashes: if args.sqlite { 0 } else { args.database_crashes },
            cuts: args.cuts,
            stalls: args.stalls,
            takeovers: args.takeovers,
        },
    };
    let result = block_on(measure(&plan))?;
    print!("{}", result.table());
    args.results.write("chaos", &circumstances, &result)?;
    result.check()
}
