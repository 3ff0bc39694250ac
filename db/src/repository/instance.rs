//! Instances that say that they are alive: gateways of any kind, and services.
//!
//! Ages are by the database's time, so that admins whose clocks differ agree.
//!
//! Source: ShenYu 2.7.1, its instance table and states.

use super::CountRow;
use crate::page::Like;
use crate::statement::{execute, fetch_all, fetch_optional, here, on_conn, values};
use crate::tx::Tx;
use crate::{Error, Result, dialect};

/// Rows of one `INSERT`.
const ROWS: usize = 64;

/// Points of the trend that are kept.
const POINTS: i64 = 20;

/// Most instances of one list.
const MAX_LIST: i64 = 5_000;

/// How an instance is known.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceKey {
    /// Its namespace.
    pub namespace_id: String,
    /// Its address.
    pub ip: String,
    /// Its port, as text.
    pub port: String,
    /// `bootstrap`, `client` or what it calls itself.
    pub kind: String,
}

/// A stored instance.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct InstanceRow {
    /// Its namespace.
    pub namespace_id: String,
    /// Its address.
    pub instance_ip: String,
    /// Its port, as text.
    pub instance_port: String,
    /// What it is.
    pub instance_type: String,
    /// What it said of its machine at its first word.
    pub instance_info: String,
    /// 0 deleted, 1 online, 2 offline.
    pub instance_state: i32,
    /// When it was last heard, in milliseconds since 1970-01-01 UTC.
    pub beat_ms: i64,
    /// When it was first heard, in milliseconds since 1970-01-01 UTC.
    pub created_ms: i64,
}

/// How old the last word of an instance may be, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstanceAges {
    /// Older: offline.
    pub offline_ms: i64,
    /// Older: deleted.
    pub deleted_ms: i64,
    /// Older: forgotten.
    pub forgotten_ms: i64,
}

/// How many instances there were in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct InstanceCounts {
    /// Deleted.
    pub deleted: i64,
    /// Online.
    pub online: i64,
    /// Offline.
    pub offline: i64,
}

/// An instance of a service as it registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Farewell<'a> {
    /// Its namespace.
    pub namespace_id: &'a str,
    /// The plugin that serves it.
    pub plugin: &'a str,
    /// The name of its selector.
    pub selector: &'a str,
    /// `host:port`.
    pub url: &'a str,
}

/// Notes that instances are alive; each comes once. What they said first of their machine stays.
///
/// # Errors
/// The database's.
pub async fn beat(tx: &mut Tx, beats: &[(InstanceKey, String)]) -> Result<()> {
    const HEAD: &str = "INSERT INTO instance_info (namespace_id, instance_ip, instance_port,
         instance_type, instance_info, instance_state, beat_ms, created_ms) VALUES";
    const TAIL: &str = " ON CONFLICT (namespace_id, instance_ip, instance_port, instance_type)
         DO UPDATE SET instance_state = excluded.instance_state, beat_ms = excluded.beat_ms";
    if beats.is_empty() {
        return Ok(());
    }
    let now_ms = dialect::now_ms(tx).await?;
    let mut sorted: Vec<&(InstanceKey, String)> = beats.iter().collect();
    sorted.sort_unstable();
    for chunk in sorted.chunks(ROWS) {
        let sql = sqlx::AssertSqlSafe(values(HEAD, chunk.len(), 8).0 + TAIL);
        on_conn!(tx, |conn| {
            let mut query = sqlx::query(sql);
            for (key, info) in chunk {
                query = query
                    .bind(&*key.namespace_id)
                    .bind(&*key.ip)
                    .bind(&*key.port)
                    .bind(&*key.kind)
                    .bind(&**info)
                    .bind(1_i32)
                    .bind(now_ms)
                    .bind(now_ms);
            }
            query.execute(conn).await.map(drop)
        })
        .map_err(|source| Error::sql(here!(), source))?;
    }
    Ok(())
}

/// The instances of a namespace, the first that was heard first; at most 5,000. What is `None` does not
/// narrow.
///
/// # Errors
/// The database's.
pub async fn list(
    tx: &mut Tx,
    namespace_id: &str,
    kind: Option<&str>,
    ip: Option<&Like>,
    port: Option<&str>,
) -> Result<Vec<InstanceRow>> {
    fetch_all!(
        tx,
        InstanceRow,
        "SELECT namespace_id, instance_ip, instance_port, instance_type, instance_info,
                instance_state, beat_ms, created_ms
         FROM instance_info
         WHERE namespace_id = $1 AND (CAST($2 AS TEXT) IS NULL OR instance_type = $2)
           AND (CAST($3 AS TEXT) IS NULL OR LOWER(instance_ip) LIKE $3 ESCAPE '\\')
           AND (CAST($4 AS TEXT) IS NULL OR instance_port = $4)
         ORDER BY created_ms, instance_ip, instance_port, instance_type LIMIT $5",
        namespace_id,
        kind,
        ip.map(Like::as_str),
        port,
        MAX_LIST,
    )
}

/// How many instances of a namespace there are in each state.
///
/// # Errors
/// The database's.
pub async fn count(tx: &mut Tx, namespace_id: Option<&str>) -> Result<InstanceCounts> {
    #[derive(sqlx::FromRow)]
    struct StateRow {
        instance_state: i32,
        n: i64,
    }
    let rows = fetch_all!(
        tx,
        StateRow,
        "SELECT instance_state, COUNT(*) AS n FROM instance_info
         WHERE (CAST($1 AS TEXT) IS NULL OR namespace_id = $1)
         GROUP BY instance_state",
        namespace_id,
    )?;
    let of = |state| rows.iter().find(|row| row.instance_state == state).map_or(0, |row| row.n);
    Ok(InstanceCounts { deleted: of(0), online: of(1), offline: of(2) })
}

/// The kept points of the trend, the oldest first.
///
/// # Errors
/// The database's.
pub async fn trend(tx: &mut Tx) -> Result<Vec<InstanceCounts>> {
    let mut points = fetch_all!(
        tx,
        InstanceCounts,
        "SELECT deleted, online, offline FROM instance_trend ORDER BY at_ms DESC LIMIT $1",
        POINTS,
    )?;
    points.reverse();
    Ok(points)
}

/// Brings the states up to date, forgets what is long gone, and adds a point to the trend.
///
/// # Errors
/// The database's.
pub async fn age(tx: &mut Tx, ages: InstanceAges, farewell_ms: i64) -> Result<()> {
    let now_ms = dialect::now_ms(tx).await?;
    for (state, from, older_ms) in [(2_i32, 1_i32, ages.offline_ms), (0, 2, ages.deleted_ms)] {
        execute!(
            tx,
            "UPDATE instance_info SET instance_state = $1
             WHERE instance_state = $2 AND beat_ms < $3",
            state,
            from,
            now_ms - older_ms,
        )?;
    }
    execute!(tx, "DELETE FROM instance_info WHERE beat_ms < $1", now_ms - ages.forgotten_ms)?;
    execute!(tx, "DELETE FROM instance_farewell WHERE at_ms < $1", now_ms - farewell_ms)?;
    let counts = count(tx, None).await?;
    execute!(
        tx,
        "INSERT INTO instance_trend (at_ms, deleted, online, offline) VALUES ($1, $2, $3, $4)
         ON CONFLICT (at_ms) DO UPDATE SET deleted = excluded.deleted, online = excluded.online,
             offline = excluded.offline",
        now_ms,
        counts.deleted,
        counts.online,
        counts.offline,
    )?;
    execute!(
        tx,
        "DELETE FROM instance_trend WHERE at_ms NOT IN (
             SELECT at_ms FROM instance_trend ORDER BY at_ms DESC LIMIT $1)",
        POINTS,
    )
    .map(drop)
}

/// The addresses, `host:port` by namespace, of the services' instances heard within `within_ms`.
///
/// # Errors
/// The database's.
pub async fn beating(tx: &mut Tx, within_ms: i64) -> Result<Vec<(String, String)>> {
    #[derive(sqlx::FromRow)]
    struct AddressRow {
        namespace_id: String,
        instance_ip: String,
        instance_port: String,
    }
    let since_ms = dialect::now_ms(tx).await? - within_ms;
    let rows = fetch_all!(
        tx,
        AddressRow,
        "SELECT namespace_id, instance_ip, instance_port FROM instance_info
         WHERE instance_type = 'client' AND beat_ms >= $1",
        since_ms,
    )?;
    let address = |row: AddressRow| {
        let AddressRow { namespace_id, instance_ip: ip, instance_port: port } = row;
        let host = if ip.contains(':') && !ip.starts_with('[') { format!("[{ip}]") } else { ip };
        (namespace_id, format!("{host}:{port}"))
    };
    Ok(rows.into_iter().map(address).collect())
}

/// Notes that an instance said good-bye.
///
/// # Errors
/// The database's.
pub async fn say_farewell(tx: &mut Tx, one: Farewell<'_>) -> Result<()> {
    let now_ms = dialect::now_ms(tx).await?;
    execute!(
        tx,
        "INSERT INTO instance_farewell (namespace_id, plugin_name, selector_name, url, at_ms)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (namespace_id, plugin_name, selector_name, url)
         DO UPDATE SET at_ms = excluded.at_ms",
        one.namespace_id,
        one.plugin,
        one.selector,
        one.url,
        now_ms,
    )
    .map(drop)
}

/// Forgets a good-bye: the instance is back.
///
/// # Errors
/// The database's.
pub async fn forget_farewell(tx: &mut Tx, one: Farewell<'_>) -> Result<()> {
    execute!(
        tx,
        "DELETE FROM instance_farewell
         WHERE namespace_id = $1 AND plugin_name = $2 AND selector_name = $3 AND url = $4",
        one.namespace_id,
        one.plugin,
        one.selector,
        one.url,
    )
    .map(drop)
}

/// Whether an instance said good-bye within `within_ms`.
///
/// # Errors
/// The database's.
pub async fn said_farewell(tx: &mut Tx, one: Farewell<'_>, within_ms: i64) -> Result<bool> {
    let since_ms = dialect::now_ms(tx).await? - within_ms;
    let row = fetch_optional!(
        tx,
        CountRow,
        "SELECT at_ms AS n FROM instance_farewell
         WHERE namespace_id = $1 AND plugin_name = $2 AND selector_name = $3 AND url = $4
           AND at_ms >= $5",
        one.namespace_id,
        one.plugin,
        one.selector,
        one.url,
        since_ms,
    )?;
    Ok(row.is_some())
}
