//! One module per command of `longmen-bench`: its arguments, and what it does.

pub mod admins;
pub mod chaos;
pub mod easegress;
pub mod edits;
pub mod failing;
pub mod first_look;
pub mod idle_close;
pub mod interop;
pub mod load;
pub mod odd;
pub mod origin;
pub mod restarts;
pub mod rules;
mod shared;
pub mod soak;
pub mod watch;

use std::future::Future;

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};

/// Runs a command's future on a runtime of one thread.
fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the runtime")?
        .block_on(future)
}

/// Waits for Ctrl-C or SIGTERM.
async fn interrupted() -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt()).context("listen for SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}
