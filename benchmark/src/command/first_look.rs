//! `longmen-bench first-look`: processor time per request beside nginx.

use anyhow::ensure;

use super::block_on;
use super::shared::{Binaries, CoreArgs, Results};
use crate::compare::{Plan, measure};
use crate::report::Circumstances;

/// Arguments of `longmen-bench first-look`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Path of the mock upstream to ask for.
    #[arg(long, default_value = "/4k")]
    path: String,
    /// Connections of the load.
    #[arg(long, default_value_t = 16)]
    connections: u32,
    /// Length of one measurement in seconds.
    #[arg(long, default_value_t = 3)]
    seconds: u32,
    /// Rounds; each asks every target once.
    #[arg(long, default_value_t = 11)]
    rounds: u32,
    #[command(flatten)]
    cores: CoreArgs,
    /// Where the mock upstream listens, host:port; a free port when absent.
    #[arg(long)]
    upstream: Option<String>,
    /// One more proxy in front of that upstream, name=http://host:port; can be given several times.
    #[arg(long = "target", value_parser = parse_target)]
    targets: Vec<(String, String)>,
    #[command(flatten)]
    binaries: Binaries,
    #[command(flatten)]
    results: Results,
}

/// Starts everything on free ports, measures, prints a table and writes the result.
///
/// # Errors
/// When something cannot be started or measured, or a request went wrong.
pub fn run(args: Args) -> anyhow::Result<()> {
    let circumstances = Circumstances::now();
    let binaries = args.binaries.folder()?;
    let (proxy_cores, other_cores) = args.cores.split();
    let plan = Plan {
        binaries,
        path: args.path,
        connections: args.connections,
        seconds: args.seconds,
        rounds: args.rounds,
        proxy_cores,
        other_cores,
        upstream: args.upstream,
        others: args.targets,
    };
    let result = block_on(measure(&plan))?;
    print!("{}", result.table());
    args.results.write("first-look", &circumstances, &result)?;
    ensure!(result.errors() == 0, "some requests failed; see the table");
    Ok(())
}

fn parse_target(text: &str) -> Result<(String, String), String> {
    let (name, url) = text.split_once('=').ok_or("expected name=http://host:port")?;
    Ok((name.to_owned(), url.to_owned()))
}
