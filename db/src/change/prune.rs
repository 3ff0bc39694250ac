//! Keeping the change log and the operation log small.
//!
//! In short transactions: writers of configuration wait for the rows of `config_version`, and on
//! SQLite for every transaction that writes.

use super::{to_i64, to_u64};
use crate::repository::operation_log;
use crate::statement::{execute, fetch_all, fetch_optional, here};
use crate::{Error, Result, Store};

/// Rows that one transaction deletes.
const CHUNK: i64 = 2_000;

/// What [`prune`] keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Change sets per namespace that gateways can still be caught up with.
    pub dispatch_sets: u64,
    /// Age up to which they can, in milliseconds.
    pub dispatch_ms: i64,
    /// Age up to which history is kept, in milliseconds; not below `dispatch_ms`.
    pub history_ms: i64,
}

/// What [`prune`] took away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Rows of the change log.
    pub changes: u64,
    /// Rows of the operation log.
    pub operations: u64,
}

#[derive(sqlx::FromRow)]
struct HeadRow {
    namespace_id: String,
    version: i64,
    dispatch_floor: i64,
}

#[derive(sqlx::FromRow)]
struct FloorRow {
    floor: Option<i64>,
}

/// Takes old change sets out of the dispatch view, and older ones out of the history; the operation
/// log is kept as long as the history.
///
/// A gateway further behind than the dispatch view gets a full refresh. Several admins may do this at
/// once; each batch of rows is one admin's.
///
/// # Errors
/// The database's. What was taken away until then stays away.
pub async fn prune(store: &Store, retention: Retention) -> Result<Pruned> {
    let now_ms = store.now_ms();
    let history_ms = now_ms - retention.history_ms.max(retention.dispatch_ms);
    raise_floors(store, retention, now_ms - retention.dispatch_ms).await?;
    Ok(Pruned {
        changes: in_batches(store, Log::Changes, history_ms).await?,
        operations: in_batches(store, Log::Operations, history_ms).await?,
    })
}

/// Moves the floors of the dispatch view. Only those that rise are written, all in one transaction in
/// the order in which a commit takes its versions.
async fn raise_floors(store: &Store, retention: Retention, before_ms: i64) -> Result<()> {
    let mut tx = store.read().await?;
    let heads = fetch_all!(
        tx,
        HeadRow,
        "SELECT namespace_id, version, dispatch_floor FROM config_version ORDER BY namespace_id",
    )?;
    let mut risen = Vec::new();
    for head in heads {
        let by_age = fetch_optional!(
            tx,
            FloorRow,
            "SELECT MAX(version) AS floor FROM config_change
             WHERE namespace_id = $1 AND version > $2 AND at_ms < $3",
            head.namespace_id.as_str(),
            head.dispatch_floor,
            before_ms,
        )?;
        let by_age = by_age.and_then(|row| row.floor).unwrap_or_default();
        let by_count = to_u64(head.version).saturating_sub(retention.dispatch_sets);
        let floor = by_age.max(to_i64(by_count));
        if floor > head.dispatch_floor {
            risen.push((head.namespace_id, floor));
        }
    }
    drop(tx);
    if risen.is_empty() {
        return Ok(());
    }
    let mut tx = store.write().await?;
    for (namespace_id, floor) in risen {
        execute!(
            tx,
            "UPDATE config_version SET dispatch_floor = $1
             WHERE namespace_id = $2 AND dispatch_floor < $1",
            floor,
            namespace_id,
        )?;
    }
    tx.commit().await.map_err(|source| Error::sql(here!(), source))
}

/// What has rows to delete.
#[derive(Debug, Clone, Copy)]
enum Log {
    Changes,
    Operations,
}

/// Deletes what is older, each batch in a transaction of its own. Out: rows deleted.
async fn in_batches(store: &Store, log: Log, before_ms: i64) -> Result<u64> {
    let mut deleted = 0;
    loop {
        let mut tx = store.write().await?;
        // One admin at a time: two that delete the same rows would hold them in any order.
        execute!(
            tx,
            "INSERT INTO install (name, value) VALUES ('pruned_ms', $1)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            store.now_ms().to_string(),
        )?;
        let batch = match log {
            Log::Changes => execute!(
                tx,
                "DELETE FROM config_change WHERE (namespace_id, version, position) IN (
                     SELECT c.namespace_id, c.version, c.position
                     FROM config_change c JOIN config_version v ON v.namespace_id = c.namespace_id
                     WHERE c.at_ms < $1 AND c.version <= v.dispatch_floor
                     ORDER BY c.at_ms LIMIT $2)",
                before_ms,
                CHUNK,
            )?,
            Log::Operations => operation_log::clean(&mut tx, before_ms, CHUNK).await?,
        };
        tx.commit().await.map_err(|source| Error::sql(here!(), source))?;
        deleted += batch;
        if batch < CHUNK.unsigned_abs() {
            return Ok(deleted);
        }
    }
}
