//! Plugins of a namespace: the link from a namespace to a template, with its own settings.

use longmen_core::model::Plugin;

use super::plugin::ActiveRow;
use super::selector::{self, Removed};
use super::{CountRow, TextRow};
use crate::page::{Like, Page, PageRequest};
use crate::statement::{execute, execute_in, fetch_all, fetch_all_in, fetch_one, fetch_optional};
use crate::tx::{Tx, UnitOfWork};
use crate::{Result, dialect};

/// A stored link; name, role and jar are the template's.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct NamespacePluginRow {
    /// Id of the link.
    pub id: String,
    /// Its namespace.
    pub namespace_id: String,
    /// Id of the template.
    pub plugin_id: String,
    /// Name of the plugin.
    pub name: String,
    /// Category of the plugin.
    pub role: String,
    /// Settings, JSON text.
    pub config: Option<String>,
    /// Place in the chain.
    pub sort: Option<i32>,
    /// Whether it runs.
    pub enabled: bool,
    /// Base64 of an uploaded jar.
    pub plugin_jar: Option<String>,
    /// When it was created, in milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
    /// When it was last written, in milliseconds since 1970-01-01 UTC.
    pub updated_ms: i64,
}

impl NamespacePluginRow {
    /// What gateways get, without the jar: that can be megabytes, and the change log would hold it
    /// twice for every switch of the plugin. What is sent to stock gateways has it added, see
    /// [`plugin::jars`](super::plugin::jars).
    #[must_use]
    pub fn to_model(&self) -> Plugin {
        Plugin {
            config: self.config.clone(),
            role: Some(self.role.clone()),
            plugin_jar: None,
            id: self.plugin_id.clone(),
            name: self.name.clone(),
            enabled: self.enabled,
            sort: self.sort,
            namespace_id: Some(self.namespace_id.clone()),
        }
    }
}

/// Which plugins a list holds; what is `None` does not narrow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamespacePluginFilter {
    /// Their namespace.
    pub namespace_id: Option<String>,
    /// Text in the name.
    pub name: Option<Like>,
    /// Text that is not in the name.
    pub not_name: Option<Like>,
    /// Whether they are enabled.
    pub enabled: Option<bool>,
}

macro_rules! select {
    ($($rest:expr),*) => {
        concat!(
            "SELECT r.id, r.namespace_id, r.plugin_id, p.name, p.role, r.config, r.sort, r.enabled,
                    p.plugin_jar, r.created_ms, r.updated_ms
             FROM namespace_plugin_rel r JOIN plugin p ON p.id = r.plugin_id ",
            $($rest),*
        )
    };
}

/// The condition of [`NamespacePluginFilter`]; its values are bound in the order of the members.
macro_rules! filter {
    () => {
        " WHERE (CAST($1 AS TEXT) IS NULL OR r.namespace_id = $1)
            AND (CAST($2 AS TEXT) IS NULL OR LOWER(p.name) LIKE $2 ESCAPE '\\')
            AND (CAST($3 AS TEXT) IS NULL OR LOWER(p.name) NOT LIKE $3 ESCAPE '\\')
            AND (CAST($4 AS BOOLEAN) IS NULL OR r.enabled = $4)"
    };
}

/// One page, by sort, then id of the template.
///
/// # Errors
/// The database's.
pub async fn page(
    tx: &mut Tx,
    filter: &NamespacePluginFilter,
    request: PageRequest,
) -> Result<Page<NamespacePluginRow>> {
    let total = fetch_one!(
        tx,
        CountRow,
        concat!(
            "SELECT COUNT(*) AS n FROM namespace_plugin_rel r JOIN plugin p ON p.id = r.plugin_id",
            filter!()
        ),
        filter.namespace_id.as_deref(),
        filter.name.as_ref().map(Like::as_str),
        filter.not_name.as_ref().map(Like::as_str),
        filter.enabled,
    )?
    .n;
    let rows = fetch_all!(
        tx,
        NamespacePluginRow,
        select!(filter!(), " ORDER BY COALESCE(r.sort, 0), r.plugin_id, r.id LIMIT $5 OFFSET $6"),
        filter.namespace_id.as_deref(),
        filter.name.as_ref().map(Like::as_str),
        filter.not_name.as_ref().map(Like::as_str),
        filter.enabled,
        request.size(),
        request.offset(),
    )?;
    Ok(Page { request, rows, total })
}

/// All plugins of a namespace, by sort, then id of the template.
///
/// # Errors
/// The database's.
pub async fn of_namespace(tx: &mut Tx, namespace_id: &str) -> Result<Vec<NamespacePluginRow>> {
    fetch_all!(
        tx,
        NamespacePluginRow,
        select!("WHERE r.namespace_id = $1 ORDER BY COALESCE(r.sort, 0), r.plugin_id"),
        namespace_id,
    )
}

/// What gateways get of a namespace, by sort, then id.
///
/// # Errors
/// The database's.
pub async fn models_of_namespace(tx: &mut Tx, namespace_id: &str) -> Result<Vec<Plugin>> {
    let rows = of_namespace(tx, namespace_id).await?;
    let with_jar = |row: NamespacePluginRow| {
        let model = row.to_model();
        Plugin { plugin_jar: Some(row.plugin_jar.unwrap_or_default()), ..model }
    };
    Ok(rows.into_iter().map(with_jar).collect())
}

/// One link.
///
/// # Errors
/// The database's.
pub async fn find(tx: &mut Tx, id: &str) -> Result<Option<NamespacePluginRow>> {
    fetch_optional!(tx, NamespacePluginRow, select!("WHERE r.id = $1"), id)
}

/// The link of a template to a namespace.
///
/// # Errors
/// The database's.
pub async fn find_by_plugin(
    tx: &mut Tx,
    namespace_id: &str,
    plugin_id: &str,
) -> Result<Option<NamespacePluginRow>> {
    fetch_optional!(
        tx,
        NamespacePluginRow,
        select!("WHERE r.namespace_id = $1 AND r.plugin_id = $2"),
        namespace_id,
        plugin_id,
    )
}

/// Those of the links that exist, by id, held until the end of the transaction.
///
/// # Errors
/// The database's.
pub async fn find_many_for_update<S: AsRef<str>>(
    uow: &mut UnitOfWork,
    ids: &[S],
) -> Result<Vec<NamespacePluginRow>> {
    dialect::hold_rows(uow, "namespace_plugin_rel", ids).await?;
    Ok(fetch_all_in!(uow, NamespacePluginRow, select!("WHERE r.id IN ({ids}) ORDER BY r.id"), ids))
}

/// All links of a template, by id, held until the end of the transaction. Whoever holds the
/// template, too, keeps new ones out.
///
/// # Errors
/// The database's.
pub async fn of_plugin_for_update(
    uow: &mut UnitOfWork,
    plugin_id: &str,
) -> Result<Vec<NamespacePluginRow>> {
    let ids = fetch_all!(
        uow,
        TextRow,
        "SELECT id AS text FROM namespace_plugin_rel WHERE plugin_id = $1 ORDER BY id",
        plugin_id,
    )?;
    let ids: Vec<String> = ids.into_iter().map(|row| row.text).collect();
    find_many_for_update(uow, &ids).await
}

/// The ids of the links of templates in a namespace; templates that are not linked are passed over.
///
/// # Errors
/// The database's.
pub async fn ids_of_plugins<S: AsRef<str>>(
    tx: &mut Tx,
    namespace_id: &str,
    plugin_ids: &[S],
) -> Result<Vec<String>> {
    let rows = fetch_all_in!(
        tx,
        TextRow,
        "SELECT id AS text FROM namespace_plugin_rel
         WHERE namespace_id = $1 AND plugin_id IN ({ids}) ORDER BY id",
        plugin_ids,
        namespace_id,
    );
    Ok(rows.into_iter().map(|row| row.text).collect())
}

/// In how many namespaces a template is.
///
/// # Errors
/// The database's.
pub async fn links_of_plugin(tx: &mut Tx, plugin_id: &str) -> Result<u64> {
    let row = fetch_one!(
        tx,
        CountRow,
        "SELECT COUNT(*) AS n FROM namespace_plugin_rel WHERE plugin_id = $1",
        plugin_id,
    )?;
    Ok(u64::try_from(row.n).unwrap_or(0))
}

/// Links a template to a namespace, with the template's settings. Out: the id of the link.
///
/// # Errors
/// The database's; [`Error::Unique`](crate::Error::Unique) when it is linked already,
/// [`Error::Reference`](crate::Error::Reference) when the namespace does not exist. A template that
/// does not exist links nothing: the id then leads nowhere, so look it up first.
pub async fn link(uow: &mut UnitOfWork, namespace_id: &str, plugin_id: &str) -> Result<String> {
    let id = uow.next_id()?;
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "INSERT INTO namespace_plugin_rel (id, namespace_id, plugin_id, config, sort, enabled,
             created_ms, updated_ms)
         SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), p.id, p.config, p.sort, p.enabled,
             CAST($3 AS BIGINT), CAST($3 AS BIGINT)
         FROM plugin p WHERE p.id = $4",
        id.as_str(),
        namespace_id,
        now_ms,
        plugin_id,
    )?;
    Ok(id)
}

/// Replaces the settings of a link. Out: 0 when there is none.
///
/// # Errors
/// The database's.
pub async fn update(
    uow: &mut UnitOfWork,
    id: &str,
    config: Option<&str>,
    sort: Option<i32>,
    enabled: bool,
) -> Result<u64> {
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "UPDATE namespace_plugin_rel SET config = $1, sort = $2, enabled = $3, updated_ms = $4
         WHERE id = $5",
        config,
        sort,
        enabled,
        now_ms,
        id,
    )
}

/// Switches plugins of a namespace on or off, by the ids of their links. Out: how many there were.
///
/// # Errors
/// The database's.
pub async fn set_enabled<S: AsRef<str>>(
    uow: &mut UnitOfWork,
    ids: &[S],
    enabled: bool,
) -> Result<u64> {
    dialect::hold_rows(uow, "namespace_plugin_rel", ids).await?;
    let now_ms = uow.now_ms();
    Ok(execute_in!(
        uow,
        "UPDATE namespace_plugin_rel SET enabled = $1, updated_ms = $2 WHERE id IN ({ids})",
        ids,
        enabled,
        now_ms,
    ))
}

/// Takes plugins out of their namespaces, by the ids of their links, with all their selectors there
/// and what belongs to those. Out: the links that existed, and what went with them.
///
/// # Errors
/// The database's.
pub async fn delete<S: AsRef<str>>(
    uow: &mut UnitOfWork,
    ids: &[S],
) -> Result<(Vec<NamespacePluginRow>, Removed)> {
    let links = find_many_for_update(uow, ids).await?;
    let mut selector_ids = Vec::new();
    for link in &links {
        let rows = fetch_all!(
            uow,
            TextRow,
            "SELECT id AS text FROM selector WHERE namespace_id = $1 AND plugin_id = $2
             ORDER BY id",
            link.namespace_id.as_str(),
            link.plugin_id.as_str(),
        )?;
        selector_ids.extend(rows.into_iter().map(|row| row.text));
    }
    let removed = selector::delete(uow, &selector_ids).await?;
    let link_ids: Vec<&str> = links.iter().map(|link| link.id.as_str()).collect();
    execute_in!(uow, "DELETE FROM namespace_plugin_rel WHERE id IN ({ids})", link_ids);
    Ok((links, removed))
}

/// The enabled plugins of a namespace with what they hold, by sort, then id.
///
/// # Errors
/// The database's.
pub async fn active(tx: &mut Tx, namespace_id: &str) -> Result<Vec<ActiveRow>> {
    fetch_all!(
        tx,
        ActiveRow,
        "SELECT p.id, p.name, r.config, p.role,
                (SELECT COUNT(*) FROM plugin_handle h WHERE h.plugin_id = p.id) AS handle_count,
                (SELECT COUNT(*) FROM selector s
                 WHERE s.plugin_id = p.id AND s.namespace_id = r.namespace_id) AS selector_count
         FROM namespace_plugin_rel r JOIN plugin p ON p.id = r.plugin_id
         WHERE r.namespace_id = $1 AND r.enabled = TRUE
         ORDER BY COALESCE(r.sort, 0), p.id",
        namespace_id,
    )
}
