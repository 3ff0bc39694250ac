//! The change log: outbox and history in one.
//!
//! `config_change` has one row per changed object. All rows of one transaction and namespace are a
//! *change set* and share one version. The version is taken when everything else of the transaction
//! is written, by an update of the namespace's row in `config_version`: that row stays locked until
//! the commit, so the order of versions is the order of commits, and a version that is rolled back
//! is given out again. Only the rows of the change set itself are written after it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use longmen_core::sync::{Event, Group};
use serde::Serialize;
use sqlx::AssertSqlSafe;

use crate::statement::{fetch_one, fetch_optional, here, on_conn, values};
use crate::tx::{Actor, Conn, NewVersion, Tx};
use crate::{Error, Result};

mod log;
mod prune;

pub use log::{
    ChangeRow, ChangeSet, Heads, Since, current_version, epoch, heads, renew_epoch,
    renew_epoch_from, since,
};
pub use prune::{Pruned, Retention, prune};

/// The namespace id under which objects are counted that belong to no namespace: users, plugin
/// templates, dictionary rows.
pub const GLOBAL: &str = "";

/// Rows of one `INSERT`.
const ROWS: usize = 200;

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// It is new.
    Create,
    /// It replaces what was there.
    Update,
    /// It is gone.
    Delete,
    /// It is the same as before and to be sent again.
    Refresh,
}

impl Operation {
    /// The word that is stored.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Refresh => "refresh",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [Self::Create, Self::Update, Self::Delete, Self::Refresh]
            .into_iter()
            .find(|operation| operation.name() == name)
    }
}

/// One changed object, as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Its namespace; [`GLOBAL`] for objects without one.
    pub namespace_id: String,
    /// Its kind: a group name of the wire, or a word of ours for what gateways never see.
    pub kind: Cow<'static, str>,
    /// Its id; for `DISCOVER_UPSTREAM` that of the selector.
    pub object_id: String,
    /// What happened.
    pub operation: Operation,
    /// The event that stock gateways get; `None` if they get none.
    pub event: Option<Event>,
    /// JSON of the object before, if there was one.
    pub before: Option<String>,
    /// JSON of the object after, if there is one.
    pub after: Option<String>,
}

impl Change {
    /// A change of something that gateways know. Add the object by [`Change::before`] and
    /// [`Change::after`], and by [`Change::stock_event`] what stock gateways get.
    #[must_use]
    pub fn new(
        namespace_id: impl Into<String>,
        group: Group,
        object_id: impl Into<String>,
        operation: Operation,
    ) -> Self {
        Self {
            namespace_id: namespace_id.into(),
            kind: Cow::Borrowed(group.name()),
            object_id: object_id.into(),
            operation,
            event: None,
            before: None,
            after: None,
        }
    }

    /// A change of something that gateways never see; `kind` is a word such as `NAMESPACE`.
    #[must_use]
    pub fn internal(
        namespace_id: impl Into<String>,
        kind: &'static str,
        object_id: impl Into<String>,
        operation: Operation,
    ) -> Self {
        Self {
            namespace_id: namespace_id.into(),
            kind: Cow::Borrowed(kind),
            object_id: object_id.into(),
            operation,
            event: None,
            before: None,
            after: None,
        }
    }

    /// The event that stock gateways get.
    #[must_use]
    pub const fn stock_event(mut self, event: Event) -> Self {
        self.event = Some(event);
        self
    }

    /// The object as it was.
    #[must_use]
    pub fn before<T: Serialize + ?Sized>(mut self, object: &T) -> Self {
        self.before = Some(json(object));
        self
    }

    /// The object as it is.
    #[must_use]
    pub fn after<T: Serialize + ?Sized>(mut self, object: &T) -> Self {
        self.after = Some(json(object));
        self
    }
}

fn json<T: Serialize + ?Sized>(object: &T) -> String {
    serde_json::to_string(object)
        .expect("objects of the model hold only strings, numbers and lists")
}

#[derive(sqlx::FromRow)]
struct VersionRow {
    version: i64,
    dispatch_floor: i64,
}

/// Takes one version per namespace and writes the rows. Last thing before the commit.
pub(crate) async fn append(
    tx: &mut Tx,
    actor: &Actor,
    changes: Vec<Change>,
) -> Result<Vec<NewVersion>> {
    // In the order of the ids: two transactions over several namespaces never wait for each other
    // in a ring.
    let mut sets: BTreeMap<String, Vec<Change>> = BTreeMap::new();
    for change in changes {
        sets.entry(change.namespace_id.clone()).or_default().push(change);
    }
    let at_ms = tx.now_ms();
    if let Some((namespace_id, set)) = sets.first_key_value().filter(|_| sets.len() == 1)
        && set.len() <= ROWS
        && let Some(version) = append_at_once(tx, actor, namespace_id, set, at_ms).await?
    {
        return Ok(vec![NewVersion { namespace_id: namespace_id.clone(), version }]);
    }
    let mut versions = Vec::with_capacity(sets.len());
    for namespace_id in sets.keys() {
        let row = fetch_one!(
            tx,
            VersionRow,
            "INSERT INTO config_version (namespace_id, version) VALUES ($1, 1)
             ON CONFLICT (namespace_id) DO UPDATE SET version = config_version.version + 1
             RETURNING version, dispatch_floor",
            namespace_id.as_str(),
        )?;
        let version = to_u64(row.version);
        versions.push(NewVersion { namespace_id: namespace_id.clone(), version });
    }
    for (set, version) in sets.values().zip(&versions) {
        insert_rows(tx, actor, set, to_i64(version.version), at_ms).await?;
    }
    Ok(versions)
}

/// Takes the version and writes the rows of one namespace in one statement, so that those who wait for
/// the version wait for one answer less; `None` where the store has no such statement.
async fn append_at_once(
    tx: &mut Tx,
    actor: &Actor,
    namespace_id: &str,
    set: &[Change],
    at_ms: i64,
) -> Result<Option<u64>> {
    const HEAD: &str = "WITH taken AS (
            INSERT INTO config_version (namespace_id, version) VALUES ($1, 1)
            ON CONFLICT (namespace_id) DO UPDATE SET version = config_version.version + 1
            RETURNING version),
        written AS (
            INSERT INTO config_change (namespace_id, version, actor, source, address, at_ms, position,
                kind, object_id, operation, event, before_json, after_json)
            SELECT $1, taken.version, $2, $3, $4, $5, change.* FROM taken CROSS JOIN (VALUES";
    const TAIL: &str = ") AS change) SELECT version FROM taken";
    const TYPES: [&str; 7] = ["bigint", "text", "text", "text", "text", "text", "text"];
    const FIXED: usize = 5;

    let Conn::Pg(transaction) = tx.conn() else { return Ok(None) };
    let mut sql = HEAD.to_owned();
    for row in 0..set.len() {
        let first = FIXED + row * TYPES.len();
        let typed = (1_usize..).zip(TYPES).map(|(n, of)| format!("${}::{of}", first + n));
        let before = if row == 0 { "(" } else { ", (" };
        let _ = write!(sql, "{before}{})", typed.collect::<Vec<_>>().join(", "));
    }
    sql.push_str(TAIL);
    let mut query = sqlx::query_scalar::<_, i64>(AssertSqlSafe(sql))
        .bind(namespace_id)
        .bind(actor.name.as_str())
        .bind(actor.source.name())
        .bind(actor.address.as_str())
        .bind(at_ms);
    for (position, change) in (0_i64..).zip(set) {
        query = query
            .bind(position)
            .bind(&*change.kind)
            .bind(change.object_id.as_str())
            .bind(change.operation.name())
            .bind(change.event.map_or("", Event::name))
            .bind(change.before.as_deref())
            .bind(change.after.as_deref());
    }
    let version = query.fetch_one(&mut **transaction).await;
    version.map(|version| Some(to_u64(version))).map_err(|source| Error::sql(here!(), source))
}

async fn insert_rows(
    tx: &mut Tx,
    actor: &Actor,
    set: &[Change],
    version: i64,
    at_ms: i64,
) -> Result<()> {
    const HEAD: &str =
        "INSERT INTO config_change (namespace_id, version, position, kind, object_id,
        operation, event, before_json, after_json, actor, source, address, at_ms) VALUES";

    let mut position = 0_i64;
    for chunk in set.chunks(ROWS) {
        let sql = values(HEAD, chunk.len(), 13);
        on_conn!(tx, |conn| {
            let mut query = sqlx::query(sql);
            for change in chunk {
                query = query
                    .bind(change.namespace_id.as_str())
                    .bind(version)
                    .bind(position)
                    .bind(&*change.kind)
                    .bind(change.object_id.as_str())
                    .bind(change.operation.name())
                    .bind(change.event.map_or("", Event::name))
                    .bind(change.before.as_deref())
                    .bind(change.after.as_deref())
                    .bind(actor.name.as_str())
                    .bind(actor.source.name())
                    .bind(actor.address.as_str())
                    .bind(at_ms);
                position += 1;
            }
            query.execute(conn).await.map(|_| ())
        })
        .map_err(|source| Error::sql(here!(), source))?;
    }
    Ok(())
}

async fn version_row(tx: &mut Tx, namespace_id: &str) -> Result<VersionRow> {
    let row = fetch_optional!(
        tx,
        VersionRow,
        "SELECT version, dispatch_floor FROM config_version WHERE namespace_id = $1",
        namespace_id,
    )?;
    Ok(row.unwrap_or(VersionRow { version: 0, dispatch_floor: 0 }))
}

fn to_i64(version: u64) -> i64 {
    i64::try_from(version).unwrap_or(i64::MAX)
}

fn to_u64(version: i64) -> u64 {
    u64::try_from(version).unwrap_or(0)
}
