//! The operation log: what users did, in words.

use super::CountRow;
use crate::Result;
use crate::page::{Keyword, Page, PageRequest};
use crate::statement::{execute, fetch_all, fetch_one};
use crate::tx::{Tx, UnitOfWork};

/// An entry.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct OperationRow {
    /// Id of the entry.
    pub id: String,
    /// Colour that consoles show it in.
    pub color: String,
    /// What was done, in words.
    pub context: String,
    /// Who did it.
    pub operator: String,
    /// Its type, such as `CREATE:Selector`.
    pub operation_type: String,
    /// When, in milliseconds since 1970-01-01 UTC.
    pub at_ms: i64,
}

/// Which entries a list holds; what is empty or `None` does not narrow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperationFilter {
    /// Text in the words.
    pub keyword: Keyword,
    /// Exactly this type.
    pub operation_type: Option<String>,
    /// Exactly this user.
    pub operator: Option<String>,
    /// From this time on, in milliseconds since 1970-01-01 UTC.
    pub from_ms: Option<i64>,
    /// Up to this time, itself included.
    pub to_ms: Option<i64>,
}

macro_rules! filter {
    () => {
        " WHERE (CAST($1 AS TEXT) IS NULL OR LOWER(context) LIKE $1 ESCAPE '\\')
            AND (CAST($2 AS TEXT) IS NULL OR LOWER(context) NOT LIKE $2 ESCAPE '\\')
            AND (CAST($3 AS TEXT) IS NULL OR operation_type = $3)
            AND (CAST($4 AS TEXT) IS NULL OR operator = $4)
            AND (CAST($5 AS BIGINT) IS NULL OR at_ms >= $5)
            AND (CAST($6 AS BIGINT) IS NULL OR at_ms <= $6)"
    };
}

/// Adds an entry by the unit's actor.
///
/// # Errors
/// The database's.
pub async fn insert(
    uow: &mut UnitOfWork,
    color: &str,
    operation_type: &str,
    context: &str,
) -> Result<()> {
    let id = uow.next_id()?;
    let now_ms = uow.now_ms();
    let operator = uow.actor().name.clone();
    execute!(
        uow,
        "INSERT INTO operation_record_log (id, color, context, operator, operation_type, at_ms)
         VALUES ($1, $2, $3, $4, $5, $6)",
        id.as_str(),
        color,
        context,
        operator.as_str(),
        operation_type,
        now_ms,
    )?;
    Ok(())
}

/// One page of entries, the newest first.
///
/// # Errors
/// The database's.
pub async fn page(
    tx: &mut Tx,
    filter: &OperationFilter,
    request: PageRequest,
) -> Result<Page<OperationRow>> {
    let total = fetch_one!(
        tx,
        CountRow,
        concat!("SELECT COUNT(*) AS n FROM operation_record_log", filter!()),
        filter.keyword.include(),
        filter.keyword.exclude(),
        filter.operation_type.as_deref(),
        filter.operator.as_deref(),
        filter.from_ms,
        filter.to_ms,
    )?
    .n;
    let rows = fetch_all!(
        tx,
        OperationRow,
        concat!(
            "SELECT id, color, context, operator, operation_type, at_ms FROM operation_record_log",
            filter!(),
            " ORDER BY at_ms DESC, id DESC LIMIT $7 OFFSET $8"
        ),
        filter.keyword.include(),
        filter.keyword.exclude(),
        filter.operation_type.as_deref(),
        filter.operator.as_deref(),
        filter.from_ms,
        filter.to_ms,
        request.size(),
        request.offset(),
    )?;
    Ok(Page { request, rows, total })
}

/// Deletes the oldest of the entries before a time, at most `limit`. Out: how many there were.
pub(crate) async fn clean(tx: &mut Tx, before_ms: i64, limit: i64) -> Result<u64> {
    execute!(
        tx,
        "DELETE FROM operation_record_log WHERE id IN (
             SELECT id FROM operation_record_log WHERE at_ms < $1 ORDER BY at_ms, id LIMIT $2)",
        before_ms,
        limit,
    )
}
