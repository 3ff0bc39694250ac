//! Transactions: snapshots to read from, and units of work to write with.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use sqlx::{Postgres, Sqlite, Transaction};

use crate::change::{self, Change};
use crate::id::Node;
use crate::store::Shared;
use crate::{Error, Result, dialect};

/// The connection of either store, inside a transaction.
pub(crate) enum Conn {
    Pg(Transaction<'static, Postgres>),
    Sqlite(Transaction<'static, Sqlite>),
}

/// An open transaction, as the repositories take it: [`ReadTx`] and [`UnitOfWork`] both are one.
///
/// Dropping it rolls it back.
pub struct Tx {
    conn: Conn,
    shared: Arc<Shared>,
}

impl Tx {
    pub(crate) const fn new(conn: Conn, shared: Arc<Shared>) -> Self {
        Self { conn, shared }
    }

    pub(crate) const fn conn(&mut self) -> &mut Conn {
        &mut self.conn
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The store's time, in milliseconds since 1970-01-01 UTC.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.shared.now_ms()
    }

    /// The reference's date text of a time, in the store's zone.
    #[must_use]
    pub fn date_text(&self, at_ms: i64) -> String {
        crate::date_text(at_ms, self.shared.zone())
    }

    pub(crate) async fn commit(self) -> Result<(), sqlx::Error> {
        match self.conn {
            Conn::Pg(transaction) => transaction.commit().await,
            Conn::Sqlite(transaction) => transaction.commit().await,
        }
    }
}

impl fmt::Debug for Tx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let store = match self.conn {
            Conn::Pg(_) => "postgresql",
            Conn::Sqlite(_) => "sqlite",
        };
        f.debug_struct("Tx").field("store", &store).finish_non_exhaustive()
    }
}

/// A consistent view: everything read through it belongs to one moment. Never writes.
#[derive(Debug)]
pub struct ReadTx(Tx);

impl ReadTx {
    pub(crate) const fn new(tx: Tx) -> Self {
        Self(tx)
    }
}

impl Deref for ReadTx {
    type Target = Tx;

    fn deref(&self) -> &Tx {
        &self.0
    }
}

impl DerefMut for ReadTx {
    fn deref_mut(&mut self) -> &mut Tx {
        &mut self.0
    }
}

/// Who does something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// Name of the user or client; `system` for our own jobs.
    pub name: String,
    /// By which way.
    pub source: Source,
    /// Address of the caller, empty if there is none.
    pub address: String,
}

impl Actor {
    /// The admin itself.
    #[must_use]
    pub fn system() -> Self {
        Self { name: "system".to_owned(), source: Source::System, address: String::new() }
    }
}

/// By which way something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// A person at the web console.
    Console,
    /// A caller of the REST API.
    Api,
    /// A registering client.
    Sdk,
    /// The admin itself.
    System,
}

impl Source {
    /// The word that is stored.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Console => "console",
            Self::Api => "api",
            Self::Sdk => "sdk",
            Self::System => "system",
        }
    }
}

/// The version that one commit gave a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewVersion {
    /// The namespace, or [`crate::GLOBAL`].
    pub namespace_id: String,
    /// Its version from this commit on.
    pub version: u64,
}

/// A write transaction. Everything that changes the configuration goes through one, and says what
/// it changed by [`UnitOfWork::record`]; the version is taken in [`UnitOfWork::commit`].
///
/// Dropping it without a commit rolls everything back.
#[derive(Debug)]
pub struct UnitOfWork {
    tx: Tx,
    actor: Actor,
    node: Node,
    changes: Vec<Change>,
}

impl UnitOfWork {
    pub(crate) const fn new(tx: Tx, actor: Actor, node: Node) -> Self {
        Self { tx, actor, node, changes: Vec::new() }
    }

    /// Who does this.
    #[must_use]
    pub const fn actor(&self) -> &Actor {
        &self.actor
    }

    /// A new id: a snowflake number as a decimal string; ids of one admin ascend.
    ///
    /// # Errors
    /// [`Error::NodeLeaseOver`] when the transaction is older than half an hour.
    pub fn next_id(&self) -> Result<String> {
        let shared = self.tx.shared();
        if !self.node.is_valid_at(shared.now_ms()) {
            return Err(Error::NodeLeaseOver);
        }
        Ok(shared.ids().next(self.node.number(), shared.now_ms()).to_string())
    }

    /// Notes one changed object. The order of the calls is the order within the change set.
    pub fn record(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// What was recorded so far.
    #[must_use]
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Takes the versions, writes the change set, and commits.
    ///
    /// Out: one entry per namespace that has changes, by namespace id; empty for a unit without
    /// changes, which takes no version. Versions are taken last, so their order is the order of
    /// the commits, without gaps.
    ///
    /// # Errors
    /// Nothing is written, unless the connection breaks during the commit itself: then it may have
    /// been written, and [`Error::Unavailable`] is returned.
    pub async fn commit(mut self) -> Result<Vec<NewVersion>> {
        let changes = std::mem::take(&mut self.changes);
        if !changes.is_empty() {
            // Said at the commit whenever it is asked for: before the versions, on which others wait.
            dialect::notify(&mut self.tx).await?;
        }
        let versions = change::append(&mut self.tx, &self.actor, changes).await?;
        let shared = Arc::clone(&self.tx.shared);
        self.tx.commit().await.map_err(|source| Error::sql(crate::statement::here!(), source))?;
        if !versions.is_empty() {
            shared.wake();
        }
        Ok(versions)
    }
}

impl Deref for UnitOfWork {
    type Target = Tx;

    fn deref(&self) -> &Tx {
        &self.tx
    }
}

impl DerefMut for UnitOfWork {
    fn deref_mut(&mut self) -> &mut Tx {
        &mut self.tx
    }
}
