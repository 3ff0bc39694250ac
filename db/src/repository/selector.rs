//! Selectors with their conditions.

use longmen_core::model::{Level, Selector};

use super::condition;
use super::{ConditionRow, CountRow, NewCondition};
use crate::page::{Keyword, Page, PageRequest};
use crate::statement::{
    execute, execute_in, fetch_all_in, fetch_all_where, fetch_one_where, fetch_optional,
};
use crate::tx::{Tx, UnitOfWork};
use crate::{Result, dialect};

mod delete;

pub use delete::{Removed, delete};

/// A stored selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectorRow {
    /// The selector. Lists leave `condition_list` absent; the other functions fill it.
    pub selector: Selector,
    /// When it was created, in milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
    /// When it was last written, in milliseconds since 1970-01-01 UTC.
    pub updated_ms: i64,
}

/// Which selectors a list holds; what is empty or `None` does not narrow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SelectorFilter {
    /// Their namespace.
    pub namespace_id: Option<String>,
    /// Their plugins.
    pub plugin_ids: Vec<String>,
    /// Text in their name.
    pub keyword: Keyword,
    /// Whether they are enabled.
    pub enabled: Option<bool>,
    /// The user who must be granted them.
    pub granted_to: Option<String>,
}

#[derive(sqlx::FromRow)]
pub(super) struct Row {
    id: String,
    plugin_id: String,
    plugin_name: String,
    selector_name: String,
    match_mode: i32,
    selector_type: i32,
    sort_code: i32,
    handle: Option<String>,
    enabled: bool,
    loged: bool,
    continued: bool,
    match_restful: bool,
    namespace_id: String,
    created_ms: i64,
    updated_ms: i64,
}

/// The columns of [`Row`], followed by the rest of the statement.
macro_rules! select {
    ($($rest:expr),*) => {
        concat!(
            "SELECT s.id, s.plugin_id, p.name AS plugin_name, s.selector_name, s.match_mode,
                    s.selector_type, s.sort_code, s.handle, s.enabled, s.loged, s.continued,
                    s.match_restful, s.namespace_id, s.created_ms, s.updated_ms
             FROM selector s JOIN plugin p ON p.id = s.plugin_id ",
            $($rest),*
        )
    };
}

/// The condition of [`SelectorFilter`]; its values are bound in the order of the members.
macro_rules! filter {
    () => {
        " WHERE (CAST($1 AS TEXT) IS NULL OR s.namespace_id = $1)
            AND (CAST($2 AS TEXT) IS NULL OR LOWER(s.selector_name) LIKE $2 ESCAPE '\\')
            AND (CAST($3 AS TEXT) IS NULL OR LOWER(s.selector_name) NOT LIKE $3 ESCAPE '\\')
            AND (CAST($4 AS BOOLEAN) IS NULL OR s.enabled = $4)
            AND (CAST($5 AS TEXT) IS NULL OR EXISTS (
                SELECT 1 FROM data_permission d
                WHERE d.user_id = $5 AND d.data_type = 0 AND d.data_id = s.id))
            AND (CAST($6 AS BIGINT) = 0 OR s.plugin_id IN ({ids}))"
    };
}

impl From<Row> for SelectorRow {
    fn from(row: Row) -> Self {
        Self {
            selector: Selector {
                plugin_id: Some(row.plugin_id),
                plugin_name: row.plugin_name,
                match_mode: row.match_mode,
                selector_type: row.selector_type,
                logged: row.loged,
                continued: row.continued,
                handle: row.handle,
                condition_list: None,
                before_condition_list: None,
                match_restful: row.match_restful,
                id: row.id,
                name: Some(row.selector_name),
                enabled: row.enabled,
                sort: Some(row.sort_code),
                namespace_id: Some(row.namespace_id),
            },
            created_ms: row.created_ms,
            updated_ms: row.updated_ms,
        }
    }
}

/// One page of selectors, by sort, then id; without conditions.
///
/// # Errors
/// The database's.
pub async fn page(
    tx: &mut Tx,
    filter: &SelectorFilter,
    request: PageRequest,
) -> Result<Page<SelectorRow>> {
    let plugins = i64::try_from(filter.plugin_ids.len()).unwrap_or(i64::MAX);
    let total = fetch_one_where!(
        tx,
        CountRow,
        concat!(
            "SELECT COUNT(*) AS n FROM selector s JOIN plugin p ON p.id = s.plugin_id",
            filter!()
        ),
        filter.plugin_ids,
        filter.namespace_id.as_deref(),
        filter.keyword.include(),
        filter.keyword.exclude(),
        filter.enabled,
        filter.granted_to.as_deref(),
        plugins,
    )?
    .n;
    let rows = fetch_all_where!(
        tx,
        Row,
        select!(filter!(), " ORDER BY s.sort_code, s.id LIMIT $7 OFFSET $8"),
        filter.plugin_ids,
        filter.namespace_id.as_deref(),
        filter.keyword.include(),
        filter.keyword.exclude(),
        filter.enabled,
        filter.granted_to.as_deref(),
        plugins,
        request.size(),
        request.offset(),
    )?;
    Ok(Page { request, rows: rows.into_iter().map(SelectorRow::from).collect(), total })
}

/// One selector with its conditions.
///
/// # Errors
/// The database's.
pub async fn find(tx: &mut Tx, id: &str) -> Result<Option<SelectorRow>> {
    let Some(row) = fetch_optional!(tx, Row, select!("WHERE s.id = $1"), id)? else {
        return Ok(None);
    };
    let mut rows = with_conditions(tx, vec![row]).await?;
    Ok(rows.pop())
}

/// As [`find`], and holds the selector until the end of the transaction.
///
/// # Errors
/// The database's.
pub async fn find_for_update(uow: &mut UnitOfWork, id: &str) -> Result<Option<SelectorRow>> {
    lock(uow, &[id]).await?;
    find(uow, id).await
}

/// Those of the selectors that exist, with their conditions, by id.
///
/// # Errors
/// The database's.
pub async fn find_many<S: AsRef<str>>(tx: &mut Tx, ids: &[S]) -> Result<Vec<SelectorRow>> {
    let rows = fetch_all_in!(tx, Row, select!("WHERE s.id IN ({ids}) ORDER BY s.id"), ids);
    with_conditions(tx, rows).await
}

/// As [`find_many`], and holds the selectors until the end of the transaction.
///
/// # Errors
/// The database's.
pub async fn find_many_for_update<S: AsRef<str>>(
    uow: &mut UnitOfWork,
    ids: &[S],
) -> Result<Vec<SelectorRow>> {
    lock(uow, ids).await?;
    find_many(uow, ids).await
}

/// Those of a plugin in a namespace, with their conditions, by sort, then id.
///
/// # Errors
/// The database's.
pub async fn of_plugin(
    tx: &mut Tx,
    namespace_id: &str,
    plugin_id: &str,
) -> Result<Vec<SelectorRow>> {
    let rows = fetch_all_in!(
        tx,
        Row,
        select!("WHERE s.namespace_id = $1 AND s.plugin_id IN ({ids}) ORDER BY s.sort_code, s.id"),
        [plugin_id],
        namespace_id,
    );
    with_conditions(tx, rows).await
}

/// The stored conditions of a selector, in their order.
///
/// # Errors
/// The database's.
pub async fn conditions(tx: &mut Tx, id: &str) -> Result<Vec<ConditionRow>> {
    condition::rows(tx, Level::Selector, &[id]).await
}

/// Stores a new selector under its id. The conditions are those of `conditions`; `condition_list`
/// and `plugin_name` of the selector are not looked at.
///
/// # Errors
/// The database's; [`Error::Reference`](crate::Error::Reference) for an unknown plugin or
/// namespace, [`Error::Unique`](crate::Error::Unique) for an id that is taken.
pub async fn insert(
    uow: &mut UnitOfWork,
    selector: &Selector,
    conditions: &[NewCondition],
) -> Result<()> {
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "INSERT INTO selector (id, plugin_id, selector_name, match_mode, selector_type, sort_code,
             handle, enabled, loged, continued, match_restful, namespace_id, created_ms, updated_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13)",
        selector.id.as_str(),
        selector.plugin_id.as_deref().unwrap_or_default(),
        selector.name.as_deref().unwrap_or_default(),
        selector.match_mode,
        selector.selector_type,
        selector.sort.unwrap_or_default(),
        selector.handle.as_deref(),
        selector.enabled,
        selector.logged,
        selector.continued,
        selector.match_restful,
        selector.namespace_id.as_deref().unwrap_or_default(),
        now_ms,
    )?;
    condition::insert(uow, Level::Selector, &selector.id, conditions).await
}

/// Replaces a selector and its conditions; see [`insert`]. Out: 0, and nothing is written, when
/// there is none of that id in that namespace.
///
/// # Errors
/// The database's.
pub async fn update(
    uow: &mut UnitOfWork,
    selector: &Selector,
    conditions: &[NewCondition],
) -> Result<u64> {
    let now_ms = uow.now_ms();
    let touched = execute!(
        uow,
        "UPDATE selector SET plugin_id = $1, selector_name = $2, match_mode = $3,
             selector_type = $4, sort_code = $5, handle = $6, enabled = $7, loged = $8,
             continued = $9, match_restful = $10, updated_ms = $11
         WHERE id = $12 AND namespace_id = $13",
        selector.plugin_id.as_deref().unwrap_or_default(),
        selector.name.as_deref().unwrap_or_default(),
        selector.match_mode,
        selector.selector_type,
        selector.sort.unwrap_or_default(),
        selector.handle.as_deref(),
        selector.enabled,
        selector.logged,
        selector.continued,
        selector.match_restful,
        now_ms,
        selector.id.as_str(),
        selector.namespace_id.as_deref().unwrap_or_default(),
    )?;
    if touched > 0 {
        condition::replace(uow, Level::Selector, &selector.id, conditions).await?;
    }
    Ok(touched)
}

/// Switches selectors on or off. Out: how many there were.
///
/// # Errors
/// The database's.
pub async fn set_enabled<S: AsRef<str>>(
    uow: &mut UnitOfWork,
    ids: &[S],
    enabled: bool,
) -> Result<u64> {
    lock(uow, ids).await?;
    let now_ms = uow.now_ms();
    Ok(execute_in!(
        uow,
        "UPDATE selector SET enabled = $1, updated_ms = $2 WHERE id IN ({ids})",
        ids,
        enabled,
        now_ms,
    ))
}

/// Replaces the handle of a selector. Out: 0 when there is no such selector.
///
/// # Errors
/// The database's.
pub async fn set_handle(uow: &mut UnitOfWork, id: &str, handle: Option<&str>) -> Result<u64> {
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "UPDATE selector SET handle = $1, updated_ms = $2 WHERE id = $3",
        handle,
        now_ms,
        id,
    )
}

/// Holds the selectors until the end of the transaction.
pub(super) async fn lock<S: AsRef<str>>(uow: &mut UnitOfWork, ids: &[S]) -> Result<()> {
    dialect::hold_rows(uow, "selector", ids).await
}

async fn with_conditions(tx: &mut Tx, rows: Vec<Row>) -> Result<Vec<SelectorRow>> {
    let ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    let mut conditions = condition::by_owner(tx, Level::Selector, &ids).await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let mut row = SelectorRow::from(row);
            row.selector.condition_list =
                Some(conditions.remove(&row.selector.id).unwrap_or_default());
            row
        })
        .collect())
}

/// All selectors of a namespace without conditions, by id.
pub(crate) async fn of_namespace(tx: &mut Tx, namespace_id: &str) -> Result<Vec<Selector>> {
    let rows = crate::statement::fetch_all!(
        tx,
        Row,
        select!("WHERE s.namespace_id = $1 ORDER BY s.id"),
        namespace_id,
    )?;
    Ok(rows.into_iter().map(|row| SelectorRow::from(row).selector).collect())
}
