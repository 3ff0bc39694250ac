//! `longmen-bench origin`: the mock upstream as a process.

use anyhow::Context as _;

use super::{block_on, interrupted};
use crate::origin::Origin;

/// Arguments of `longmen-bench origin`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where to listen, host:port.
    #[arg(long, default_value = "127.0.0.1:8189")]
    bind: String,
    /// The name given by the header x-upstream.
    #[arg(long, default_value = "origin")]
    name: String,
    /// Worker threads; as many as cores when absent.
    #[arg(long)]
    workers: Option<usize>,
}

/// Serves until Ctrl-C or SIGTERM.
///
/// # Errors
/// When the address cannot be bound.
pub fn run(args: Args) -> anyhow::Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let builder = Origin::builder()
        .name(args.name)
        .bind(args.bind.as_str())
        .workers(args.workers.unwrap_or(cores));
    let origin = builder.start().with_context(|| format!("serve on {}", args.bind))?;
    println!("{} listens on {}", origin.name(), origin.url());
    block_on(async {
        interrupted().await?;
        origin.stop().await;
        Ok(())
    })
}
