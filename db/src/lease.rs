//! Leases: a periodic job is done by one admin at a time.
//!
//! The times are those of the database, so that clocks of admins may differ. A holder counts its own
//! time from before it asked: it stops before anybody else can begin.

use crate::statement::{execute, fetch_optional, here};
use crate::{Error, Result, Store, dialect};

/// What a lease gives its holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// How many holders there were before; rises with each change of the holder.
    pub term: u64,
}

#[derive(sqlx::FromRow)]
struct TermRow {
    term: i64,
}

/// Takes or renews the lease of `job` for `owner`, for `lease_ms` from now.
///
/// Out: `None` while somebody else holds it.
///
/// # Errors
/// The database's; then the lease may or may not have been taken.
pub async fn acquire(store: &Store, job: &str, owner: &str, lease_ms: i64) -> Result<Option<Held>> {
    let mut tx = store.write().await?;
    let now_ms = dialect::now_ms(&mut tx).await?;
    execute!(
        tx,
        "INSERT INTO job_lease (job, owner, until_ms, term) VALUES ($1, '', 0, 0)
         ON CONFLICT (job) DO NOTHING",
        job,
    )?;
    // The condition is checked again on the locked row: of two that ask at once one gets it.
    let row = fetch_optional!(
        tx,
        TermRow,
        "UPDATE job_lease
         SET term = term + CASE WHEN owner = $2 THEN 0 ELSE 1 END, owner = $2, until_ms = $3
         WHERE job = $1 AND (owner = $2 OR until_ms <= $4)
         RETURNING term",
        job,
        owner,
        now_ms + lease_ms,
        now_ms,
    )?;
    tx.commit().await.map_err(|source| Error::sql(here!(), source))?;
    Ok(row.map(|row| Held { term: u64::try_from(row.term).unwrap_or_default() }))
}

/// Gives the lease of `job` back, if `owner` has it.
///
/// # Errors
/// The database's.
pub async fn release(store: &Store, job: &str, owner: &str) -> Result<()> {
    let mut tx = store.write().await?;
    execute!(tx, "UPDATE job_lease SET until_ms = 0 WHERE job = $1 AND owner = $2", job, owner,)?;
    tx.commit().await.map_err(|source| Error::sql(here!(), source))
}
