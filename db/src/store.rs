//! The store: opening, closing, and the transactions it hands out.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use sqlx::postgres::{PgConnectOptions, PgPool};
use sqlx::sqlite::SqlitePool;
use tokio::sync::{Mutex, watch};

use crate::clock::{Clock, Entropy, SystemClock};
use crate::id::{self, IdGenerator, Node};
use crate::location::Location;
use crate::pool::{self, FileLock};
use crate::statement::here;
use crate::tx::{Actor, Conn, ReadTx, Tx, UnitOfWork};
use crate::wake::WakeUp;
use crate::{Error, Result, dialect};

/// What a store needs besides its place.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// The time; [`SystemClock`] by default.
    pub clock: Arc<dyn Clock>,
    /// The chance; the system's by default.
    pub entropy: Entropy,
    /// The zone of date texts on the wire; the system's by default.
    pub time_zone: TimeZone,
    /// Most connections at a time (PostgreSQL: all; SQLite: readers beside the one writer).
    pub max_connections: u32,
    /// How long a call waits for a connection.
    pub acquire_timeout: Duration,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock),
            entropy: Entropy::default(),
            time_zone: TimeZone::system(),
            max_connections: 10,
            acquire_timeout: Duration::from_secs(10),
        }
    }
}

/// The database of either kind.
pub(crate) enum Db {
    /// A PostgreSQL server, which any number of admins share.
    Pg(PgPool, Arc<PgConnectOptions>),
    /// A file of one admin. Writers queue for the one connection of their pool instead of polling
    /// for the file's lock.
    Sqlite { write: SqlitePool, read: SqlitePool, lock: FileLock },
}

/// An open store. Cheap to clone; all clones are the same store.
#[derive(Clone)]
pub struct Store {
    db: Arc<Db>,
    shared: Arc<Shared>,
}

/// What transactions share with their store.
pub(crate) struct Shared {
    options: StoreOptions,
    ids: IdGenerator,
    owner: String,
    node: Mutex<Option<Node>>,
    wake: watch::Sender<u64>,
}

// === impl Store ===

/// How long a silent database may hold up the end.
const FAREWELL: Duration = Duration::from_secs(2);

impl Store {
    /// Opens the store; creates the SQLite file if there is none. Changes no schema: call
    /// [`Store::migrate`] next.
    ///
    /// # Errors
    /// [`Error::InUse`] when another admin has the SQLite file, [`Error::File`] when it cannot be
    /// opened or made private, [`Error::Unavailable`] when PostgreSQL does not answer.
    pub async fn open(location: &Location, options: StoreOptions) -> Result<Self> {
        let db = pool::open(location, &options).await?;
        let owner = options.entropy.token();
        let shared = Shared {
            options,
            ids: IdGenerator::default(),
            owner,
            node: Mutex::new(None),
            wake: watch::Sender::new(0),
        };
        Ok(Self { db: Arc::new(db), shared: Arc::new(shared) })
    }

    /// Begins to read: a consistent view of one moment.
    ///
    /// # Errors
    /// No connection, or none in time.
    pub async fn read(&self) -> Result<ReadTx> {
        let conn = match &*self.db {
            Db::Pg(pool, _) => {
                Conn::Pg(sql(here!(), pool.begin_with(dialect::READ_ON_POSTGRES).await)?)
            }
            Db::Sqlite { read, .. } => Conn::Sqlite(sql(here!(), read.begin().await)?),
        };
        Ok(ReadTx::new(Tx::new(conn, Arc::clone(&self.shared))))
    }

    /// Begins to write, on behalf of `actor`.
    ///
    /// On SQLite there is one writer at a time, in the order of the calls: do not begin a second
    /// unit while holding one in the same task.
    ///
    /// # Errors
    /// No connection, or none in time; [`Error::NoFreeNode`].
    pub async fn begin(&self, actor: Actor) -> Result<UnitOfWork> {
        let node = self.node().await?;
        Ok(UnitOfWork::new(self.write().await?, actor, node))
    }

    /// Whoever waits for changes: the dispatcher.
    #[must_use]
    pub fn wake_up(&self) -> WakeUp {
        let postgres = match &*self.db {
            Db::Pg(_, options) => Some(Arc::clone(options)),
            Db::Sqlite { .. } => None,
        };
        WakeUp::new(self.shared.wake.subscribe(), postgres)
    }

    /// `postgresql` or `sqlite`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match &*self.db {
            Db::Pg(..) => "postgresql",
            Db::Sqlite { .. } => "sqlite",
        }
    }

    /// Whether several admins can share this store.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        matches!(&*self.db, Db::Pg(..))
    }

    /// What tells this process from all others on the same database, as long as the store is open.
    #[must_use]
    pub fn process_id(&self) -> &str {
        self.shared.owner()
    }

    /// The zone of date texts.
    #[must_use]
    pub fn time_zone(&self) -> &TimeZone {
        self.shared.zone()
    }

    /// The store's time, in milliseconds since 1970-01-01 UTC.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.shared.now_ms()
    }

    /// Gives back the node number, closes all connections and frees the SQLite file. Waits for
    /// open transactions; later calls on any clone fail with [`Error::Unavailable`].
    pub async fn close(&self) {
        match tokio::time::timeout(FAREWELL, self.release_node()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::debug!(%error, "node number not given back; its lease runs out by itself");
            }
            Err(_) => tracing::debug!("node number not given back in time; its lease runs out"),
        }
        match &*self.db {
            // What a silent server holds back, the end of the process gives up.
            Db::Pg(pool, _) => drop(tokio::time::timeout(FAREWELL, pool.close()).await),
            Db::Sqlite { write, read, lock } => {
                read.close().await;
                write.close().await;
                lock.release();
            }
        }
    }

    pub(crate) fn db(&self) -> &Db {
        &self.db
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// A write transaction without an actor, for what is not configuration.
    pub(crate) async fn write(&self) -> Result<Tx> {
        let conn = match &*self.db {
            Db::Pg(pool, _) => Conn::Pg(sql(here!(), pool.begin().await)?),
            Db::Sqlite { write, .. } => {
                Conn::Sqlite(sql(here!(), write.begin_with(dialect::WRITE_ON_SQLITE).await)?)
            }
        };
        Ok(Tx::new(conn, Arc::clone(&self.shared)))
    }

    async fn node(&self) -> Result<Node> {
        /// More admins than this never start within the same instant.
        const ATTEMPTS: usize = 32;

        let mut held = self.shared.node.lock().await;
        if let Some(node) = held.filter(|node| !node.is_old_at(self.shared.now_ms())) {
            return Ok(node);
        }
        for _ in 0..ATTEMPTS {
            let mut tx = self.write().await?;
            let node = id::lease(&mut tx, &self.shared.owner, *held).await?;
            sql(here!(), tx.commit().await)?;
            if node.is_some() {
                *held = node;
                return node.ok_or(Error::NoFreeNode);
            }
        }
        Err(Error::NoFreeNode)
    }

    async fn release_node(&self) -> Result<()> {
        let Some(node) = self.shared.node.lock().await.take() else { return Ok(()) };
        let mut tx = self.write().await?;
        id::release(&mut tx, &self.shared.owner, node).await?;
        sql(here!(), tx.commit().await)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("kind", &self.kind()).finish_non_exhaustive()
    }
}

fn sql<T>(at: &'static str, result: Result<T, sqlx::Error>) -> Result<T> {
    result.map_err(|source| Error::sql(at, source))
}

// === impl Shared ===

impl Shared {
    pub(crate) fn now_ms(&self) -> i64 {
        self.options.clock.now_ms()
    }

    pub(crate) const fn zone(&self) -> &TimeZone {
        &self.options.time_zone
    }

    pub(crate) const fn entropy(&self) -> &Entropy {
        &self.options.entropy
    }

    pub(crate) fn owner(&self) -> &str {
        &self.owner
    }

    pub(crate) const fn ids(&self) -> &IdGenerator {
        &self.ids
    }

    /// Wakes the waiters of this process.
    pub(crate) fn wake(&self) {
        self.wake.send_modify(|count| *count = count.wrapping_add(1));
    }
}
