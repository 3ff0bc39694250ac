//! The admin's binary: configuration, logging, start, and a graceful stop.

use std::{path::Path, process::ExitCode};

use longmen_admin::{Admin, RunningAdmin, config::AdminConfig};
use longmen_core::{
    config::{Loaded, NoticeLevel, ProcessEnvironment, Program},
    telemetry,
};

/// The configuration file that is read where none is named.
const DEFAULT_FILE: &str = "application.yml";

const PROGRAM: Program = Program {
    name: env!("CARGO_PKG_NAME"),
    about: "the admin: REST API and sync for gateways",
    version: env!("CARGO_PKG_VERSION"),
    first: &[
        ("server.port", "REST, sync and the API viewer, 9095"),
        ("spring.datasource.url", "postgres://user:password@host/database; also DATABASE_URL"),
        ("shenyu.database.path", "the SQLite file where no database is named, .data/longmen.db"),
        ("shenyu.admin.password", "the first password of user admin; made and printed otherwise"),
        ("logging.level.root", "info"),
    ],
};

#[tokio::main]
async fn main() -> ExitCode {
    // Before any TLS configuration is made; fails only if one is installed already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(text) = PROGRAM.answer(&arguments) {
        println!("{text}");
        return ExitCode::SUCCESS;
    }
    let loaded = match AdminConfig::load(&arguments, &ProcessEnvironment, Path::new(DEFAULT_FILE)) {
        Ok(loaded) => loaded,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(longmen_core::config::EXIT_CONFIG);
        }
    };
    match run(loaded).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("longmen-admin: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Serves until a signal. Says whether the stop went well.
async fn run(loaded: Loaded<AdminConfig>) -> anyhow::Result<bool> {
    let Loaded { config, notices } = loaded;
    telemetry::init(&config.logging).map_err(anyhow::Error::msg)?;
    for notice in &notices {
        match notice.level {
            NoticeLevel::Warn => tracing::warn!("{}", notice.text),
            NoticeLevel::Info => tracing::info!("{}", notice.text),
        }
    }
    let admin = Admin::builder(config).start().await?;
    show_password(&admin);
    admin.state().life().until_signal().await?;
    Ok(admin.stop().await)
}

/// A generated password is shown once, here, and stays in its file.
fn show_password(admin: &RunningAdmin) {
    if let Some(generated) = &admin.generated_password {
        println!("user:     admin");
        println!("password: {} (also in {})", generated.password, generated.file.display());
    }
}
