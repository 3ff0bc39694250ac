//! Arguments that several commands have.

use std::path::PathBuf;

use serde::Serialize;

use crate::report::{self, Circumstances};
use crate::stage::own_folder;

/// Where a result goes.
#[derive(Debug, clap::Args)]
pub(super) struct Results {
    /// Folder the result is written into.
    #[arg(long, default_value = "benchmark/results")]
    out: PathBuf,
}

/// An admin and a gateway that run already.
#[derive(Debug, clap::Args)]
pub(super) struct Installation {
    /// The admin, http://host:port.
    #[arg(long, default_value = "http://127.0.0.1:9095")]
    pub(super) admin: String,
    /// The user to log in as.
    #[arg(long, default_value = "admin")]
    pub(super) user: String,
    /// The user's password.
    #[arg(long, env = "LONGMEN_PASSWORD", hide_env_values = true)]
    pub(super) password: String,
    /// The gateway, http://host:port.
    #[arg(long, default_value = "http://127.0.0.1:9195")]
    pub(super) gateway: String,
}

/// Where the programs are that a command starts.
#[derive(Debug, clap::Args)]
pub(super) struct Binaries {
    /// Folder of the binaries; the one this program is in when absent.
    #[arg(long)]
    binaries: Option<PathBuf>,
}

impl Results {
    /// Writes a result and says where.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn write<T: Serialize>(
        &self,
        name: &str,
        circumstances: &Circumstances,
        result: &T,
    ) -> anyhow::Result<()> {
        let path = report::write(&self.out, name, circumstances, result)?;
        println!("written to {}", path.display());
        Ok(())
    }
}

impl Binaries {
    /// The folder.
    ///
    /// # Errors
    /// When none was given, and the system does not tell where this program is.
    pub(super) fn folder(self) -> anyhow::Result<PathBuf> {
        self.binaries.map_or_else(own_folder, Ok)
    }
}
