//! The admin's binary: configuration, logging, start, and a graceful stop.

mod command;

use std::{path::Path, process::ExitCode};

use command::{Command, PROGRAM};
use longmen_admin::{Admin, RunningAdmin, config::AdminConfig, restore_mark};
use longmen_core::{
    config::{Loaded, NoticeLevel, ProcessEnvironment},
    telemetry,
};

/// The configuration file that is read where none is named.
const DEFAULT_FILE: &str = "application.yml";

#[tokio::main]
async fn main() -> ExitCode {
    // Before any TLS configuration is made; fails only if one is installed already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(text) = PROGRAM.answer(&arguments) {
        println!("{text}");
        return ExitCode::SUCCESS;
    }
    let command = Command::take(&mut arguments);
    let loaded = AdminConfig::load(&arguments, &ProcessEnvironment, Path::new(DEFAULT_FILE));
    let done = match (command, loaded) {
        (Err(text), _) => return refused(text),
        (_, Err(error)) => return refused(error),
        (Ok(Command::Serve), Ok(loaded)) => Box::pin(run(loaded)).await,
        (Ok(Command::RestoreMark), Ok(loaded)) => mark(&loaded.config).await,
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("longmen-admin: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Says what is wrong with the call or the configuration.
fn refused(why: impl std::fmt::Display) -> ExitCode {
    eprintln!("{why}");
    ExitCode::from(longmen_core::config::EXIT_CONFIG)
}

/// Marks the store as brought back from a backup.
async fn mark(config: &AdminConfig) -> anyhow::Result<bool> {
    // A wait for the database is told there.
    telemetry::init(&config.logging).map_err(anyhow::Error::msg)?;
    let place = restore_mark(config).await?;
    println!("{place}: versions count anew, every gateway gets everything when it next connects");
    Ok(true)
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
