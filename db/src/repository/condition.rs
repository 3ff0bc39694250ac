//! Conditions of selectors and of rules: two tables of one shape.
//!
//! Their statements are put together from the words of [`Place`]; nothing of a user gets in.

use std::collections::HashMap;

use longmen_core::model::{Condition, Level};
use sqlx::AssertSqlSafe;

use crate::statement::{execute_in, fetch_all, fetch_all_in, here, on_conn, values};
use crate::tx::{Tx, UnitOfWork};
use crate::{Error, Result};

/// Rows of one `INSERT`.
const ROWS: usize = 200;

/// A stored condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionRow {
    /// Id of the row.
    pub id: String,
    /// Id of the selector or rule.
    pub owner_id: String,
    /// The condition.
    pub condition: Condition,
    /// When it was stored, in milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
    /// When it was stored last, in milliseconds since 1970-01-01 UTC.
    pub updated_ms: i64,
}

/// A condition to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCondition {
    /// The id to keep; a new one if there is none.
    pub id: Option<String>,
    /// The condition.
    pub condition: Condition,
}

impl From<Condition> for NewCondition {
    fn from(condition: Condition) -> Self {
        Self { id: None, condition }
    }
}

/// Where the conditions of a level are.
struct Place {
    /// The table of the conditions.
    table: &'static str,
    /// Its column that names the owner.
    owner: &'static str,
    /// The table of the owners.
    owners: &'static str,
}

impl Place {
    const fn of(level: Level) -> Self {
        match level {
            Level::Selector => {
                Self { table: "selector_condition", owner: "selector_id", owners: "selector" }
            }
            Level::Rule => Self { table: "rule_condition", owner: "rule_id", owners: "rule" },
        }
    }
}

#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    owner_id: String,
    param_type: String,
    operator: String,
    param_name: Option<String>,
    param_value: Option<String>,
    created_ms: i64,
    updated_ms: i64,
}

#[derive(sqlx::FromRow)]
struct PlainRow {
    owner_id: String,
    param_type: String,
    operator: String,
    param_name: Option<String>,
    param_value: Option<String>,
}

/// The conditions of the owners, in their order.
pub(super) async fn rows(tx: &mut Tx, level: Level, ids: &[&str]) -> Result<Vec<ConditionRow>> {
    let Place { table, owner, .. } = Place::of(level);
    let template = format!(
        "SELECT id, {owner} AS owner_id, param_type, operator, param_name, param_value, created_ms,
                updated_ms
         FROM {table} WHERE {owner} IN ({{ids}}) ORDER BY {owner}, position"
    );
    let rows = fetch_all_in!(tx, Row, &template, ids);
    Ok(rows
        .into_iter()
        .map(|row| ConditionRow {
            id: row.id,
            owner_id: row.owner_id,
            condition: Condition {
                param_type: row.param_type,
                operator: row.operator,
                param_name: row.param_name,
                param_value: row.param_value,
            },
            created_ms: row.created_ms,
            updated_ms: row.updated_ms,
        })
        .collect())
}

/// The conditions of the owners, by owner.
pub(super) async fn by_owner(
    tx: &mut Tx,
    level: Level,
    ids: &[&str],
) -> Result<HashMap<String, Vec<Condition>>> {
    let mut map: HashMap<String, Vec<Condition>> = HashMap::with_capacity(ids.len());
    for row in rows(tx, level, ids).await? {
        map.entry(row.owner_id).or_default().push(row.condition);
    }
    Ok(map)
}

/// The conditions of everything in a namespace, by owner; one statement.
pub(crate) async fn of_namespace(
    tx: &mut Tx,
    level: Level,
    namespace_id: &str,
) -> Result<HashMap<String, Vec<Condition>>> {
    let Place { table, owner, owners } = Place::of(level);
    let sql = format!(
        "SELECT c.{owner} AS owner_id, c.param_type, c.operator, c.param_name, c.param_value
         FROM {table} c JOIN {owners} o ON o.id = c.{owner}
         WHERE o.namespace_id = $1 ORDER BY c.{owner}, c.position"
    );
    let rows = fetch_all!(tx, PlainRow, AssertSqlSafe(sql.as_str()), namespace_id)?;
    let mut map: HashMap<String, Vec<Condition>> = HashMap::new();
    for row in rows {
        map.entry(row.owner_id).or_default().push(Condition {
            param_type: row.param_type,
            operator: row.operator,
            param_name: row.param_name,
            param_value: row.param_value,
        });
    }
    Ok(map)
}

/// Replaces all conditions of one owner.
pub(super) async fn replace(
    uow: &mut UnitOfWork,
    level: Level,
    owner_id: &str,
    conditions: &[NewCondition],
) -> Result<()> {
    delete(uow, level, &[owner_id]).await?;
    insert(uow, level, owner_id, conditions).await
}

/// Adds conditions to an owner that has none.
pub(super) async fn insert(
    uow: &mut UnitOfWork,
    level: Level,
    owner_id: &str,
    conditions: &[NewCondition],
) -> Result<()> {
    let Place { table, owner, .. } = Place::of(level);
    let head = format!(
        "INSERT INTO {table} (id, {owner}, position, param_type, operator, param_name, param_value,
             created_ms, updated_ms) VALUES"
    );
    let now_ms = uow.now_ms();
    let mut position = 0_i32;
    for chunk in conditions.chunks(ROWS) {
        let mut ids = Vec::with_capacity(chunk.len());
        for new in chunk {
            ids.push(match &new.id {
                Some(id) => id.clone(),
                None => uow.next_id()?,
            });
        }
        on_conn!(uow, |conn| {
            let mut query = sqlx::query(values(&head, chunk.len(), 9));
            for (new, id) in chunk.iter().zip(&ids) {
                query = query
                    .bind(id.as_str())
                    .bind(owner_id)
                    .bind(position)
                    .bind(new.condition.param_type.as_str())
                    .bind(new.condition.operator.as_str())
                    .bind(new.condition.param_name.as_deref())
                    .bind(new.condition.param_value.as_deref())
                    .bind(now_ms)
                    .bind(now_ms);
                position += 1;
            }
            query.execute(conn).await.map(|_| ())
        })
        .map_err(|source| Error::sql(here!(), source))?;
    }
    Ok(())
}

/// Deletes the conditions of the owners.
pub(super) async fn delete(uow: &mut UnitOfWork, level: Level, ids: &[&str]) -> Result<()> {
    let Place { table, owner, .. } = Place::of(level);
    let template = format!("DELETE FROM {table} WHERE {owner} IN ({{ids}})");
    execute_in!(uow, &template, ids);
    Ok(())
}
