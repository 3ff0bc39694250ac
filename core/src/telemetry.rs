//! Logging of both binaries, and what watches the requests of a gateway: access log and metrics.
//!
//! Lines on standard error; what is logged, `logging.level.*` says, overridden by the variable
//! `LONGMEN_LOG` in the syntax of `tracing`'s filters. Rules: a message readable alone and fields to
//! query, an error once and where it is handled, nothing secret, no bodies, nothing at `info` per
//! request, and at `warn` and above nothing that clients or upstreams can bring about without bound
//! ([`Throttle`]).

pub mod access_log;
mod libraries;
pub mod metrics;
mod observer;
mod throttle;

use std::io::IsTerminal;

use tracing::error;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

pub use observer::Observer;
pub use throttle::{LeftOut, PAUSE, Throttle};

use crate::config::logging::{Format, LoggingConfig};
use libraries::LibraryLines;

/// Installs the subscriber of the process, and a limit to what panics write. Called once, first thing after the configuration.
///
/// # Errors
/// A filter in `LONGMEN_LOG` that cannot be read, or a subscriber that is installed already.
pub fn init(config: &LoggingConfig) -> Result<(), String> {
    let (name, text) = match std::env::var("LONGMEN_LOG") {
        Ok(text) => ("LONGMEN_LOG", text),
        Err(_) => ("logging.level", config.filter()),
    };
    let filter = EnvFilter::try_new(&text)
        .map_err(|error| format!("{name}: {text:?} is not a log filter: {error}"))?;
    let colours = std::io::stderr().is_terminal();
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(colours)
        .with_writer(std::io::stderr);
    let installed = match config.format {
        Format::Json => builder.json().finish().with(LibraryLines::default()).try_init(),
        Format::Text => {
            builder.with_target(false).finish().with(LibraryLines::default()).try_init()
        }
    };
    installed.map_err(|error| format!("logging: {error}"))?;
    limit_panics();
    Ok(())
}

/// What the standard library writes of a panic is bounded too: a request that panics may come again.
fn limit_panics() {
    let write = std::panic::take_hook();
    let lines = Throttle::default();
    std::panic::set_hook(Box::new(move |panic| {
        let Some(left_out) = lines.pass() else { return };
        write(panic);
        if left_out != LeftOut(0) {
            error!("panicked{left_out}");
        }
    }));
}
