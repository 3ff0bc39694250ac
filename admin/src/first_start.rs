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

use crate::{
    auth::Passwords,
    config::{AdminConfig, StoreConfig},
};

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
    let location = location(config)?;
    if let Location::Sqlite(path) = &location {
        make_folder(path)?;
    }
    let store = Store::open(&location, options(config))
        .await
        .with_context(|| format!("open the {}", location.describe()))?;
    store.migrate().await.with_context(|| format!("prepare the {}", location.describe()))?;
    tracing::info!(
        store = location.describe(),
        time_zone = %config.time_zone,
        "store is open"
    );
    Ok(store)
}

/// Where the configured store is.
pub(crate) fn location(config: &AdminConfig) -> anyhow::Result<Location> {
    Ok(match &config.store {
        StoreConfig::Sqlite { path } => Location::Sqlite(path.clone()),
        StoreConfig::Postgres { url } => Location::parse(url.expose())?,
    })
}

/// How the configured store is opened.
pub(crate) fn options(config: &AdminConfig) -> StoreOptions {
    StoreOptions {
        time_zone: config.time_zone.time_zone(),
        max_connections: config.pool.max_connections,
        acquire_timeout: config.pool.acquire_timeout,
        ..StoreOptions::default()
    }
}

/// Fills a new store. Returns the password of `admin` if it had to be made.
pub(crate) async fn seed(
    store: &Store,
    config: &AdminConfig,
) -> anyhow::Result<Option<GeneratedPassword>> {
    if store.is_seeded().await? {
        return Ok(None);
    }
    let (password, generated) = match &config.security.admin_password {
        Some(configured) => (configured.expose().to_owned(), None),
        None => {
            let generated = generate(&config.security.admin_password_path)?;
            (generated.password.clone(), Some(generated))
        }
    };
    let admin_password_hash = Passwords::start()?
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
fn generate(file: &Path) -> anyhow::Result<GeneratedPassword> {
    let password: String =
        rand::rng().sample_iter(Alphanumeric).take(PASSWORD_LENGTH).map(char::from).collect();
    make_folder(file)?;
    let written = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(file)
        .and_then(|mut file| {
            use std::os::unix::fs::PermissionsExt as _;
            // The mode above counts for a new file only.
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
            file.write_all(format!("{password}\n").as_bytes())?;
            file.sync_all()
        });
    written.with_context(|| format!("write the first password to {}", file.display()))?;
    Ok(GeneratedPassword { password, file: file.to_owned() })
}

/// Makes the folder that `file` is to be in.
fn make_folder(file: &Path) -> anyhow::Result<()> {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => fs::create_dir_all(folder)
            .with_context(|| format!("make the folder {}", folder.display())),
        _ => Ok(()),
    }
}
