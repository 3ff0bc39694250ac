//! Conditions of selectors and of rules: two tables of one shape.

use std::collections::HashMap;

use longmen_core::model::Condition;

use crate::statement::{execute, execute_in, fetch_all, fetch_all_in, here, on_conn, values};
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

/// Whose conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Selector,
    Rule,
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
pub(super) async fn rows(tx: &mut Tx, owner: Owner, ids: &[&str]) -> Result<Vec<ConditionRow>> {
    let template = match owner {
        Owner::Selector => {
            "SELECT id, selector_id AS owner_id, param_type, operator, param_name, param_value,
                    created_ms, updated_ms
             FROM selector_condition WHERE selector_id IN ({ids}) ORDER BY selector_id, position"
        }
        Owner::Rule => {
            "SELECT id, rule_id AS owner_id, param_type, operator, param_name, param_value,
                    created_ms, updated_ms
             FROM rule_condition WHERE rule_id IN ({ids}) ORDER BY rule_id, position"
        }
    };
    let rows = fetch_all_in!(tx, Row, template, ids);
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
    owner: Owner,
    ids: &[&str],
) -> Result<HashMap<String, Vec<Condition>>> {
    let mut map: HashMap<String, Vec<Condition>> = HashMap::with_capacity(ids.len());
    for row in rows(tx, owner, ids).await? {
        map.entry(row.owner_id).or_default().push(row.condition);
    }
    Ok(map)
}

/// The conditions of everything in a namespace, by owner; one statement.
pub(crate) async fn of_namespace(
    tx: &mut Tx,
    rules: bool,
    namespace_id: &str,
) -> Result<HashMap<String, Vec<Condition>>> {
    let rows = if rules {
        fetch_all!(
            tx,
            PlainRow,
            "SELECT c.rule_id AS owner_id, c.param_type, c.operator, c.param_name, c.param_value
             FROM rule_condition c JOIN rule r ON r.id = c.rule_id
             WHERE r.namespace_id = $1 ORDER BY c.rule_id, c.position",
            namespace_id,
        )?
    } else {
        fetch_all!(
            tx,
            PlainRow,
            "SELECT c.selector_id AS owner_id, c.param_type, c.operator, c.param_name, c.param_value
             FROM selector_condition c JOIN selector s ON s.id = c.selector_id
             WHERE s.namespace_id = $1 ORDER BY c.selector_id, c.position",
            namespace_id,
        )?
    };
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
    owner: Owner,
    owner_id: &str,
    conditions: &[NewCondition],
) -> Result<()> {
    match owner {
        Owner::Selector => {
            execute!(uow, "DELETE FROM selector_condition WHERE selector_id = $1", owner_id)?
        }
        Owner::Rule => execute!(uow, "DELETE FROM rule_condition WHERE rule_id = $1", owner_id)?,
    };
    insert(uow, owner, owner_id, conditions).await
}

/// Adds conditions to an owner that has none.
pub(super) async fn insert(
    uow: &mut UnitOfWork,
    owner: Owner,
    owner_id: &str,
    conditions: &[NewCondition],
) -> Result<()> {
    let head = match owner {
        Owner::Selector => {
            "INSERT INTO selector_condition (id, selector_id, position, param_type, operator,
                 param_name, param_value, created_ms, updated_ms) VALUES"
        }
        Owner::Rule => {
            "INSERT INTO rule_condition (id, rule_id, position, param_type, operator,
                 param_name, param_value, created_ms, updated_ms) VALUES"
        }
    };
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
            let mut query = sqlx::query(values(head, chunk.len(), 9));
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
pub(super) async fn delete(uow: &mut UnitOfWork, owner: Owner, ids: &[&str]) -> Result<()> {
    let template = match owner {
        Owner::Selector => "DELETE FROM selector_condition WHERE selector_id IN ({ids})",
        Owner::Rule => "DELETE FROM rule_condition WHERE rule_id IN ({ids})",
    };
    execute_in!(uow, template, ids);
    Ok(())
}
