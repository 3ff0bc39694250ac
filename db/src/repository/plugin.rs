//! Plugin templates: the catalogue.

mod write;

use std::collections::HashMap;

use super::CountRow;
use crate::page::{Like, Page, PageRequest};
use crate::statement::{fetch_all, fetch_all_in, fetch_one, fetch_optional};
use crate::tx::{Tx, UnitOfWork};
use crate::{Result, dialect};

pub use write::{NewPlugin, delete, insert, set_enabled, update};

/// A stored template.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct PluginRow {
    /// Id of the template.
    pub id: String,
    /// Name of the plugin.
    pub name: String,
    /// Settings that a link starts with, JSON text.
    pub config: Option<String>,
    /// Category.
    pub role: String,
    /// Place in the chain that a link starts with.
    pub sort: Option<i32>,
    /// Whether a link starts enabled.
    pub enabled: bool,
    /// Base64 of an uploaded jar.
    pub plugin_jar: Option<String>,
    /// When it was created, in milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
    /// When it was last written, in milliseconds since 1970-01-01 UTC.
    pub updated_ms: i64,
}

#[derive(sqlx::FromRow)]
struct JarRow {
    id: String,
    plugin_jar: String,
}

/// An enabled plugin with what it holds.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct ActiveRow {
    /// Id of the template.
    pub id: String,
    /// Name of the plugin.
    pub name: String,
    /// Settings, JSON text.
    pub config: Option<String>,
    /// Category.
    pub role: String,
    /// Its form fields.
    pub handle_count: i64,
    /// Its selectors.
    pub selector_count: i64,
}

/// Which templates a list holds; what is `None` does not narrow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PluginFilter {
    /// Text in the name.
    pub name: Option<Like>,
    /// Whether they are enabled.
    pub enabled: Option<bool>,
    /// Text in the category.
    pub role: Option<Like>,
    /// Text in the name or the category.
    pub keyword: Option<Like>,
}

macro_rules! select {
    ($($rest:expr),*) => {
        concat!(
            "SELECT id, name, config, role, sort, enabled, plugin_jar, created_ms, updated_ms
             FROM plugin ",
            $($rest),*
        )
    };
}

/// The condition of [`PluginFilter`]; its values are bound in the order of the members.
macro_rules! filter {
    () => {
        " WHERE (CAST($1 AS TEXT) IS NULL OR LOWER(name) LIKE $1 ESCAPE '\\')
            AND (CAST($2 AS BOOLEAN) IS NULL OR enabled = $2)
            AND (CAST($3 AS TEXT) IS NULL OR LOWER(role) LIKE $3 ESCAPE '\\')
            AND (CAST($4 AS TEXT) IS NULL OR LOWER(name) LIKE $4 ESCAPE '\\'
                 OR LOWER(role) LIKE $4 ESCAPE '\\')"
    };
}

/// One page of templates, by sort, then id.
///
/// # Errors
/// The database's.
pub async fn page(
    tx: &mut Tx,
    filter: &PluginFilter,
    request: PageRequest,
) -> Result<Page<PluginRow>> {
    let total = fetch_one!(
        tx,
        CountRow,
        concat!("SELECT COUNT(*) AS n FROM plugin", filter!()),
        filter.name.as_ref().map(Like::as_str),
        filter.enabled,
        filter.role.as_ref().map(Like::as_str),
        filter.keyword.as_ref().map(Like::as_str),
    )?
    .n;
    let rows = fetch_all!(
        tx,
        PluginRow,
        select!(filter!(), " ORDER BY COALESCE(sort, 0), id LIMIT $5 OFFSET $6"),
        filter.name.as_ref().map(Like::as_str),
        filter.enabled,
        filter.role.as_ref().map(Like::as_str),
        filter.keyword.as_ref().map(Like::as_str),
        request.size(),
        request.offset(),
    )?;
    Ok(Page { request, rows, total })
}

/// All templates, by sort, then id.
///
/// # Errors
/// The database's.
pub async fn all(tx: &mut Tx) -> Result<Vec<PluginRow>> {
    fetch_all!(tx, PluginRow, select!("ORDER BY COALESCE(sort, 0), id"))
}

/// The templates that are linked to a namespace, with the templates' own settings, by sort, then id.
///
/// # Errors
/// The database's.
pub async fn of_namespace(tx: &mut Tx, namespace_id: &str) -> Result<Vec<PluginRow>> {
    fetch_all!(
        tx,
        PluginRow,
        select!(
            "WHERE id IN (SELECT plugin_id FROM namespace_plugin_rel WHERE namespace_id = $1)
             ORDER BY COALESCE(sort, 0), id"
        ),
        namespace_id,
    )
}

/// One template.
///
/// # Errors
/// The database's.
pub async fn find(tx: &mut Tx, id: &str) -> Result<Option<PluginRow>> {
    fetch_optional!(tx, PluginRow, select!("WHERE id = $1"), id)
}

/// The template of a plugin.
///
/// # Errors
/// The database's.
pub async fn find_by_name(tx: &mut Tx, name: &str) -> Result<Option<PluginRow>> {
    fetch_optional!(tx, PluginRow, select!("WHERE name = $1"), name)
}

/// Those of the templates that exist, by id.
///
/// # Errors
/// The database's.
pub async fn find_many<S: AsRef<str>>(tx: &mut Tx, ids: &[S]) -> Result<Vec<PluginRow>> {
    Ok(fetch_all_in!(tx, PluginRow, select!("WHERE id IN ({ids}) ORDER BY id"), ids))
}

/// As [`find_many`], and holds the templates until the end of the transaction.
///
/// # Errors
/// The database's.
pub async fn find_many_for_update<S: AsRef<str>>(
    uow: &mut UnitOfWork,
    ids: &[S],
) -> Result<Vec<PluginRow>> {
    dialect::hold_rows(uow, "plugin", ids).await?;
    find_many(uow, ids).await
}

/// The jars (Base64) of those of the templates that have one, by id of the template.
///
/// # Errors
/// The database's.
pub async fn jars<S: AsRef<str>>(tx: &mut Tx, ids: &[S]) -> Result<HashMap<String, String>> {
    let rows = fetch_all_in!(
        tx,
        JarRow,
        "SELECT id, plugin_jar FROM plugin
         WHERE plugin_jar IS NOT NULL AND plugin_jar <> '' AND id IN ({ids})",
        ids,
    );
    Ok(rows.into_iter().map(|row| (row.id, row.plugin_jar)).collect())
}

/// The enabled templates with what they hold in all namespaces, by sort, then id.
///
/// # Errors
/// The database's.
pub async fn active(tx: &mut Tx) -> Result<Vec<ActiveRow>> {
    fetch_all!(
        tx,
        ActiveRow,
        "SELECT p.id, p.name, p.config, p.role,
                (SELECT COUNT(*) FROM plugin_handle h WHERE h.plugin_id = p.id) AS handle_count,
                (SELECT COUNT(*) FROM selector s WHERE s.plugin_id = p.id) AS selector_count
         FROM plugin p WHERE p.enabled = TRUE ORDER BY COALESCE(p.sort, 0), p.id",
    )
}
