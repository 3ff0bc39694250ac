//! What can go wrong with the store.

use std::path::PathBuf;
use std::time::Duration;

/// The result of everything that touches the store.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something asked of the store was not done.
///
/// A failed statement inside a transaction spoils that transaction: drop it, which rolls it back.
///
/// The texts are complete: what a driver saw stands in them, and so is no `source` besides, or
/// whoever prints the chain would print it twice.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The database cannot be reached, or gave no connection in time.
    #[error("database is not available: {cause}")]
    Unavailable {
        /// What the driver saw.
        cause: sqlx::Error,
    },
    /// The database did not answer while it was waited for, at the start.
    #[error("it cannot be reached within {} s: {cause}", patience.as_secs())]
    Unreachable {
        /// How long it was waited for.
        patience: Duration,
        /// How the last attempt ended.
        cause: String,
    },
    /// Another transaction stood in the way (lock time-out, deadlock, serialisation). Nothing was
    /// written; the whole unit of work may be tried again.
    #[error("database is busy: {cause}")]
    Busy {
        /// What the driver saw.
        cause: sqlx::Error,
    },
    /// A row with the same key exists.
    #[error("{message}")]
    Unique {
        /// Name of the violated constraint, or `table.column` on SQLite; empty if not told.
        constraint: String,
        /// The driver's text.
        message: String,
    },
    /// A row refers to one that does not exist, or is still referred to.
    #[error("{message}")]
    Reference {
        /// Name of the violated constraint; empty on SQLite.
        constraint: String,
        /// The driver's text.
        message: String,
    },
    /// Any other failure of a statement.
    #[error("database statement at {at} failed: {cause}")]
    Sql {
        /// Source position of the statement.
        at: &'static str,
        /// What the driver saw.
        cause: sqlx::Error,
    },
    /// The schema could not be brought up to date.
    #[error("database migration failed: {cause}")]
    Migrate {
        /// Which step, and why.
        cause: sqlx::migrate::MigrateError,
    },
    /// The database is newer than this program, or not prepared by it.
    #[error("database schema is not ready: {0}")]
    Schema(String),
    /// Another admin has the SQLite file.
    #[error(
        "database file {path} is in use by another admin (its lock {lock} is held): \
         stop that one, or use PostgreSQL to run several admins on one database"
    )]
    InUse {
        /// The database file.
        path: PathBuf,
        /// The lock file beside it.
        lock: PathBuf,
    },
    /// A file of the SQLite store cannot be opened or protected.
    #[error("database file {path}: {cause}")]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The address of the store cannot be used.
    #[error("database address {address}: {reason}")]
    Address {
        /// The address, without its password.
        address: String,
        /// What is wrong with it, and what was expected.
        reason: String,
    },
    /// A row holds what this program cannot read.
    #[error("{table} row {id}: {reason}")]
    Corrupt {
        /// The table.
        table: &'static str,
        /// Id of the row.
        id: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A list is asked for by more ids than one statement takes.
    #[error("a list of {count} ids narrows a search, expected at most {most}")]
    TooManyIds {
        /// How many there are.
        count: usize,
        /// How many there may be.
        most: usize,
    },
    /// All node numbers of the id generator are taken.
    #[error("no free node number for the id generator: all 1024 are leased")]
    NoFreeNode,
    /// The lease of the id generator ran out while a transaction was open.
    #[error("transaction is older than the lease of its node number: start it again")]
    NodeLeaseOver,
    /// Another admin has taken over the job that wanted to write.
    #[error(
        "job {name} was taken over by another admin: what it was about to write is left to that one"
    )]
    LeaseLost {
        /// The job.
        name: &'static str,
    },
}

impl Error {
    /// Sorts a driver's error; `at` is the source position of the statement.
    pub(crate) fn sql(at: &'static str, cause: sqlx::Error) -> Self {
        use sqlx::error::ErrorKind;

        match &cause {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => return Self::Unavailable { cause },
            sqlx::Error::Database(database) => {
                let constraint = || database.constraint().unwrap_or_default().to_owned();
                let message = || database.message().to_owned();
                match database.kind() {
                    ErrorKind::UniqueViolation => {
                        return Self::Unique { constraint: constraint(), message: message() };
                    }
                    ErrorKind::ForeignKeyViolation => {
                        return Self::Reference { constraint: constraint(), message: message() };
                    }
                    _ => {}
                }
                // SQLite: BUSY, LOCKED and their extended forms; PostgreSQL: serialisation
                // failure, deadlock, lock not available, and its states of going down.
                match database.code().as_deref() {
                    Some(
                        "5" | "6" | "261" | "262" | "517" | "773" | "40001" | "40P01" | "55P03",
                    ) => {
                        return Self::Busy { cause };
                    }
                    Some("57P01" | "57P02" | "57P03" | "53300") => {
                        return Self::Unavailable { cause };
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        Self::Sql { at, cause }
    }

    /// Whether trying the whole unit of work again can help.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unavailable { .. }
                | Self::Unreachable { .. }
                | Self::Busy { .. }
                | Self::NodeLeaseOver
        )
    }

    /// Whether a row with the same key exists.
    #[must_use]
    pub const fn is_unique_violation(&self) -> bool {
        matches!(self, Self::Unique { .. })
    }
}

impl From<sqlx::migrate::MigrateError> for Error {
    fn from(cause: sqlx::migrate::MigrateError) -> Self {
        Self::Migrate { cause }
    }
}
