//! Opening the store, and what happens only at the very first start.

use std::{
    fmt, fs,
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use longmen_db::{Location, SeedOptions, Store, StoreOptions};
use rand::{Rng as _, distr::Alphanumeric};

use crate::{auth::Passwords, config::AdminConfig};

/// File in the data directory that holds a generated password.
const PASSWORD_FILE: &str = "admin-password";

/// Database file in the data directory, unless another store is configured.
const DATABASE_FILE: &str = "longmen.db";

/// Characters of a generated password: about 119 bits.
const PASSWORD_LENGTH: usize = 20;

/// A password that a first start made.
#[derive(Clone, PartialEq, Eq)]
pub struct GeneratedPassword {
    /// The password of `admin`.
    pub password: String,
    /// The file it was written to, readable by its owner alone.
    pub file: PathBuf,
}

impl fmt::Debug for GeneratedPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GeneratedPassword").field("file", &self.file).finish_non_exhaustive()
    }
}

/// Opens the configured store and brings its schema up to date.
pub(crate) async fn open_store(config: &AdminConfig) -> anyhow::Result<Store> {
    let location = match &config.database {
        Some(address) => Location::parse(address)?,
        None => Location::Sqlite(config.data_dir.join(DATABASE_FILE)),
    };
    let options = StoreOptions { time_zone: config.time_zone.clone(), ..StoreOptions::default() };
    let store = Store::open(&location, options)
        .await
        .with_context(|| format!("open the {}", location.describe()))?;
    store.migrate().await.with_context(|| format!("prepare the {}", location.describe()))?;
    tracing::info!(
        store = location.describe(),
        time_zone = config.time_zone.iana_name().unwrap_or("fixed offset"),
        "store is open"
    );
    Ok(store)
}

/// Fills a new store. Returns the password of `admin` if it had to be made.
pub(crate) async fn seed(
    store: &Store,
    config: &AdminConfig,
) -> anyhow::Result<Option<GeneratedPassword>> {
    if store.is_seeded().await? {
        return Ok(None);
    }
    let generated = match config.initial_password {
        Some(_) => None,
        None => Some(generate(&config.data_dir)?),
    };
    let password = generated
        .as_ref()
        .map(|generated| generated.password.clone())
        .or_else(|| config.initial_password.clone())
        .unwrap_or_default();
    let admin_password_hash = Passwords::default()
        .hash(password)
        .await
        .map_err(|error| anyhow::anyhow!("hash the first password: {error}"))?;
    let seeded =
        store.seed(&SeedOptions { admin_password_hash }).await.context("fill the store")?;
    if seeded {
        return Ok(generated);
    }
    // Another admin on the same database was faster: its password counts.
    if let Some(generated) = generated {
        fs::remove_file(&generated.file)
            .with_context(|| format!("remove {}", generated.file.display()))?;
    }
    Ok(None)
}

/// Makes a password and writes it down, before it is in force: it must not get lost.
fn generate(data_dir: &Path) -> anyhow::Result<GeneratedPassword> {
    let password: String =
        rand::rng().sample_iter(Alphanumeric).take(PASSWORD_LENGTH).map(char::from).collect();
    let file = data_dir.join(PASSWORD_FILE);
    let written = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&file)
        .and_then(|mut file| {
            use std::os::unix::fs::PermissionsExt as _;
            // The mode above counts for a new file only.
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
            file.write_all(format!("{password}\n").as_bytes())?;
            file.sync_all()
        });
    written.with_context(|| format!("write the first password to {}", file.display()))?;
    Ok(GeneratedPassword { password, file })
}
