//! Connections to either database.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _};

use crate::location::Location;
use crate::statement::here;
use crate::store::{Db, StoreOptions};
use crate::{Error, Result, dialect, reach};

/// Prepared statements kept per connection.
const STATEMENTS: usize = 250;

/// The lock that keeps a second admin off a SQLite file. Goes when the process ends, however it
/// ends.
#[derive(Debug)]
pub(crate) struct FileLock(Mutex<Option<File>>);

impl FileLock {
    fn take(database: &Path) -> Result<Self> {
        let mut name = OsString::from(database);
        name.push(".lock");
        let path = PathBuf::from(name);
        let file = private_file(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Self(Mutex::new(Some(file)))),
            Err(TryLockError::WouldBlock) => {
                Err(Error::InUse { path: database.to_owned(), lock: path })
            }
            Err(TryLockError::Error(cause)) => Err(Error::File { path, cause }),
        }
    }

    pub(crate) fn release(&self) {
        // Closing the file frees the lock.
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

pub(crate) async fn open(location: &Location, options: &StoreOptions) -> Result<Db> {
    match location {
        Location::Sqlite(path) => open_sqlite(path, options).await,
        Location::Postgres(connect) => {
            let wait = options.acquire_timeout;
            let connect = (**connect).clone().statement_cache_capacity(STATEMENTS);
            reach::wait_for(&connect, &location.describe(), wait).await?;
            let pool = PgPoolOptions::new()
                .max_connections(options.max_connections)
                .acquire_timeout(options.acquire_timeout)
                // The pool's own tests know no limit of time.
                .test_before_acquire(false)
                .before_acquire(|conn, _| Box::pin(dialect::is_alive(conn)))
                .after_release(|conn, _| Box::pin(dialect::is_alive(conn)))
                .after_connect(move |conn, _| Box::pin(dialect::set_limits(conn, wait)))
                .connect_with(connect.clone())
                .await
                .map_err(|source| Error::sql(here!(), source))?;
            Ok(Db::Pg(pool, Arc::new(connect)))
        }
    }
}

async fn open_sqlite(path: &Path, options: &StoreOptions) -> Result<Db> {
    let lock = FileLock::take(path)?;
    // The journal files take their permissions from this one.
    drop(private_file(path)?);
    let connect = SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        // Normal would lose commits that were answered when the power fails: it flushes the journal
        // at checkpoints only.
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(Duration::from_secs(5))
        .foreign_keys(true)
        .statement_cache_capacity(STATEMENTS)
        .collation("C", |a: &str, b: &str| a.cmp(b));
    let pool = || {
        SqlitePoolOptions::new()
            .acquire_timeout(options.acquire_timeout)
            .idle_timeout(None)
            .max_lifetime(None)
    };
    // Migrations run here: a slow one would print a whole file into the log.
    let write = pool()
        .max_connections(1)
        .min_connections(1)
        // A full disk takes a transaction back by itself; sqlx would count it as open for ever, and
        // no later one could begin. Such a connection is replaced.
        .before_acquire(|connection, _| {
            Box::pin(async move {
                connection.ping().await?;
                Ok(!connection.is_in_transaction())
            })
        })
        .connect_with(connect.clone().disable_statement_logging())
        .await
        .map_err(|source| Error::sql(here!(), source))?;
    let read = pool()
        .max_connections(options.max_connections)
        .connect_lazy_with(connect.pragma("query_only", "ON"));
    Ok(Db::Sqlite { write, read, lock })
}

/// Opens or creates a file that only its owner may read and write.
fn private_file(path: &Path) -> Result<File> {
    let open = || -> io::Result<File> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder)?;
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)?;
        file.set_permissions(Permissions::from_mode(0o600))?;
        Ok(file)
    };
    open().map_err(|cause| Error::File { path: path.to_owned(), cause })
}

#[cfg(test)]
mod tests {
    use sqlx::SqlitePool;

    use crate::store::Db;
    use crate::{Location, Store, StoreOptions};

    async fn pages(write: &SqlitePool, most: i64) {
        let limit = sqlx::AssertSqlSafe(format!("PRAGMA max_page_count = {most}"));
        sqlx::query(limit).execute(write).await.unwrap();
    }

    #[tokio::test]
    async fn a_full_disk_ends_one_write_and_not_those_after_it() {
        let folder = tempfile::tempdir().unwrap();
        let location = Location::Sqlite(folder.path().join("full.db"));
        let store = Store::open(&location, StoreOptions::default()).await.unwrap();
        store.migrate().await.unwrap();
        let Db::Sqlite { write, .. } = store.db() else { panic!("not SQLite") };
        let full: i64 = sqlx::query_scalar("PRAGMA page_count").fetch_one(write).await.unwrap();

        pages(write, full).await;
        let insert = "INSERT INTO install (name, value) VALUES ($1, $2)";
        let big = "x".repeat(1 << 20);
        {
            let begun = write.begin_with(crate::dialect::WRITE_ON_SQLITE).await;
            let mut transaction = begun.unwrap();
            let insert = sqlx::query(insert).bind("big").bind(&big);
            let inserted = insert.execute(&mut *transaction).await;
            let failed = inserted.is_err() || transaction.commit().await.is_err();
            assert!(failed, "the disk is full");
        }

        pages(write, full + 10_000).await;
        let mut transaction = write.begin_with(crate::dialect::WRITE_ON_SQLITE).await.unwrap();
        sqlx::query(insert).bind("big").bind(&big).execute(&mut *transaction).await.unwrap();
        transaction.commit().await.unwrap();
    }

    /// What was answered survives a power failure: every commit is flushed, not only checkpoints.
    #[tokio::test]
    async fn every_commit_is_flushed_on_sqlite() {
        let folder = tempfile::tempdir().unwrap();
        let location = Location::Sqlite(folder.path().join("longmen.db"));
        let store = Store::open(&location, StoreOptions::default()).await.unwrap();
        let Db::Sqlite { write, .. } = store.db() else { unreachable!() };
        let level: i64 = sqlx::query_scalar("PRAGMA synchronous").fetch_one(write).await.unwrap();
        let journal: String =
            sqlx::query_scalar("PRAGMA journal_mode").fetch_one(write).await.unwrap();
        assert_eq!((level, journal.as_str()), (2, "wal"));
    }
}
