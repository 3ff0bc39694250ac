//! The gateway's binary: arguments, logging, configuration, run.

use std::path::Path;
use std::process::ExitCode;

use longmen_bootstrap::config::GatewayConfig;
use longmen_bootstrap::{Gateway, inherited_listeners};
use longmen_core::config::{EXIT_CONFIG, ProcessEnvironment, Program};
use longmen_core::telemetry;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const PROGRAM: Program = Program {
    name: env!("CARGO_PKG_NAME"),
    about: "the gateway",
    version: env!("CARGO_PKG_VERSION"),
    first: &[
        ("server.port", "where clients connect, 9195"),
        ("shenyu.sync.websocket.urls", "the admins, ws://localhost:9095/websocket"),
        ("shenyu.sync.token", "the admin's sync token, needed unless both are on one machine"),
        ("shenyu.namespace", "the id of the namespace to serve"),
        (
            "shenyu.compat",
            "shenyu: answers as ShenYu's; standard: HTTP statuses that say what happened",
        ),
        ("shenyu.management.port", "health and metrics, on loopback, 8090"),
        ("logging.level.root", "info"),
        ("takeover", "follows the gateway that serves the same address, and stops it"),
    ],
};

/// The argument with which a gateway follows the one that runs.
const TAKEOVER: &str = "--takeover";

fn main() -> ExitCode {
    // First of all: it changes the environment, which no thread may read meanwhile.
    let inherited = match inherited_listeners() {
        Ok(inherited) => inherited,
        Err(error) => {
            eprintln!("LISTEN_FDS: {error}");
            return ExitCode::from(EXIT_CONFIG);
        }
    };
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(text) = PROGRAM.answer(&arguments) {
        println!("{text}");
        return ExitCode::SUCCESS;
    }
    let takeover = arguments.iter().any(|argument| argument == TAKEOVER);
    arguments.retain(|argument| argument != TAKEOVER);
    let loaded = GatewayConfig::load(&arguments, &ProcessEnvironment, Path::new("application.yml"));
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(EXIT_CONFIG);
        }
    };
    if let Err(error) = telemetry::init(&loaded.config.logging) {
        eprintln!("{error}");
        return ExitCode::from(EXIT_CONFIG);
    }
    loaded.log_notices();
    let builder = Gateway::builder(loaded.config).inherited(inherited).takeover(takeover);
    let running = match builder.start() {
        Ok(running) => running,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    match running.run_until_signal() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
