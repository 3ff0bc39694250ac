//! Changing the catalogue.

use super::PluginRow;
use crate::statement::{execute, execute_in};
use crate::tx::UnitOfWork;
use crate::{Result, dialect};

/// A template to store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewPlugin {
    /// Name of the plugin.
    pub name: String,
    /// Settings that a link starts with, JSON text.
    pub config: Option<String>,
    /// Category.
    pub role: String,
    /// Place in the chain that a link starts with.
    pub sort: i32,
    /// Whether a link starts enabled.
    pub enabled: bool,
    /// Base64 of an uploaded jar; an update without one keeps what is there.
    pub plugin_jar: Option<String>,
}

/// Stores a new template. Out: the row.
///
/// # Errors
/// The database's; [`Error::Unique`](crate::Error::Unique) for a name that is taken.
pub async fn insert(uow: &mut UnitOfWork, new: &NewPlugin) -> Result<PluginRow> {
    let now_ms = uow.now_ms();
    let row = PluginRow {
        id: uow.next_id()?,
        name: new.name.clone(),
        config: new.config.clone(),
        role: new.role.clone(),
        sort: Some(new.sort),
        enabled: new.enabled,
        plugin_jar: new.plugin_jar.clone(),
        created_ms: now_ms,
        updated_ms: now_ms,
    };
    execute!(
        uow,
        "INSERT INTO plugin (id, name, config, role, sort, enabled, plugin_jar, created_ms,
             updated_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)",
        row.id.as_str(),
        row.name.as_str(),
        row.config.as_deref(),
        row.role.as_str(),
        row.sort,
        row.enabled,
        row.plugin_jar.as_deref(),
        now_ms,
    )?;
    Ok(row)
}

/// Replaces a template's members. Namespaces it is linked to keep theirs. Out: 0 when there is none.
///
/// # Errors
/// The database's; [`Error::Unique`](crate::Error::Unique) for a name that is taken.
pub async fn update(uow: &mut UnitOfWork, id: &str, new: &NewPlugin) -> Result<u64> {
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "UPDATE plugin SET name = $1, config = $2, role = $3, sort = $4, enabled = $5,
             plugin_jar = COALESCE(CAST($6 AS TEXT), plugin_jar), updated_ms = $7
         WHERE id = $8",
        new.name.as_str(),
        new.config.as_deref(),
        new.role.as_str(),
        new.sort,
        new.enabled,
        new.plugin_jar.as_deref(),
        now_ms,
        id,
    )
}

/// Switches templates on or off. Out: how many there were.
///
/// # Errors
/// The database's.
pub async fn set_enabled<S: AsRef<str>>(
    uow: &mut UnitOfWork,
    ids: &[S],
    enabled: bool,
) -> Result<u64> {
    dialect::hold_rows(uow, "plugin", ids).await?;
    let now_ms = uow.now_ms();
    Ok(execute_in!(
        uow,
        "UPDATE plugin SET enabled = $1, updated_ms = $2 WHERE id IN ({ids})",
        ids,
        enabled,
        now_ms,
    ))
}

/// Deletes templates with their form fields. Out: how many there were.
///
/// # Errors
/// The database's; [`Error::Reference`](crate::Error::Reference) while one is linked.
pub async fn delete<S: AsRef<str>>(uow: &mut UnitOfWork, ids: &[S]) -> Result<u64> {
    dialect::hold_rows(uow, "plugin", ids).await?;
    Ok(execute_in!(uow, "DELETE FROM plugin WHERE id IN ({ids})", ids))
}
