//! Reading the change log.

use longmen_core::sync::{Event, Group};

use super::Operation;
use crate::statement::{execute, fetch_all, fetch_optional, here};
use crate::tx::Tx;
use crate::{Error, Result, Store};

/// One row of the log, as it is read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeRow {
    /// Place within the change set, from 0.
    pub position: u32,
    /// Kind of the object; see `Change::kind`.
    pub kind: String,
    /// Id of the object.
    pub object_id: String,
    /// What happened.
    pub operation: Operation,
    /// The event that stock gateways get.
    pub event: Option<Event>,
    /// JSON of the object before.
    pub before: Option<String>,
    /// JSON of the object after.
    pub after: Option<String>,
    /// Who did it.
    pub actor: String,
    /// By which way: `console`, `api`, `sdk` or `system`.
    pub source: String,
    /// From which address; may be empty.
    pub address: String,
    /// When, in milliseconds since 1970-01-01 UTC.
    pub at_ms: i64,
}

impl ChangeRow {
    /// The group of the wire, `None` for what gateways never see.
    #[must_use]
    pub fn group(&self) -> Option<Group> {
        Group::from_name(&self.kind)
    }
}

/// Everything that one transaction changed in one namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeSet {
    /// The version that is in force with it.
    pub version: u64,
    /// The rows, by position; never empty.
    pub rows: Vec<ChangeRow>,
}

/// What [`since`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Since {
    /// The change sets that follow, by version, without gaps; empty if there is none.
    Sets(Vec<ChangeSet>),
    /// Some of them are gone, or the version was never given out: only a full refresh helps.
    Gap,
}

/// What [`heads`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heads {
    /// The epoch in which the versions count.
    pub epoch: String,
    /// Namespace and version, by namespace; [`GLOBAL`](super::GLOBAL) among them.
    pub versions: Vec<(String, u64)>,
}

#[derive(sqlx::FromRow)]
struct HeadRow {
    namespace_id: String,
    version: i64,
}

#[derive(sqlx::FromRow)]
struct Row {
    version: i64,
    position: i64,
    kind: String,
    object_id: String,
    operation: String,
    event: String,
    before_json: Option<String>,
    after_json: Option<String>,
    actor: String,
    source: String,
    address: String,
    at_ms: i64,
}

#[derive(sqlx::FromRow)]
struct ValueRow {
    value: String,
}

/// Stored JSON that is read at a time, in bytes: what one set holds more than that, or the set in
/// which the limit falls, comes on top.
const BYTES: i64 = 4 * 1024 * 1024;

/// The change sets after `version`.
///
/// Out: at most about `limit` rows and about 4 MiB of them, but whole sets only, and at least one set
/// if there is one. What is left follows the last of them.
///
/// # Errors
/// The database's; [`Error::Corrupt`] for a row that this program cannot read.
pub async fn since(tx: &mut Tx, namespace_id: &str, version: u64, limit: u32) -> Result<Since> {
    let from = super::to_i64(version);
    let state = super::version_row(tx, namespace_id).await?;
    if from > state.version || from < state.dispatch_floor {
        return Ok(Since::Gap);
    }
    let rows = fetch_all!(
        tx,
        Row,
        "SELECT version, position, kind, object_id, operation, event, before_json, after_json,
                actor, source, address, at_ms
         FROM config_change
         WHERE namespace_id = $1 AND version > $2 AND version <= (
             SELECT MAX(version) FROM (
                 SELECT version, SUM(bytes) OVER (ORDER BY version, position) - bytes AS before_it
                 FROM (
                     SELECT version, position,
                            COALESCE(OCTET_LENGTH(before_json), 0)
                                + COALESCE(OCTET_LENGTH(after_json), 0) AS bytes
                     FROM config_change WHERE namespace_id = $1 AND version > $2
                     ORDER BY version, position LIMIT $3) part) summed
             WHERE before_it < $4)
         ORDER BY version, position",
        namespace_id,
        from,
        i64::from(limit.max(1)),
        BYTES,
    )?;
    let sets = group(rows)?;
    let mut expected = version;
    for set in &sets {
        expected += 1;
        if set.version != expected {
            return Ok(Since::Gap);
        }
    }
    if sets.is_empty() && from < state.version {
        return Ok(Since::Gap);
    }
    Ok(Since::Sets(sets))
}

/// The version in force in a namespace; 0 before its first change.
///
/// # Errors
/// The database's.
pub async fn current_version(tx: &mut Tx, namespace_id: &str) -> Result<u64> {
    Ok(super::to_u64(super::version_row(tx, namespace_id).await?.version))
}

/// The epoch, and the version in force in every namespace that has one: what a dispatcher compares
/// its own positions with.
///
/// # Errors
/// The database's; [`Error::Schema`] before [`Store::migrate`].
pub async fn heads(tx: &mut Tx) -> Result<Heads> {
    let rows = fetch_all!(
        tx,
        HeadRow,
        "SELECT namespace_id, version FROM config_version ORDER BY namespace_id",
    )?;
    let versions =
        rows.into_iter().map(|row| (row.namespace_id, super::to_u64(row.version))).collect();
    Ok(Heads { epoch: epoch(tx).await?, versions })
}

/// The epoch: versions of different epochs do not compare.
///
/// # Errors
/// The database's; [`Error::Schema`] before [`Store::migrate`].
pub async fn epoch(tx: &mut Tx) -> Result<String> {
    let row = fetch_optional!(tx, ValueRow, "SELECT value FROM install WHERE name = 'epoch'")?;
    row.map(|row| row.value).ok_or_else(|| Error::Schema("there is no epoch yet".to_owned()))
}

/// Begins a new epoch, so that every gateway asks for everything: after a restored backup. Out: the
/// new epoch.
///
/// # Errors
/// The database's; [`Error::Schema`] before [`Store::migrate`].
pub async fn renew_epoch(store: &Store) -> Result<String> {
    // Another one may renew it at the same time; either way it is a new one.
    let present = epoch(&mut *store.read().await?).await?;
    renew_epoch_from(store, &present).await
}

/// As [`renew_epoch`], where `from` turns out to be no longer true of this database: a gateway has a
/// version of it that was never given out here. Does nothing if somebody else has renewed it since.
/// Out: the epoch that is then in force.
///
/// # Errors
/// The database's; [`Error::Schema`] before [`Store::migrate`].
pub async fn renew_epoch_from(store: &Store, from: &str) -> Result<String> {
    let new = store.shared().entropy().token();
    let mut tx = store.write().await?;
    let renewed = execute!(
        tx,
        "UPDATE install SET value = $1 WHERE name = 'epoch' AND value = $2",
        new.as_str(),
        from,
    )?;
    if renewed == 0 {
        return epoch(&mut tx).await;
    }
    crate::dialect::notify(&mut tx).await?;
    tx.commit().await.map_err(|source| Error::sql(here!(), source))?;
    store.shared().wake();
    Ok(new)
}

fn group(rows: Vec<Row>) -> Result<Vec<ChangeSet>> {
    let mut sets: Vec<ChangeSet> = Vec::new();
    for row in rows {
        let version = super::to_u64(row.version);
        let row = read_row(row)?;
        match sets.last_mut() {
            Some(set) if set.version == version => set.rows.push(row),
            _ => sets.push(ChangeSet { version, rows: vec![row] }),
        }
    }
    Ok(sets)
}

fn read_row(row: Row) -> Result<ChangeRow> {
    let corrupt = |reason: String| Error::Corrupt {
        table: "config_change",
        id: format!("{} position {}", row.version, row.position),
        reason,
    };
    let operation = Operation::from_name(&row.operation)
        .ok_or_else(|| corrupt(format!("unknown operation {}", row.operation)))?;
    let event = match row.event.as_str() {
        "" => None,
        name => {
            Some(Event::from_name(name).ok_or_else(|| corrupt(format!("unknown event {name}")))?)
        }
    };
    Ok(ChangeRow {
        position: u32::try_from(row.position)
            .map_err(|_| corrupt("position out of range".to_owned()))?,
        kind: row.kind,
        object_id: row.object_id,
        operation,
        event,
        before: row.before_json,
        after: row.after_json,
        actor: row.actor,
        source: row.source,
        address: row.address,
        at_ms: row.at_ms,
    })
}
