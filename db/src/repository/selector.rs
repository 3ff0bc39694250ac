//! Selectors: what they have not in common with rules, see [`conditioned`].

use longmen_core::model::{Condition, Level, Selector};

use super::conditioned::{self, Conditioned, Stored, sealed::Sealed, statements};
use super::{NewCondition, condition};
use crate::Result;
use crate::statement::{execute, fetch_all, fetch_optional};
use crate::tx::{Tx, UnitOfWork};

mod delete;

pub use delete::{Removed, delete};

/// A row.
#[derive(Debug, sqlx::FromRow)]
pub struct Row {
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

/// The columns of [`Row`].
macro_rules! select {
    () => {
        "SELECT o.id, o.plugin_id, p.name AS plugin_name, o.selector_name, o.match_mode,
                o.selector_type, o.sort_code, o.handle, o.enabled, o.loged, o.continued,
                o.match_restful, o.namespace_id, o.created_ms, o.updated_ms
         FROM selector o JOIN plugin p ON p.id = o.plugin_id"
    };
}

impl Sealed for Selector {
    type Row = Row;

    statements!("selector", name: "selector_name", owner: "plugin_id", grants: "0", select!());

    fn stored(row: Row) -> Stored<Self> {
        let object = Self {
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
        };
        Stored { object, created_ms: row.created_ms, updated_ms: row.updated_ms }
    }

    fn id(&self) -> &str {
        &self.id
    }

    fn conditions_mut(&mut self) -> &mut Option<Vec<Condition>> {
        &mut self.condition_list
    }
}

impl Conditioned for Selector {
    const LEVEL: Level = Level::Selector;
}

/// Those of a plugin in a namespace, with their conditions, by sort, then id.
///
/// # Errors
/// The database's.
pub async fn of_plugin(
    tx: &mut Tx,
    namespace_id: &str,
    plugin_id: &str,
) -> Result<Vec<Stored<Selector>>> {
    let rows = fetch_all!(
        tx,
        Row,
        concat!(
            select!(),
            " WHERE o.namespace_id = $1 AND o.plugin_id = $2 ORDER BY o.sort_code, o.id"
        ),
        namespace_id,
        plugin_id,
    )?;
    conditioned::with_conditions::<Selector>(tx, rows).await
}

/// The first selector of a name in a plugin and namespace, by id, with its conditions. Names need not
/// be unique.
///
/// # Errors
/// The database's.
pub async fn find_named(
    tx: &mut Tx,
    namespace_id: &str,
    plugin_id: &str,
    name: &str,
) -> Result<Option<Stored<Selector>>> {
    let row = fetch_optional!(
        tx,
        Row,
        concat!(
            select!(),
            " WHERE o.namespace_id = $1 AND o.plugin_id = $2 AND o.selector_name = $3
              ORDER BY o.id LIMIT 1"
        ),
        namespace_id,
        plugin_id,
        name,
    )?;
    let rows = row.into_iter().collect();
    Ok(conditioned::with_conditions::<Selector>(tx, rows).await?.pop())
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
