//! Gateways that are or were connected to one of the admins, and the admins that run.
//!
//! Admins write what they know of their gateways now and then, many rows at a time; a late word about a
//! session that the gateway has left replaces nothing. Who is gone is told by the database's time.

use super::CountRow;
use crate::page::Like;
use crate::statement::{execute, fetch_all, fetch_one, here, on_conn, values};
use crate::tx::Tx;
use crate::{Error, Result, dialect};

/// How long an admin that says nothing counts as running, in milliseconds.
const ALIVE_MS: i64 = 12_000;

/// How long an admin that says nothing is remembered, in milliseconds.
const FORGET_MS: i64 = 600_000;

/// Rows of one `INSERT`.
const ROWS: usize = 32;

/// Columns of one row.
const COLUMNS: usize = 18;

/// What is known of one gateway. Times are in milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct GatewayRow {
    /// Its own name for itself, or that of its connection where it has none.
    pub id: String,
    /// Its own count of its sessions; 0 where it does not count.
    pub session: i64,
    /// The process of the admin that wrote this.
    pub admin_id: String,
    /// That admin, as people know it: `host:port`.
    pub admin_name: String,
    /// The namespace it serves.
    pub namespace_id: String,
    /// Its host.
    pub host: String,
    /// The port it serves on, if it said so.
    pub port: Option<i32>,
    /// `longmen` or `stock`.
    pub kind: String,
    /// How it is connected, such as `websocket`.
    pub transport: String,
    /// Whether it is connected.
    pub connected: bool,
    /// Since when it is, or is not.
    pub since_ms: i64,
    /// The epoch of `version`.
    pub epoch: Option<String>,
    /// The version in force on it.
    pub version: Option<i64>,
    /// Since when that version is in force.
    pub in_force_ms: Option<i64>,
    /// When it was last heard.
    pub heard_ms: i64,
    /// What it reported of its machine, JSON text.
    pub info: Option<String>,
    /// What it could not take over, JSON text of a list.
    pub faults: String,
}

/// Which gateways a list holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GatewayFilter {
    /// Exactly this namespace.
    pub namespace_id: Option<String>,
    /// Only those that are connected, or only those that are not.
    pub connected: Option<bool>,
    /// Text in the address or the name of the admin.
    pub text: Option<Like>,
}

/// How many gateways have one version in force.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct InForceRow {
    /// The namespace they serve.
    pub namespace_id: String,
    /// The epoch of `version`; none where they do not say.
    pub epoch: Option<String>,
    /// The version.
    pub version: Option<i64>,
    /// How many there are.
    pub gateways: i64,
}

/// Says that this admin runs. Out: the milliseconds since it last said so; `None` for the first time.
///
/// # Errors
/// The database's.
pub async fn admin_lives(tx: &mut Tx, name: &str, started_ms: i64) -> Result<Option<i64>> {
    let now_ms = dialect::now_ms(tx).await?;
    let id = tx.shared().owner().to_owned();
    let seen: Vec<CountRow> =
        fetch_all!(tx, CountRow, "SELECT seen_ms AS n FROM admin_process WHERE id = $1", &*id)?;
    execute!(
        tx,
        "INSERT INTO admin_process (id, name, started_ms, seen_ms) VALUES ($1, $2, $3, $4)
         ON CONFLICT (id) DO UPDATE SET seen_ms = excluded.seen_ms, name = excluded.name",
        &*id,
        name,
        started_ms,
        now_ms,
    )?;
    Ok(seen.first().map(|row| now_ms - row.n))
}

/// Says that this admin ends: its gateways are gone with it.
///
/// # Errors
/// The database's.
pub async fn admin_leaves(tx: &mut Tx, at_ms: i64) -> Result<()> {
    let now_ms = dialect::now_ms(tx).await?;
    let id = tx.shared().owner().to_owned();
    execute!(
        tx,
        "UPDATE gateway_report SET connected = $1, since_ms = $2, written_ms = $3
         WHERE admin_id = $4 AND connected = $5",
        false,
        at_ms,
        now_ms,
        &*id,
        true,
    )?;
    execute!(tx, "DELETE FROM admin_process WHERE id = $1", &*id).map(drop)
}

/// Writes what is known of gateways; each comes once.
///
/// # Errors
/// The database's.
pub async fn put(tx: &mut Tx, rows: &[GatewayRow]) -> Result<()> {
    const HEAD: &str =
        "INSERT INTO gateway_report (id, session, admin_id, admin_name, namespace_id,
         host, port, kind, transport, connected, since_ms, epoch, version, in_force_ms, heard_ms,
         info, faults, written_ms) VALUES";
    const TAIL: &str = " ON CONFLICT (id) DO UPDATE SET session = excluded.session,
         admin_id = excluded.admin_id, admin_name = excluded.admin_name,
         namespace_id = excluded.namespace_id, host = excluded.host, port = excluded.port,
         kind = excluded.kind, transport = excluded.transport, connected = excluded.connected,
         since_ms = excluded.since_ms, epoch = excluded.epoch, version = excluded.version,
         in_force_ms = excluded.in_force_ms, heard_ms = excluded.heard_ms, info = excluded.info,
         faults = excluded.faults, written_ms = excluded.written_ms
         WHERE excluded.session > gateway_report.session
            OR (excluded.session = gateway_report.session
                AND excluded.admin_id = gateway_report.admin_id)";
    if rows.is_empty() {
        return Ok(());
    }
    let now_ms = dialect::now_ms(tx).await?;
    // In one order, so that two admins that write the same rows do not wait for each other.
    let mut sorted: Vec<&GatewayRow> = rows.iter().collect();
    sorted.sort_unstable_by(|a, b| a.id.cmp(&b.id));
    for chunk in sorted.chunks(ROWS) {
        let sql = sqlx::AssertSqlSafe(values(HEAD, chunk.len(), COLUMNS).0 + TAIL);
        on_conn!(tx, |conn| {
            let mut query = sqlx::query(sql);
            for row in chunk {
                query = query
                    .bind(&*row.id)
                    .bind(row.session)
                    .bind(&*row.admin_id)
                    .bind(&*row.admin_name)
                    .bind(&*row.namespace_id)
                    .bind(&*row.host)
                    .bind(row.port)
                    .bind(&*row.kind)
                    .bind(&*row.transport)
                    .bind(row.connected)
                    .bind(row.since_ms)
                    .bind(row.epoch.as_deref())
                    .bind(row.version)
                    .bind(row.in_force_ms)
                    .bind(row.heard_ms)
                    .bind(row.info.as_deref())
                    .bind(&*row.faults)
                    .bind(now_ms);
            }
            query.execute(conn).await.map(drop)
        })
        .map_err(|source| Error::sql(here!(), source))?;
    }
    Ok(())
}

/// Connected, as far as the admin that says so is alive; `$1` is the least time of its last word.
macro_rules! connected {
    () => {
        "(g.connected AND EXISTS (SELECT 1 FROM admin_process a
              WHERE a.id = g.admin_id AND a.seen_ms >= CAST($1 AS BIGINT)))"
    };
}

macro_rules! filtered {
    ($select:expr, $rest:expr) => {
        concat!(
            $select,
            " FROM gateway_report g
             WHERE (CAST($2 AS TEXT) IS NULL OR g.namespace_id = $2)
               AND (CAST($3 AS BOOLEAN) IS NULL OR ",
            connected!(),
            " = $3)
               AND (CAST($4 AS TEXT) IS NULL OR LOWER(g.host) LIKE $4 ESCAPE '\\'
                    OR LOWER(g.admin_name) LIKE $4 ESCAPE '\\') ",
            $rest
        )
    };
}

/// Gateways, by namespace and address. Out: those from `offset` on, at most `limit`, and how many
/// there are.
///
/// # Errors
/// The database's.
pub async fn list(
    tx: &mut Tx,
    filter: &GatewayFilter,
    offset: i64,
    limit: i64,
) -> Result<(Vec<GatewayRow>, i64)> {
    let alive_ms = dialect::now_ms(tx).await? - ALIVE_MS;
    let GatewayFilter { namespace_id, connected, text } = filter;
    let rows = fetch_all!(
        tx,
        GatewayRow,
        filtered!(
            concat!(
                "SELECT g.id, g.session, g.admin_id, g.admin_name, g.namespace_id, g.host, g.port,
                        g.kind, g.transport, ",
                connected!(),
                " AS connected, g.since_ms, g.epoch, g.version, g.in_force_ms, g.heard_ms, g.info,
                        g.faults"
            ),
            "ORDER BY g.namespace_id, g.host, g.port, g.id LIMIT $5 OFFSET $6"
        ),
        alive_ms,
        namespace_id.as_deref(),
        *connected,
        text.as_ref().map(Like::as_str),
        limit,
        offset,
    )?;
    let total = fetch_one!(
        tx,
        CountRow,
        filtered!("SELECT COUNT(*) AS n", ""),
        alive_ms,
        namespace_id.as_deref(),
        *connected,
        text.as_ref().map(Like::as_str),
    )?;
    Ok((rows, total.n))
}

/// How many connected gateways have which version in force.
///
/// # Errors
/// The database's.
pub async fn in_force(tx: &mut Tx, namespace_id: Option<&str>) -> Result<Vec<InForceRow>> {
    let alive_ms = dialect::now_ms(tx).await? - ALIVE_MS;
    fetch_all!(
        tx,
        InForceRow,
        concat!(
            "SELECT g.namespace_id, g.epoch, g.version, COUNT(*) AS gateways
             FROM gateway_report g
             WHERE ",
            connected!(),
            " AND (CAST($2 AS TEXT) IS NULL OR g.namespace_id = $2)
             GROUP BY g.namespace_id, g.epoch, g.version
             ORDER BY g.namespace_id, g.epoch, g.version"
        ),
        alive_ms,
        namespace_id,
    )
}

/// Marks the gateways of admins that are gone, and forgets those that are gone for longer than
/// `keep_ms`, those whose address another one has now, and all but the newest `most`. Out: how many
/// were marked, and how many forgotten.
///
/// # Errors
/// The database's.
pub async fn sweep(tx: &mut Tx, at_ms: i64, keep_ms: i64, most: i64) -> Result<(u64, u64)> {
    let now_ms = dialect::now_ms(tx).await?;
    let marked = execute!(
        tx,
        "UPDATE gateway_report SET connected = $1, since_ms = $2, written_ms = $3
         WHERE connected = $4 AND NOT EXISTS (SELECT 1 FROM admin_process a
             WHERE a.id = gateway_report.admin_id AND a.seen_ms >= $5)",
        false,
        at_ms,
        now_ms,
        true,
        now_ms - ALIVE_MS,
    )?;
    execute!(tx, "DELETE FROM admin_process WHERE seen_ms < $1", now_ms - FORGET_MS)?;
    let forgotten = execute!(
        tx,
        "DELETE FROM gateway_report WHERE connected = $1 AND (written_ms < $2 OR EXISTS (
             SELECT 1 FROM gateway_report o
             WHERE o.connected = $3 AND o.namespace_id = gateway_report.namespace_id
               AND o.host = gateway_report.host AND o.kind = gateway_report.kind
               AND COALESCE(o.port, 0) = COALESCE(gateway_report.port, 0))
             OR id IN (SELECT id FROM gateway_report WHERE connected = $1
                       ORDER BY written_ms DESC, id LIMIT 1000000 OFFSET $4))",
        false,
        now_ms - keep_ms,
        true,
        most,
    )?;
    Ok((marked, forgotten))
}

/// When a version was committed, in milliseconds since 1970-01-01 UTC; `None` once it is no longer in the
/// history.
///
/// # Errors
/// The database's.
pub async fn committed_ms(tx: &mut Tx, namespace_id: &str, version: i64) -> Result<Option<i64>> {
    let rows = fetch_all!(
        tx,
        CountRow,
        "SELECT at_ms AS n FROM config_change
         WHERE namespace_id = $1 AND version = $2 ORDER BY position LIMIT 1",
        namespace_id,
        version,
    )?;
    Ok(rows.first().map(|row| row.n))
}
