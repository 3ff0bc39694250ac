//! Arguments that several commands have.

use std::path::PathBuf;

use serde::Serialize;

use crate::process::Cores;
use crate::report::{self, Circumstances};
use crate::rule_table::Setting;
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

/// Which cores are whose.
#[derive(Debug, clap::Args)]
pub(super) struct CoreArgs {
    /// Cores of the gateway and of other proxies, as taskset takes them.
    #[arg(long, default_value = "0")]
    proxy_cores: String,
    /// Cores of everything else, such as load generator, upstream and admin, as taskset takes them.
    #[arg(long, default_value = "1")]
    other_cores: String,
}

/// How rules are put in place.
#[derive(Debug, clap::Args)]
pub(super) struct Setup {
    /// Connections to the admin while the rules are put in place.
    #[arg(long, default_value_t = 4)]
    pub(super) setup_connections: u32,
}

/// What a measurement of many rules runs on.
#[derive(Debug, clap::Args)]
pub(super) struct SettingArgs {
    #[command(flatten)]
    cores: CoreArgs,
    #[command(flatten)]
    setup: Setup,
    #[command(flatten)]
    binaries: Binaries,
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

impl CoreArgs {
    /// The cores of the proxies, and those of everything else.
    pub(super) fn split(self) -> (Cores, Cores) {
        (Cores(self.proxy_cores), Cores(self.other_cores))
    }
}

impl SettingArgs {
    /// The programs and where they run.
    ///
    /// # Errors
    /// As [`Binaries::folder`].
    pub(super) fn setting(self) -> anyhow::Result<Setting> {
        let (proxy_cores, other_cores) = self.cores.split();
        let setup_connections = self.setup.setup_connections;
        Ok(Setting {
            binaries: self.binaries.folder()?,
            proxy_cores,
            other_cores,
            setup_connections,
        })
    }
}
