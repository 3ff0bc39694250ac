//! Logging of both binaries, and what watches the requests of a gateway: access log and metrics.
//!
//! Lines on standard error; what is logged, `logging.level.*` says, overridden by the variable
//! `LONGMEN_LOG` in the syntax of `tracing`'s filters. Rules: a message readable alone and fields to
//! query, an error once and where it is handled, nothing secret, no bodies, nothing at `info` per
//! request.

pub mod access_log;
pub mod metrics;
mod observer;

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

pub use observer::Observer;

use crate::config::logging::{Format, LoggingConfig};

/// Installs the subscriber of the process. Called once, first thing after the configuration.
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
        Format::Json => builder.json().finish().try_init(),
        Format::Text => builder.with_target(false).finish().try_init(),
    };
    installed.map_err(|error| format!("logging: {error}"))
}
