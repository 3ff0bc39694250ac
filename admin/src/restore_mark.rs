//! Marking a database as brought back from a backup.

use anyhow::{Context as _, bail};
use longmen_db::{Location, Store, renew_epoch};

use crate::config::AdminConfig;
use crate::first_start::{location, options};

/// Begins a new epoch in the configured store, so that every gateway gets everything: versions that
/// gateways have of what is lost would else pass for those that the database gives out anew.
///
/// Admins that run on the same PostgreSQL database notice at once. Of a SQLite file there can be none:
/// call this before the admin is started. The schema stays as it is.
///
/// Out: the store in words.
///
/// # Errors
/// There is no such store, it was never prepared by an admin, or an admin has the SQLite file.
pub async fn restore_mark(config: &AdminConfig) -> anyhow::Result<String> {
    let location = location(config)?;
    let place = location.describe();
    // Opening it would make one.
    if let Location::Sqlite(path) = &location
        && !path.exists()
    {
        bail!(
            "{place} is not there, expected the one that was brought back (shenyu.database.path)"
        );
    }
    let opened = Store::open(&location, options(config)).await;
    let store = opened.with_context(|| format!("open the {place}"))?;
    let renewed = renew_epoch(&store).await;
    store.close().await;
    renewed.with_context(|| format!("mark the {place} as brought back"))?;
    Ok(place)
}
