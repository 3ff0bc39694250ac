//! `longmen-bench soak`: mixed traffic for a long time, every answer checked.

use std::time::Duration;

use super::block_on;
use super::shared::{Installation, Results};
use crate::report::Circumstances;
use crate::soak::{Plan, soak};

/// Arguments of `longmen-bench soak`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    installation: Installation,
    /// The gateway's process, whose memory and descriptors are watched.
    #[arg(long)]
    pid: Option<u32>,
    /// How long, in seconds.
    #[arg(long, default_value_t = 600)]
    seconds: u64,
    /// Clients that send small requests one after the other.
    #[arg(long, default_value_t = 16)]
    small: u32,
    /// Clients that send and get back large bodies.
    #[arg(long, default_value_t = 2)]
    transfers: u32,
    /// The size of those, in MiB.
    #[arg(long, default_value_t = 100)]
    transfer_mib: u64,
    /// Clients that read event streams.
    #[arg(long, default_value_t = 20)]
    events: u32,
    /// Open websockets.
    #[arg(long, default_value_t = 200)]
    sockets: u32,
    /// Clients that send and read slowly.
    #[arg(long, default_value_t = 8)]
    slow: u32,
    /// Clients that leave in the middle.
    #[arg(long, default_value_t = 8)]
    vanishing: u32,
    /// Clients of an upstream that closes, stalls, resets and sends garbage.
    #[arg(long, default_value_t = 8)]
    rude: u32,
    #[command(flatten)]
    results: Results,
}

/// Runs the soak, prints a table and writes the result.
///
/// # Errors
/// When something cannot be reached, or an answer was wrong.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let circumstances = Circumstances::now();
    let result = block_on(async { soak(&args.plan()).await })?;
    print!("{}", result.table());
    args.results.write("soak", &circumstances, &result)?;
    result.check()
}

impl Args {
    fn plan(&self) -> Plan {
        Plan {
            admin: self.installation.admin.clone(),
            user: self.installation.user.clone(),
            password: self.installation.password.clone(),
            gateway: self.installation.gateway.clone(),
            pid: self.pid,
            time: Duration::from_secs(self.seconds),
            small: self.small,
            transfers: self.transfers,
            transfer_bytes: self.transfer_mib * 1024 * 1024,
            events: self.events,
            sockets: self.sockets,
            slow: self.slow,
            vanishing: self.vanishing,
            rude: self.rude,
        }
    }
}
