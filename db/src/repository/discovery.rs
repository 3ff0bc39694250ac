//! Discoveries: where upstreams come from.

use super::CountRow;
use crate::Result;
use crate::statement::{execute, fetch_one, fetch_optional};
use crate::tx::{Tx, UnitOfWork};

/// A stored discovery.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct DiscoveryRow {
    /// Id of the row.
    pub id: String,
    /// Its name.
    pub discovery_name: String,
    /// `"0"` for one selector, `"1"` for a plugin, `"2"` for all.
    pub discovery_level: String,
    /// Name of the plugin.
    pub plugin_name: Option<String>,
    /// Its namespace.
    pub namespace_id: String,
    /// `local`, `zookeeper`, `nacos`, `etcd` or `eureka`.
    pub discovery_type: String,
    /// Addresses of the registry.
    pub server_list: Option<String>,
    /// Settings, JSON text.
    pub props: Option<String>,
    /// When it was created, in milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
    /// When it was last written, in milliseconds since 1970-01-01 UTC.
    pub updated_ms: i64,
}

/// A discovery to store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewDiscovery {
    /// Its name.
    pub discovery_name: String,
    /// See [`DiscoveryRow::discovery_level`].
    pub discovery_level: String,
    /// Name of the plugin.
    pub plugin_name: String,
    /// Its namespace.
    pub namespace_id: String,
    /// See [`DiscoveryRow::discovery_type`].
    pub discovery_type: String,
    /// Addresses of the registry.
    pub server_list: String,
    /// Settings, JSON text.
    pub props: Option<String>,
}

macro_rules! select {
    ($rest:expr) => {
        concat!(
            "SELECT id, discovery_name, discovery_level, plugin_name, namespace_id, discovery_type,
                    server_list, props, created_ms, updated_ms
             FROM discovery ",
            $rest
        )
    };
}

/// One discovery.
///
/// # Errors
/// The database's.
pub async fn find(tx: &mut Tx, id: &str) -> Result<Option<DiscoveryRow>> {
    fetch_optional!(tx, DiscoveryRow, select!("WHERE id = $1"), id)
}

/// The first discovery of a plugin on a level, by id.
///
/// # Errors
/// The database's.
pub async fn find_by_level(
    tx: &mut Tx,
    namespace_id: &str,
    plugin_name: &str,
    level: &str,
) -> Result<Option<DiscoveryRow>> {
    fetch_optional!(
        tx,
        DiscoveryRow,
        select!(
            "WHERE namespace_id = $1 AND plugin_name = $2 AND discovery_level = $3
             ORDER BY id LIMIT 1"
        ),
        namespace_id,
        plugin_name,
        level,
    )
}

/// How many selectors and raw ports use a discovery.
///
/// # Errors
/// The database's.
pub async fn handlers(tx: &mut Tx, id: &str) -> Result<u64> {
    let row = fetch_one!(
        tx,
        CountRow,
        "SELECT COUNT(*) AS n FROM discovery_handler WHERE discovery_id = $1",
        id,
    )?;
    Ok(u64::try_from(row.n).unwrap_or(0))
}

/// Stores a new discovery. Out: the row.
///
/// # Errors
/// The database's; [`Error::Reference`](crate::Error::Reference) for an unknown namespace.
pub async fn insert(uow: &mut UnitOfWork, new: &NewDiscovery) -> Result<DiscoveryRow> {
    let now_ms = uow.now_ms();
    let row = DiscoveryRow {
        id: uow.next_id()?,
        discovery_name: new.discovery_name.clone(),
        discovery_level: new.discovery_level.clone(),
        plugin_name: Some(new.plugin_name.clone()),
        namespace_id: new.namespace_id.clone(),
        discovery_type: new.discovery_type.clone(),
        server_list: Some(new.server_list.clone()),
        props: new.props.clone(),
        created_ms: now_ms,
        updated_ms: now_ms,
    };
    execute!(
        uow,
        "INSERT INTO discovery (id, discovery_name, discovery_level, plugin_name, namespace_id,
             discovery_type, server_list, props, created_ms, updated_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)",
        row.id.as_str(),
        row.discovery_name.as_str(),
        row.discovery_level.as_str(),
        row.plugin_name.as_deref(),
        row.namespace_id.as_str(),
        row.discovery_type.as_str(),
        row.server_list.as_deref(),
        row.props.as_deref(),
        now_ms,
    )?;
    Ok(row)
}

/// Replaces the settings of a discovery; its namespace stays. Out: 0 when there is none.
///
/// # Errors
/// The database's.
pub async fn update(uow: &mut UnitOfWork, id: &str, new: &NewDiscovery) -> Result<u64> {
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "UPDATE discovery SET discovery_name = $1, discovery_level = $2, plugin_name = $3,
             discovery_type = $4, server_list = $5, props = $6, updated_ms = $7
         WHERE id = $8",
        new.discovery_name.as_str(),
        new.discovery_level.as_str(),
        new.plugin_name.as_str(),
        new.discovery_type.as_str(),
        new.server_list.as_str(),
        new.props.as_deref(),
        now_ms,
        id,
    )
}

/// Deletes a discovery. Out: 0 when there is none.
///
/// # Errors
/// The database's; [`Error::Reference`](crate::Error::Reference) while something uses it.
pub async fn delete(uow: &mut UnitOfWork, id: &str) -> Result<u64> {
    execute!(uow, "DELETE FROM discovery WHERE id = $1", id)
}
