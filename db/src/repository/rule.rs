//! Rules: what they have not in common with selectors, see [`conditioned`].

use longmen_core::model::{Condition, Level, Rule, Selector};

use super::conditioned::{
    self, Conditioned, Stored, find_many_for_update, sealed::Sealed, statements,
};
use super::{CountRow, NewCondition, TextRow, condition, data_permission};
use crate::Result;
use crate::statement::{execute, execute_in, fetch_all_in, fetch_one};
use crate::tx::{Tx, UnitOfWork};

/// A row.
#[derive(Debug, sqlx::FromRow)]
pub struct Row {
    id: String,
    selector_id: String,
    plugin_name: String,
    match_mode: i32,
    rule_name: String,
    enabled: bool,
    loged: bool,
    match_restful: bool,
    namespace_id: String,
    sort_code: i32,
    handle: Option<String>,
    created_ms: i64,
    updated_ms: i64,
}

impl Sealed for Rule {
    type Row = Row;

    statements!(
        "rule", name: "rule_name", owner: "selector_id", grants: "1",
        "SELECT o.id, o.selector_id, p.name AS plugin_name, o.match_mode, o.rule_name, o.enabled,
                o.loged, o.match_restful, o.namespace_id, o.sort_code, o.handle, o.created_ms,
                o.updated_ms
         FROM rule o JOIN selector s ON s.id = o.selector_id JOIN plugin p ON p.id = s.plugin_id"
    );

    fn stored(row: Row) -> Stored<Self> {
        let object = Self {
            plugin_name: row.plugin_name,
            selector_id: row.selector_id,
            match_mode: row.match_mode,
            logged: row.loged,
            handle: row.handle,
            condition_list: None,
            before_condition_list: None,
            match_restful: row.match_restful,
            id: row.id,
            name: Some(row.rule_name),
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

impl Conditioned for Rule {
    const LEVEL: Level = Level::Rule;
}

/// All rules of the selectors, with their conditions, by selector, sort and id, held until the end of
/// the transaction.
pub(super) async fn of_selectors_for_update<S: AsRef<str>>(
    uow: &mut UnitOfWork,
    selector_ids: &[S],
) -> Result<Vec<Stored<Rule>>> {
    let ids = fetch_all_in!(
        uow,
        TextRow,
        "SELECT id AS text FROM rule WHERE selector_id IN ({ids})",
        selector_ids,
    );
    let ids: Vec<String> = ids.into_iter().map(|row| row.text).collect();
    conditioned::hold::<Rule>(uow, &ids).await?;
    conditioned::of_owners::<Rule>(uow, selector_ids).await
}

/// Whether a selector has a rule of this name.
///
/// # Errors
/// The database's.
pub async fn is_named(tx: &mut Tx, selector_id: &str, name: &str) -> Result<bool> {
    let row = fetch_one!(
        tx,
        CountRow,
        "SELECT COUNT(*) AS n FROM rule WHERE selector_id = $1 AND rule_name = $2",
        selector_id,
        name,
    )?;
    Ok(row.n > 0)
}

/// Stores a new rule under its id, and holds its selector. The conditions are those of
/// `conditions`; `condition_list` and `plugin_name` of the rule are not looked at.
///
/// # Errors
/// The database's; [`Error::Reference`](crate::Error::Reference) for an unknown selector or
/// namespace, [`Error::Unique`](crate::Error::Unique) for an id that is taken.
pub async fn insert(uow: &mut UnitOfWork, rule: &Rule, conditions: &[NewCondition]) -> Result<()> {
    // Else a rule could slip into a selector that is being deleted, unseen by its change set.
    conditioned::hold::<Selector>(uow, &[rule.selector_id.as_str()]).await?;
    let now_ms = uow.now_ms();
    execute!(
        uow,
        "INSERT INTO rule (id, selector_id, match_mode, rule_name, enabled, loged, match_restful,
             namespace_id, sort_code, handle, created_ms, updated_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11)",
        rule.id.as_str(),
        rule.selector_id.as_str(),
        rule.match_mode,
        rule.name.as_deref().unwrap_or_default(),
        rule.enabled,
        rule.logged,
        rule.match_restful,
        rule.namespace_id.as_deref().unwrap_or_default(),
        rule.sort.unwrap_or_default(),
        rule.handle.as_deref(),
        now_ms,
    )?;
    condition::insert(uow, Level::Rule, &rule.id, conditions).await
}

/// Replaces a rule and its conditions; see [`insert`]. Out: 0, and nothing is written, when there
/// is none of that id in that namespace.
///
/// # Errors
/// The database's; [`Error::Reference`](crate::Error::Reference) for an unknown selector.
pub async fn update(uow: &mut UnitOfWork, rule: &Rule, conditions: &[NewCondition]) -> Result<u64> {
    conditioned::hold::<Selector>(uow, &[rule.selector_id.as_str()]).await?;
    let now_ms = uow.now_ms();
    let touched = execute!(
        uow,
        "UPDATE rule SET selector_id = $1, match_mode = $2, rule_name = $3, enabled = $4,
             loged = $5, match_restful = $6, sort_code = $7, handle = $8, updated_ms = $9
         WHERE id = $10 AND namespace_id = $11",
        rule.selector_id.as_str(),
        rule.match_mode,
        rule.name.as_deref().unwrap_or_default(),
        rule.enabled,
        rule.logged,
        rule.match_restful,
        rule.sort.unwrap_or_default(),
        rule.handle.as_deref(),
        now_ms,
        rule.id.as_str(),
        rule.namespace_id.as_deref().unwrap_or_default(),
    )?;
    if touched > 0 {
        condition::replace(uow, Level::Rule, &rule.id, conditions).await?;
    }
    Ok(touched)
}

/// Deletes rules with their conditions and all grants on them. Out: those that existed, as they
/// were. Unknown ids are passed over.
///
/// # Errors
/// The database's.
pub async fn delete<S: AsRef<str>>(uow: &mut UnitOfWork, ids: &[S]) -> Result<Vec<Rule>> {
    let rules: Vec<Rule> =
        find_many_for_update::<Rule>(uow, ids).await?.into_iter().map(|row| row.object).collect();
    let ids: Vec<&str> = rules.iter().map(|rule| rule.id.as_str()).collect();
    data_permission::delete_of(uow, Level::Rule, &ids).await?;
    condition::delete(uow, Level::Rule, &ids).await?;
    execute_in!(uow, "DELETE FROM rule WHERE id IN ({ids})", ids);
    Ok(rules)
}
