//! Plugin handles: the form fields of plugins.

use super::CountRow;
use crate::page::{Like, Page, PageRequest};
use crate::statement::{execute, execute_in, fetch_all, fetch_all_in, fetch_one, fetch_optional};
use crate::tx::{Tx, UnitOfWork};
use crate::{Result, dialect};

/// A stored form field.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct PluginHandleRow {
    /// Id of the row.
    pub id: String,
    /// The plugin.
    pub plugin_id: String,
    /// Its name in the handle.
    pub field: String,
    /// Its caption.
    pub label: Option<String>,
    /// 1 number, 2 text, 3 choice.
    pub data_type: i32,
    /// 1 of selectors, 2 of rules, 3 of the plugin.
    #[sqlx(rename = "type")]
    pub handle_type: i32,
    /// Its place.
    pub sort: i32,
    /// Whether it is required, its default and the like; JSON text.
    pub ext_obj: Option<String>,
    /// When it was created, in milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
    /// When it was last written, in milliseconds since 1970-01-01 UTC.
    pub updated_ms: i64,
}

/// A form field to store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewPluginHandle {
    /// The plugin.
    pub plugin_id: String,
    /// Its name in the handle.
    pub field: String,
    /// Its caption.
    pub label: Option<String>,
    /// 1 number, 2 text, 3 choice.
    pub data_type: i32,
    /// 1 of selectors, 2 of rules, 3 of the plugin.
    pub handle_type: i32,
    /// Its place.
    pub sort: i32,
    /// Whether it is required, its default and the like; JSON text.
    pub ext_obj: Option<String>,
}

macro_rules! select {
    ($($rest:expr),*) => {
        concat!(
            "SELECT id, plugin_id, field, label, data_type, type, sort, ext_obj, created_ms,
                    updated_ms
             FROM plugin_handle ",
            $($rest),*
        )
    };
}

macro_rules! filter {
    () => {
        " WHERE (CAST($1 AS TEXT) IS NULL OR plugin_id = $1)
            AND (CAST($2 AS TEXT) IS NULL OR LOWER(field) LIKE $2 ESCAPE '\\')"
    };
}

/// One page, by plugin, sort and id; of one plugin, or all.
///
/// # Errors
/// The database's.
pub async fn page(
    tx: &mut Tx,
    plugin_id: Option<&str>,
    field: Option<&Like>,
    request: PageRequest,
) -> Result<Page<PluginHandleRow>> {
    let field = field.map(Like::as_str);
    let total = fetch_one!(
        tx,
        CountRow,
        concat!("SELECT COUNT(*) AS n FROM plugin_handle", filter!()),
        plugin_id,
        field,
    )?
    .n;
    let rows = fetch_all!(
        tx,
        PluginHandleRow,
        select!(filter!(), " ORDER BY plugin_id, sort, id LIMIT $3 OFFSET $4"),
        plugin_id,
        field,
        request.size(),
        request.offset(),
    )?;
    Ok(Page { request, rows, total })
}

/// The fields of one type of a plugin, by sort, then id.
///
/// # Errors
/// The database's.
pub async fn of_plugin(
    tx: &mut Tx,
    plugin_id: &str,
    handle_type: i32,
) -> Result<Vec<PluginHandleRow>> {
    fetch_all!(
        tx,
        PluginHandleRow,
        select!("WHERE plugin_id = $1 AND type = $2 ORDER BY sort, id"),
        plugin_id,
        handle_type,
    )
}

/// One field.
///
/// # Errors
/// The database's.
pub async fn find(tx: &mut Tx, id: &str) -> Result<Option<PluginHandleRow>> {
    fetch_optional!(tx, PluginHandleRow, select!("WHERE id = $1"), id)
}

/// Those of the fields that exist, by id, held until the end of the transaction.
///
/// # Errors
/// The database's.
pub async fn find_many_for_update<S: AsRef<str>>(
    uow: &mut UnitOfWork,
    ids: &[S],
) -> Result<Vec<PluginHandleRow>> {
    dialect::hold_rows(uow, "plugin_handle", ids).await?;
    Ok(fetch_all_in!(uow, PluginHandleRow, select!("WHERE id IN ({ids}) ORDER BY id"), ids))
}

/// Stores a new field. Out: its id.
///
/// # Errors
/// The database's; [`Error::Reference`](crate::Error::Reference) for an unknown plugin,
/// [`Error::Unique`](crate::Error::Unique) for a field that the plugin has already.
pub async fn insert(uow: &mut UnitOfWork, new: &NewPluginHandle) -> Result<String> {
    let id = uow.next_id()?;
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "INSERT INTO plugin_handle (id, plugin_id, field, label, data_type, type, sort, ext_obj,
             created_ms, updated_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)",
        id.as_str(),
        new.plugin_id.as_str(),
        new.field.as_str(),
        new.label.as_deref(),
        new.data_type,
        new.handle_type,
        new.sort,
        new.ext_obj.as_deref(),
        now_ms,
    )?;
    Ok(id)
}

/// Replaces a field. Out: 0 when there is none.
///
/// # Errors
/// As [`insert`].
pub async fn update(uow: &mut UnitOfWork, id: &str, new: &NewPluginHandle) -> Result<u64> {
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "UPDATE plugin_handle SET plugin_id = $1, field = $2, label = $3, data_type = $4,
             type = $5, sort = $6, ext_obj = $7, updated_ms = $8
         WHERE id = $9",
        new.plugin_id.as_str(),
        new.field.as_str(),
        new.label.as_deref(),
        new.data_type,
        new.handle_type,
        new.sort,
        new.ext_obj.as_deref(),
        now_ms,
        id,
    )
}

/// Deletes fields. Out: how many there were.
///
/// # Errors
/// The database's.
pub async fn delete<S: AsRef<str>>(uow: &mut UnitOfWork, ids: &[S]) -> Result<u64> {
    dialect::hold_rows(uow, "plugin_handle", ids).await?;
    Ok(execute_in!(uow, "DELETE FROM plugin_handle WHERE id IN ({ids})", ids))
}
