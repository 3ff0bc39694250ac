//! `longmen-bench soak`: mixed traffic for a long time, every answer checked.

use std::path::PathBuf;
use std::time::Duration;

use super::block_on;
use crate::report::{self, Circumstances};
use crate::soak::{Plan, soak};

/// Arguments of `longmen-bench soak`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The admin, http://host:port.
    #[arg(long, default_value = "http://127.0.0.1:9095")]
    admin: String,
    /// The user to log in as.
    #[arg(long, default_value = "admin")]
    user: String,
    /// The user's password.
    #[arg(long, env = "LONGMEN_PASSWORD", hide_env_values = true)]
    password: String,
    /// The gateway, http://host:port.
    #[arg(long, default_value = "http://127.0.0.1:9195")]
    gateway: String,
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
    /// Folder the result is written into.
    #[arg(long, default_value = "benchmark/results")]
    out: PathBuf,
}

/// Runs the soak, prints a table and writes the result.
///
/// # Errors
/// When something cannot be reached, or an answer was wrong.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let circumstances = Circumstances::now();
    let result = block_on(async { soak(&args.plan()).await })?;
    print!("{}", result.table());
    let path = report::write(&args.out, "soak", &circumstances, &result)?;
    println!("written to {}", path.display());
    result.check()
}

impl Args {
    fn plan(&self) -> Plan {
        Plan {
            admin: self.admin.clone(),
            user: self.user.clone(),
            password: self.password.clone(),
            gateway: self.gateway.clone(),
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
