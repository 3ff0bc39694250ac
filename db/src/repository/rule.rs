//! Rules with their conditions.

use longmen_core::model::{Level, Rule};

use super::condition;
use super::data_permission;
use super::{ConditionRow, CountRow, NewCondition, TextRow, selector};
use crate::page::{Keyword, Page, PageRequest};
use crate::statement::{
    execute, execute_in, fetch_all, fetch_all_in, fetch_all_where, fetch_one_where, fetch_optional,
};
use crate::tx::{Tx, UnitOfWork};
use crate::{Result, dialect};

/// A stored rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleRow {
    /// The rule. Lists leave `condition_list` absent; the other functions fill it.
    pub rule: Rule,
    /// When it was created, in milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
    /// When it was last written, in milliseconds since 1970-01-01 UTC.
    pub updated_ms: i64,
}

/// Which rules a list holds; what is empty or `None` does not narrow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleFilter {
    /// Their namespace.
    pub namespace_id: Option<String>,
    /// Their selectors.
    pub selector_ids: Vec<String>,
    /// Text in their name.
    pub keyword: Keyword,
    /// Whether they are enabled.
    pub enabled: Option<bool>,
    /// The user who must be granted them.
    pub granted_to: Option<String>,
}

#[derive(sqlx::FromRow)]
struct Row {
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

/// The columns of [`Row`], followed by the rest of the statement.
macro_rules! select {
    ($($rest:expr),*) => {
        concat!(
            "SELECT r.id, r.selector_id, p.name AS plugin_name, r.match_mode, r.rule_name,
                    r.enabled, r.loged, r.match_restful, r.namespace_id, r.sort_code, r.handle,
                    r.created_ms, r.updated_ms
             FROM rule r JOIN selector s ON s.id = r.selector_id JOIN plugin p ON p.id = s.plugin_id ",
            $($rest),*
        )
    };
}

/// The condition of [`RuleFilter`]; its values are bound in the order of the members.
macro_rules! filter {
    () => {
        " WHERE (CAST($1 AS TEXT) IS NULL OR r.namespace_id = $1)
            AND (CAST($2 AS TEXT) IS NULL OR LOWER(r.rule_name) LIKE $2 ESCAPE '\\')
            AND (CAST($3 AS TEXT) IS NULL OR LOWER(r.rule_name) NOT LIKE $3 ESCAPE '\\')
            AND (CAST($4 AS BOOLEAN) IS NULL OR r.enabled = $4)
            AND (CAST($5 AS TEXT) IS NULL OR EXISTS (
                SELECT 1 FROM data_permission d
                WHERE d.user_id = $5 AND d.data_type = 1 AND d.data_id = r.id))
            AND (CAST($6 AS BIGINT) = 0 OR r.selector_id IN ({ids}))"
    };
}

impl From<Row> for RuleRow {
    fn from(row: Row) -> Self {
        Self {
            rule: Rule {
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
            },
            created_ms: row.created_ms,
            updated_ms: row.updated_ms,
        }
    }
}

/// One page of rules, by sort, then id; without conditions.
///
/// # Errors
/// The database's.
pub async fn page(tx: &mut Tx, filter: &RuleFilter, request: PageRequest) -> Result<Page<RuleRow>> {
    let selectors = i64::try_from(filter.selector_ids.len()).unwrap_or(i64::MAX);
    let total = fetch_one_where!(
        tx,
        CountRow,
        concat!("SELECT COUNT(*) AS n FROM rule r", filter!()),
        filter.selector_ids,
        filter.namespace_id.as_deref(),
        filter.keyword.include(),
        filter.keyword.exclude(),
        filter.enabled,
        filter.granted_to.as_deref(),
        selectors,
    )?
    .n;
    let rows = fetch_all_where!(
        tx,
        Row,
        select!(filter!(), " ORDER BY r.sort_code, r.id LIMIT $7 OFFSET $8"),
        filter.selector_ids,
        filter.namespace_id.as_deref(),
        filter.keyword.include(),
        filter.keyword.exclude(),
        filter.enabled,
        filter.granted_to.as_deref(),
        selectors,
        request.size(),
        request.offset(),
    )?;
    Ok(Page { request, rows: rows.into_iter().map(RuleRow::from).collect(), total })
}

/// One rule with its conditions.
///
/// # Errors
/// The database's.
pub async fn find(tx: &mut Tx, id: &str) -> Result<Option<RuleRow>> {
    let Some(row) = fetch_optional!(tx, Row, select!("WHERE r.id = $1"), id)? else {
        return Ok(None);
    };
    let mut rows = with_conditions(tx, vec![row]).await?;
    Ok(rows.pop())
}

/// As [`find`], and holds the rule until the end of the transaction.
///
/// # Errors
/// The database's.
pub async fn find_for_update(uow: &mut UnitOfWork, id: &str) -> Result<Option<RuleRow>> {
    lock(uow, &[id]).await?;
    find(uow, id).await
}

/// Those of the rules that exist, with their conditions, by id.
///
/// # Errors
/// The database's.
pub async fn find_many<S: AsRef<str>>(tx: &mut Tx, ids: &[S]) -> Result<Vec<RuleRow>> {
    let rows = fetch_all_in!(tx, Row, select!("WHERE r.id IN ({ids}) ORDER BY r.id"), ids);
    with_conditions(tx, rows).await
}

/// As [`find_many`], and holds the rules until the end of the transaction.
///
/// # Errors
/// The database's.
pub async fn find_many_for_update<S: AsRef<str>>(
    uow: &mut UnitOfWork,
    ids: &[S],
) -> Result<Vec<RuleRow>> {
    lock(uow, ids).await?;
    find_many(uow, ids).await
}

/// All rules of the selectors, with their conditions, by selector, sort and id.
///
/// # Errors
/// The database's.
pub async fn of_selectors<S: AsRef<str>>(tx: &mut Tx, selector_ids: &[S]) -> Result<Vec<RuleRow>> {
    let rows = fetch_all_in!(
        tx,
        Row,
        select!("WHERE r.selector_id IN ({ids}) ORDER BY r.selector_id, r.sort_code, r.id"),
        selector_ids,
    );
    with_conditions(tx, rows).await
}

/// As [`of_selectors`], and holds the rules until the end of the transaction.
pub(super) async fn of_selectors_for_update<S: AsRef<str>>(
    uow: &mut UnitOfWork,
    selector_ids: &[S],
) -> Result<Vec<RuleRow>> {
    let ids = fetch_all_in!(
        uow,
        TextRow,
        "SELECT id AS text FROM rule WHERE selector_id IN ({ids})",
        selector_ids,
    );
    let ids: Vec<String> = ids.into_iter().map(|row| row.text).collect();
    lock(uow, &ids).await?;
    of_selectors(uow, selector_ids).await
}

/// The stored conditions of a rule, in their order.
///
/// # Errors
/// The database's.
pub async fn conditions(tx: &mut Tx, id: &str) -> Result<Vec<ConditionRow>> {
    condition::rows(tx, Level::Rule, &[id]).await
}

/// Stores a new rule under its id, and holds its selector. The conditions are those of
/// `conditions`; `condition_list` and `plugin_name` of the rule are not looked at.
///
/// # Errors
/// The database's; [`Error::Reference`](crate::Error::Reference) for an unknown selector or
/// namespace, [`Error::Unique`](crate::Error::Unique) for an id that is taken.
pub async fn insert(uow: &mut UnitOfWork, rule: &Rule, conditions: &[NewCondition]) -> Result<()> {
    // Else a rule could slip into a selector that is being deleted, unseen by its change set.
    selector::lock(uow, &[rule.selector_id.as_str()]).await?;
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
    selector::lock(uow, &[rule.selector_id.as_str()]).await?;
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

/// Switches rules on or off. Out: how many there were.
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
        "UPDATE rule SET enabled = $1, updated_ms = $2 WHERE id IN ({ids})",
        ids,
        enabled,
        now_ms,
    ))
}

/// Deletes rules with their conditions and all grants on them. Out: those that existed, as they
/// were. Unknown ids are passed over.
///
/// # Errors
/// The database's.
pub async fn delete<S: AsRef<str>>(uow: &mut UnitOfWork, ids: &[S]) -> Result<Vec<Rule>> {
    let rules: Vec<Rule> =
        find_many_for_update(uow, ids).await?.into_iter().map(|row| row.rule).collect();
    let ids: Vec<&str> = rules.iter().map(|rule| rule.id.as_str()).collect();
    data_permission::delete_of(uow, Level::Rule, &ids).await?;
    condition::delete(uow, Level::Rule, &ids).await?;
    execute_in!(uow, "DELETE FROM rule WHERE id IN ({ids})", ids);
    Ok(rules)
}

async fn lock<S: AsRef<str>>(uow: &mut UnitOfWork, ids: &[S]) -> Result<()> {
    dialect::hold_rows(uow, "rule", ids).await
}

async fn with_conditions(tx: &mut Tx, rows: Vec<Row>) -> Result<Vec<RuleRow>> {
    let ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    let mut conditions = condition::by_owner(tx, Level::Rule, &ids).await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let mut row = RuleRow::from(row);
            row.rule.condition_list = Some(conditions.remove(&row.rule.id).unwrap_or_default());
            row
        })
        .collect())
}

/// All rules of a namespace without conditions, by id.
pub(crate) async fn of_namespace(tx: &mut Tx, namespace_id: &str) -> Result<Vec<Rule>> {
    let rows =
        fetch_all!(tx, Row, select!("WHERE r.namespace_id = $1 ORDER BY r.id"), namespace_id)?;
    Ok(rows.into_iter().map(|row| RuleRow::from(row).rule).collect())
}
