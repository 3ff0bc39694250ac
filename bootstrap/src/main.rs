//! The gateway's binary: arguments, logging, configuration, run.

use std::path::Path;
use std::process::ExitCode;

use longmen_bootstrap::Gateway;
use longmen_bootstrap::config::GatewayConfig;
use longmen_core::config::ProcessEnvironment;
use longmen_core::telemetry;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let loaded = GatewayConfig::load(&arguments, &ProcessEnvironment, Path::new("application.yml"));
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(64);
        }
    };
    if let Err(error) = telemetry::init(&loaded.config.logging) {
        eprintln!("{error}");
        return ExitCode::from(64);
    }
    loaded.log_notices();
    let running = match Gateway::builder(loaded.config).start() {
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
