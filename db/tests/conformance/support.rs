//! Stores for tests, and the objects they are filled with.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::tz::TimeZone;
use longmen_core::model::{Condition, DEFAULT_NAMESPACE, Rule, Selector};
use longmen_core::sync::{Event, Group};
use longmen_core::test_util::postgres;
use longmen_db::repository::upstream::NewUpstream;
use longmen_db::repository::{NewCondition, rule, selector};
use longmen_db::{
    Actor, Change, ChangeSet, Clock, Location, Operation, SeedOptions, Since, Source, Store,
    StoreOptions, UnitOfWork, since,
};
use tempfile::TempDir;

/// How long a test waits for what must come; long enough for a machine that is busy otherwise.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// The namespace of most tests.
pub(crate) const NS: &str = DEFAULT_NAMESPACE;

/// Makes each function a test on either store; it takes an empty, migrated and seeded [`TestStore`].
macro_rules! on_both_stores {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let test = crate::support::TestStore::sqlite().await;
                Box::pin(super::$name(test)).await;
            })+
        }

        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let test = crate::support::TestStore::postgres().await;
                Box::pin(super::$name(test)).await;
            })+
        }
    };
}

pub(crate) use on_both_stores;

/// A clock that stands still until it is moved.
#[derive(Debug)]
pub(crate) struct ManualClock(AtomicI64);

impl ManualClock {
    pub(crate) fn forward(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// 2026-11-30 12:00:00 UTC.
pub(crate) const NOON_MS: i64 = 1_796_040_000_000;

/// A store with its place and its clock.
pub(crate) struct TestStore {
    pub(crate) store: Store,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) location: Location,
    _folder: Option<TempDir>,
}

impl TestStore {
    pub(crate) async fn sqlite() -> Self {
        let (location, folder) = sqlite_location();
        Self::open(location, Some(folder)).await
    }

    pub(crate) async fn postgres() -> Self {
        Self::open(postgres_location(), None).await
    }

    async fn open(location: Location, folder: Option<TempDir>) -> Self {
        let clock = Arc::new(ManualClock(AtomicI64::new(NOON_MS)));
        let store = Store::open(&location, options(&clock)).await.unwrap();
        store.migrate().await.unwrap();
        let seed = SeedOptions { admin_password_hash: "hash".to_owned() };
        assert!(store.seed(&seed).await.unwrap());
        Self { store, clock, location, _folder: folder }
    }

    /// Another admin on the same database.
    pub(crate) async fn other(&self) -> Store {
        Store::open(&self.location, options(&self.clock)).await.unwrap()
    }

    pub(crate) async fn begin(&self) -> UnitOfWork {
        self.store.begin(actor()).await.unwrap()
    }

    /// Returns once a transaction on this PostgreSQL database waits for what another one holds. On
    /// SQLite, where every writer waits for the one before, at once.
    pub(crate) async fn somebody_waits(&self) {
        use sqlx::ConnectOptions;

        let Location::Postgres(options) = &self.location else { return };
        let mut conn = options.connect().await.unwrap();
        let seen = async {
            loop {
                let waiting: i64 = sqlx::query_scalar(
                    "SELECT COUNT(*) FROM pg_stat_activity
                     WHERE datname = current_database() AND wait_event_type = 'Lock'",
                )
                .fetch_one(&mut conn)
                .await
                .unwrap();
                if waiting > 0 {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(LIMIT, seen).await.expect("nobody waits");
    }

    /// The change sets of a namespace after a version.
    pub(crate) async fn sets(&self, namespace_id: &str, version: u64) -> Vec<ChangeSet> {
        let mut tx = self.store.read().await.unwrap();
        match since(&mut tx, namespace_id, version, 10_000).await.unwrap() {
            Since::Sets(sets) => sets,
            Since::Gap => panic!("gap after {version}"),
        }
    }

    /// Rows of all tables that hold a text anywhere, by table.
    pub(crate) async fn mentions(&self, text: &str) -> Vec<(String, u64)> {
        match &self.location {
            Location::Sqlite(path) => sqlite_mentions(path, text).await,
            Location::Postgres(options) => postgres_mentions(options, text).await,
        }
    }
}

pub(crate) fn sqlite_location() -> (Location, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (Location::Sqlite(folder.path().join("longmen.db")), folder)
}

pub(crate) fn postgres_location() -> Location {
    Location::parse(&postgres::fresh_database()).unwrap()
}

pub(crate) fn options(clock: &Arc<ManualClock>) -> StoreOptions {
    StoreOptions {
        clock: Arc::<ManualClock>::clone(clock),
        time_zone: TimeZone::UTC,
        acquire_timeout: LIMIT,
        ..StoreOptions::default()
    }
}

pub(crate) fn actor() -> Actor {
    Actor { name: "lina".to_owned(), source: Source::Api, address: "10.0.0.1".to_owned() }
}

pub(crate) fn condition(value: &str) -> Condition {
    Condition {
        param_type: "uri".to_owned(),
        operator: "startsWith".to_owned(),
        param_name: Some("/".to_owned()),
        param_value: Some(value.to_owned()),
    }
}

/// Conditions of the values, to be stored.
pub(crate) fn conditions(values: &[&str]) -> Vec<NewCondition> {
    values.iter().map(|value| condition(value).into()).collect()
}

/// A selector of divide in the default namespace.
pub(crate) fn new_selector(id: &str, name: &str, sort: i32) -> Selector {
    Selector {
        plugin_id: Some("5".to_owned()),
        plugin_name: "divide".to_owned(),
        selector_type: 1,
        logged: true,
        handle: Some("[]".to_owned()),
        id: id.to_owned(),
        name: Some(name.to_owned()),
        enabled: true,
        sort: Some(sort),
        namespace_id: Some(NS.to_owned()),
        ..Selector::default()
    }
}

pub(crate) fn new_rule(id: &str, selector_id: &str, name: &str, sort: i32) -> Rule {
    Rule {
        plugin_name: "divide".to_owned(),
        selector_id: selector_id.to_owned(),
        id: id.to_owned(),
        name: Some(name.to_owned()),
        enabled: true,
        sort: Some(sort),
        namespace_id: Some(NS.to_owned()),
        ..Rule::default()
    }
}

pub(crate) fn new_upstream(url: &str) -> NewUpstream {
    NewUpstream {
        namespace_id: NS.to_owned(),
        protocol: Some("http://".to_owned()),
        url: url.to_owned(),
        weight: 50,
        ..NewUpstream::default()
    }
}

/// Stores a selector with one condition; out: its id.
pub(crate) async fn add_selector(uow: &mut UnitOfWork, name: &str) -> String {
    let id = uow.next_id().unwrap();
    selector::insert(uow, &new_selector(&id, name, 1), &conditions(&["/a"])).await.unwrap();
    id
}

/// Stores a rule with two conditions; out: its id.
pub(crate) async fn add_rule(uow: &mut UnitOfWork, selector_id: &str, name: &str) -> String {
    let id = uow.next_id().unwrap();
    let rule = new_rule(&id, selector_id, name, 1);
    rule::insert(uow, &rule, &conditions(&["/a", "/b"])).await.unwrap();
    id
}

/// A change worth nothing but a version.
pub(crate) fn any_change(namespace_id: &str, object_id: &str) -> Change {
    Change::new(namespace_id, Group::Rule, object_id, Operation::Update)
        .stock_event(Event::Update)
        .after("x")
}

async fn sqlite_mentions(path: &PathBuf, text: &str) -> Vec<(String, u64)> {
    use sqlx::{ConnectOptions, Row};

    let mut conn = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(path)
        .collation("C", |a: &str, b: &str| a.cmp(b))
        .connect()
        .await
        .unwrap();
    let tables: Vec<String> = sqlx::query_scalar(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_sqlx%' ESCAPE '\\'",
    )
    .fetch_all(&mut conn)
    .await
    .unwrap();
    let mut found = Vec::new();
    for table in tables {
        let sql = format!(
            "SELECT '\"' || name || '\" = $1' AS part FROM pragma_table_info('{table}') WHERE type = 'TEXT'"
        );
        let parts: Vec<String> = sqlx::query(sqlx::AssertSqlSafe(sql))
            .fetch_all(&mut conn)
            .await
            .unwrap()
            .iter()
            .map(|row| row.get("part"))
            .collect();
        let count = count_sql(&table, &parts);
        let n: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(count))
            .bind(text)
            .fetch_one(&mut conn)
            .await
            .unwrap();
        if n > 0 {
            found.push((table, u64::try_from(n).unwrap()));
        }
    }
    found.sort();
    found
}

async fn postgres_mentions(
    options: &sqlx::postgres::PgConnectOptions,
    text: &str,
) -> Vec<(String, u64)> {
    use sqlx::ConnectOptions;

    let mut conn = options.connect().await.unwrap();
    let columns: Vec<(String, String)> = sqlx::query_as(
        "SELECT CAST(table_name AS TEXT), CAST(column_name AS TEXT)
         FROM information_schema.columns
         WHERE table_schema = 'public' AND data_type = 'text' AND table_name NOT LIKE '\\_sqlx%'
         ORDER BY 1, 2",
    )
    .fetch_all(&mut conn)
    .await
    .unwrap();
    let mut tables: std::collections::BTreeMap<String, Vec<String>> = Default::default();
    for (table, column) in columns {
        tables.entry(table).or_default().push(format!("\"{column}\" = $1"));
    }
    let mut found = Vec::new();
    for (table, parts) in tables {
        let n: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(count_sql(&table, &parts)))
            .bind(text)
            .fetch_one(&mut conn)
            .await
            .unwrap();
        if n > 0 {
            found.push((table, u64::try_from(n).unwrap()));
        }
    }
    found
}

fn count_sql(table: &str, parts: &[String]) -> String {
    let condition = if parts.is_empty() { "$1 IS NULL".to_owned() } else { parts.join(" OR ") };
    format!("SELECT COUNT(*) FROM {table} WHERE {condition}")
}
