//! The only places where the two stores differ in SQL, one named item each.
//!
//! The lock under which migrations run is the driver's: an advisory lock on PostgreSQL; on SQLite
//! the lock file of the store keeps a second admin out altogether.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection, PgListener, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection as _};

use crate::statement::{chunks, here, with_ids};
use crate::tx::{Conn, Tx};
use crate::{Error, Result};

/// The channel on which PostgreSQL admins wake each other.
const CHANNEL: &str = "longmen_change";

/// Bounds what one admin can do to the others: how long it waits for a row that another holds, and
/// how long it may hold rows while doing nothing (its machine may be suspended).
///
/// SQLite needs neither: its writers are all in one process, and wait in a queue with a limit.
pub(crate) async fn set_limits(conn: &mut PgConnection, wait: Duration) -> Result<(), sqlx::Error> {
    let sql = format!(
        "SET lock_timeout = {}; SET idle_in_transaction_session_timeout = 60000",
        wait.as_millis().clamp(1, i32::MAX as u128),
    );
    // Only a number is put in.
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(conn).await.map(|_| ())
}

/// How long a connection may take to show that it is alive.
const ALIVE: Duration = Duration::from_secs(5);

/// Asks whether the server at the other end of a connection answers. A link that was cut without a
/// word does not, and then the connection must go: whoever waited for it would wait for ever, and
/// its place in the pool would be lost.
///
/// SQLite has no other end.
///
/// # Errors
/// It does not answer, or not in time.
pub(crate) async fn is_alive(conn: &mut PgConnection) -> Result<bool, sqlx::Error> {
    match tokio::time::timeout(ALIVE, conn.ping()).await {
        Ok(answer) => answer.map(|()| true),
        Err(_) => Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())),
    }
}

/// Refuses a database that cannot hold every text.
///
/// SQLite's texts are UTF-8 always.
pub(crate) async fn check_encoding(conn: &mut PgConnection) -> Result<()> {
    let encoding: String = sqlx::query_scalar("SHOW server_encoding")
        .fetch_one(conn)
        .await
        .map_err(|source| Error::sql(here!(), source))?;
    if encoding == "UTF8" {
        return Ok(());
    }
    Err(Error::Schema(format!("the encoding of the database is {encoding}, expected UTF8")))
}

/// Makes the listeners of other admins wake when this transaction commits.
///
/// On SQLite there are no other admins; the own one is woken in the process.
pub(crate) async fn notify(tx: &mut Tx) -> Result<()> {
    if let Conn::Pg(transaction) = tx.conn() {
        sqlx::query("SELECT pg_notify($1, '')")
            .bind(CHANNEL)
            .execute(&mut **transaction)
            .await
            .map_err(|source| Error::sql(here!(), source))?;
    }
    Ok(())
}

/// The time by which admins agree on ages, in milliseconds since 1970-01-01 UTC: PostgreSQL's own, since
/// the clocks of its admins may differ.
///
/// SQLite has one admin, and that one's clock is the only one there is.
pub(crate) async fn now_ms(tx: &mut Tx) -> Result<i64> {
    let own = tx.now_ms();
    match tx.conn() {
        Conn::Pg(transaction) => sqlx::query_scalar(
            "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
        )
        .fetch_one(&mut **transaction)
        .await
        .map_err(|source| Error::sql(here!(), source)),
        Conn::Sqlite(_) => Ok(own),
    }
}

/// Holds the rows of a table that have these ids until the end of the transaction, as strongly as an
/// update that leaves their keys alone.
///
/// They are taken in the order of their ids, so two writers that want the same rows wait for each
/// other instead of both failing: an `UPDATE … WHERE id IN (…)` takes them in any order. Whoever
/// writes several rows of a table calls this first.
///
/// On SQLite a transaction that writes holds the whole file.
pub(crate) async fn hold_rows<S: AsRef<str>>(
    tx: &mut Tx,
    table: &'static str,
    ids: &[S],
) -> Result<()> {
    let Conn::Pg(transaction) = tx.conn() else { return Ok(()) };
    let template =
        format!("SELECT 1 FROM {table} WHERE id IN ({{ids}}) ORDER BY id FOR NO KEY UPDATE");
    // Ascending over all chunks too.
    for chunk in chunks(ids) {
        let mut query = sqlx::query(with_ids(&template, 0, chunk.len()));
        for id in chunk {
            query = query.bind(id);
        }
        query.execute(&mut **transaction).await.map_err(|source| Error::sql(here!(), source))?;
    }
    Ok(())
}

/// Opens a listener for [`notify`], on a connection of its own.
pub(crate) async fn listen(options: &PgConnectOptions) -> Result<PgListener> {
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(Duration::from_secs(5))
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_lazy_with(options.clone());
    let mut listener =
        PgListener::connect_with(&pool).await.map_err(|source| Error::sql(here!(), source))?;
    listener.listen(CHANNEL).await.map_err(|source| Error::sql(here!(), source))?;
    Ok(listener)
}

/// Begins a transaction that sees one moment and writes nothing.
///
/// On SQLite any transaction is a snapshot, and the connections for reading refuse to write.
pub(crate) const READ_ON_POSTGRES: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Begins a transaction that writes; it holds the write lock from its start, so it never fails
/// half-way for want of it.
pub(crate) const WRITE_ON_SQLITE: &str = "BEGIN IMMEDIATE";
