//! `longmen-bench interop`: the published Java starter beside our admin and gateway.

use std::path::PathBuf;

use super::block_on;
use super::shared::Binaries;
use crate::interop::{Plan, run as run_steps};

/// Arguments of `longmen-bench interop`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The service, as Maven packages it.
    #[arg(long)]
    jar: PathBuf,
    #[command(flatten)]
    binaries: Binaries,
}

/// Starts everything on free ports and prints a line for each step.
///
/// # Errors
/// When a step does not go as it should.
pub fn run(args: Args) -> anyhow::Result<()> {
    let plan = Plan { binaries: args.binaries.folder()?, jar: args.jar };
    block_on(run_steps(&plan))
}
