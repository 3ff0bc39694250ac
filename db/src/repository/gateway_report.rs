//! What each admin knows of its gateways, for the others to see.

use crate::statement::{execute, fetch_all, here};
use crate::tx::Tx;
use crate::{Error, Result, Store, dialect};

/// One gateway's connection with one admin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Number of the connection, unique within the admin's life.
    pub connection: u64,
    /// Whether it is open.
    pub connected: bool,
    /// What is known, as JSON.
    pub report: String,
}

/// A report of any admin.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct ReportRow {
    /// The admin.
    pub admin: String,
    /// Number of the connection there.
    pub connection: i64,
    /// Milliseconds since that admin was last heard, by the database's time.
    pub silent_ms: i64,
    /// Whether the connection was open then.
    pub connected: bool,
    /// What is known, as JSON.
    pub report: String,
}

/// Writes what changed, and that `admin` is alive.
///
/// # Errors
/// The database's; nothing is written then.
pub async fn write(store: &Store, admin: &str, reports: &[Report]) -> Result<()> {
    let mut tx = store.write().await?;
    let now_ms = dialect::now_ms(&mut tx).await?;
    for report in reports {
        execute!(
            tx,
            "INSERT INTO gateway_report (admin, connection, heard_ms, connected, report)
             VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (admin, connection) DO UPDATE
             SET connected = excluded.connected, report = excluded.report",
            admin,
            i64::try_from(report.connection).unwrap_or(i64::MAX),
            now_ms,
            report.connected,
            report.report.as_str(),
        )?;
    }
    // Those that went keep the time at which they did.
    execute!(
        tx,
        "UPDATE gateway_report SET heard_ms = $2 WHERE admin = $1 AND connected",
        admin,
        now_ms,
    )?;
    tx.commit().await.map_err(|source| Error::sql(here!(), source))
}

/// All reports of other admins than `admin`, those of open connections first, at most `limit`.
///
/// # Errors
/// The database's.
pub async fn of_others(tx: &mut Tx, admin: &str, limit: i64) -> Result<Vec<ReportRow>> {
    let now_ms = dialect::now_ms(tx).await?;
    fetch_all!(
        tx,
        ReportRow,
        "SELECT admin, connection, CAST($2 AS BIGINT) - heard_ms AS silent_ms, connected, report
         FROM gateway_report WHERE admin <> $1
         ORDER BY connected DESC, heard_ms DESC, admin, connection LIMIT $3",
        admin,
        now_ms,
        limit,
    )
}

/// Forgets reports whose admin was last heard before `age_ms`. Out: how many there were.
///
/// # Errors
/// The database's.
pub async fn forget(store: &Store, age_ms: i64) -> Result<u64> {
    let mut tx = store.write().await?;
    let now_ms = dialect::now_ms(&mut tx).await?;
    let gone = execute!(
        tx,
        "DELETE FROM gateway_report WHERE heard_ms < $1",
        now_ms.saturating_sub(age_ms)
    )?;
    tx.commit().await.map_err(|source| Error::sql(here!(), source))?;
    Ok(gone)
}
