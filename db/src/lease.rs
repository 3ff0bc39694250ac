//! Leases: which of the admins on one database runs a periodic job.
//!
//! A lease is a row. Its holder raises `beat` again and again; whoever waits for it takes it when it
//! saw the same beat for long enough *by its own clock*, by an update that only succeeds on the very
//! row that it saw. So no clock is compared with another one, and it does not matter when they differ.
//!
//! Time alone cannot stop a holder that was suspended and goes on. What a job writes it therefore
//! writes under [`require_lease`], which holds the row in the same transaction: either the term is
//! still the holder's and nobody takes the lease before the commit, or nothing is written.
//!
//! How long the waits are is up to the caller; see `docs/adr/0009`.

use crate::statement::{execute, fetch_optional, here};
use crate::tx::Tx;
use crate::{Error, Result, Store};

/// The proof of holding a lease, good until somebody takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    name: &'static str,
    term: i64,
}

/// The state of a lease at one look.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct LeaseState {
    owner: String,
    term: i64,
    beat: i64,
}

impl Lease {
    /// The name of the job.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// How often the lease was taken so far, this time included.
    #[must_use]
    pub const fn term(&self) -> i64 {
        self.term
    }
}

impl LeaseState {
    /// Whether nobody holds it: it is new, or its last holder gave it back.
    #[must_use]
    pub const fn is_free(&self) -> bool {
        self.owner.is_empty()
    }
}

impl Store {
    /// Looks at the lease of a job; makes its row at the first look.
    ///
    /// # Errors
    /// The database's.
    pub async fn look_at_lease(&self, name: &'static str) -> Result<LeaseState> {
        const FIND: &str = "SELECT owner, term, beat FROM job_lease WHERE name = $1";
        let mut tx = self.read().await?;
        if let Some(state) = fetch_optional!(tx, LeaseState, FIND, name)? {
            return Ok(state);
        }
        drop(tx);
        let mut tx = self.write().await?;
        execute!(
            tx,
            "INSERT INTO job_lease (name, owner, term, beat) VALUES ($1, '', 0, 0)
             ON CONFLICT (name) DO NOTHING",
            name,
        )?;
        let state = fetch_optional!(tx, LeaseState, FIND, name)?;
        tx.commit().await.map_err(|source| Error::sql(here!(), source))?;
        state.ok_or_else(|| Error::Schema(format!("job_lease has no row {name}")))
    }

    /// Takes the lease of a job, if it is still as it was `seen`. Out: `None` when its holder is
    /// alive after all, or another one was faster.
    ///
    /// # Errors
    /// The database's.
    pub async fn take_lease(&self, name: &'static str, seen: &LeaseState) -> Result<Option<Lease>> {
        let mut tx = self.write().await?;
        let taken = execute!(
            tx,
            "UPDATE job_lease SET owner = $1, term = term + 1, beat = 0
             WHERE name = $2 AND owner = $3 AND term = $4 AND beat = $5",
            self.process_id(),
            name,
            seen.owner.as_str(),
            seen.term,
            seen.beat,
        )?;
        tx.commit().await.map_err(|source| Error::sql(here!(), source))?;
        Ok((taken == 1).then_some(Lease { name, term: seen.term + 1 }))
    }

    /// Shows that the holder of a lease lives. Out: whether it still holds it.
    ///
    /// # Errors
    /// The database's: whether it was shown is unknown then.
    pub async fn renew_lease(&self, lease: &Lease) -> Result<bool> {
        let mut tx = self.write().await?;
        let renewed = execute!(
            tx,
            "UPDATE job_lease SET beat = beat + 1 WHERE name = $1 AND owner = $2 AND term = $3",
            lease.name,
            self.process_id(),
            lease.term,
        )?;
        tx.commit().await.map_err(|source| Error::sql(here!(), source))?;
        Ok(renewed == 1)
    }

    /// Gives a lease back, so that another admin takes it at its next look.
    ///
    /// # Errors
    /// The database's: it is taken over later then.
    pub async fn give_lease_back(&self, lease: &Lease) -> Result<()> {
        let mut tx = self.write().await?;
        execute!(
            tx,
            "UPDATE job_lease SET owner = '' WHERE name = $1 AND owner = $2 AND term = $3",
            lease.name,
            self.process_id(),
            lease.term,
        )?;
        tx.commit().await.map_err(|source| Error::sql(here!(), source))
    }
}

/// Holds a lease until the end of the transaction, before a job writes in it. Costs one statement.
///
/// # Errors
/// [`Error::LeaseLost`] when another admin has taken it: the transaction must not be committed. The
/// database's.
pub async fn require_lease(tx: &mut Tx, lease: &Lease) -> Result<()> {
    let owner = tx.shared().owner().to_owned();
    let held = execute!(
        tx,
        "UPDATE job_lease SET beat = beat WHERE name = $1 AND owner = $2 AND term = $3",
        lease.name,
        owner,
        lease.term,
    )?;
    if held == 1 { Ok(()) } else { Err(Error::LeaseLost { name: lease.name }) }
}
