//! From nothing to a seeded database.

use std::collections::HashSet;
use std::os::unix::fs::PermissionsExt;

use longmen_db::repository::namespace_plugin;
use longmen_db::repository::{dict, namespace, permission, plugin, plugin_handle, role, user};
use longmen_db::{Error, Location, SeedOptions, Store, StoreOptions, current_version, epoch};

use crate::support::{LIMIT, NS, TestStore, on_both_stores, postgres_location, sqlite_location};

on_both_stores!(
    a_second_start_changes_nothing,
    the_seed_has_the_stock_rows,
    a_database_of_a_newer_version_is_refused,
);

fn seed() -> SeedOptions {
    SeedOptions { admin_password_hash: "other".to_owned() }
}

async fn a_second_start_changes_nothing(test: TestStore) {
    let mut tx = test.store.read().await.unwrap();
    let before = epoch(&mut tx).await.unwrap();
    drop(tx);
    assert_eq!(before.len(), 32, "{before}");

    test.store.migrate().await.unwrap();
    assert!(test.store.is_seeded().await.unwrap());
    assert!(!test.store.seed(&seed()).await.unwrap());

    let mut tx = test.store.read().await.unwrap();
    assert_eq!(epoch(&mut tx).await.unwrap(), before);
    let admin = user::find_by_name(&mut tx, "admin").await.unwrap().unwrap();
    assert_eq!(admin.password, "hash", "the first seed stays");
    assert_eq!(current_version(&mut tx, NS).await.unwrap(), 0);
}

async fn the_seed_has_the_stock_rows(test: TestStore) {
    let mut tx = test.store.read().await.unwrap();
    let tx = &mut tx;

    let default = namespace::find(tx, NS).await.unwrap().unwrap();
    assert_eq!((default.id.as_str(), default.name.as_str()), ("1", "default"));

    let plugins = plugin::all(tx).await.unwrap();
    assert_eq!(plugins.len(), 46);
    assert_eq!(plugins[0].name, "mock");
    let links = namespace_plugin::of_namespace(tx, NS).await.unwrap();
    assert_eq!(links.len(), 46);
    assert_eq!(links.iter().map(|link| &link.id).collect::<HashSet<_>>().len(), 46);
    let link = |name: &str| links.iter().find(|link| link.name == name).unwrap();
    assert_eq!(
        (link("divide").id.as_str(), link("divide").plugin_id.as_str()),
        ("1801816010882822183", "5")
    );
    assert_eq!(link("mcpServer").id, "1907261515594055680");
    assert!(link("generalContext").enabled);
    assert!(!plugin::find_by_name(tx, "generalContext").await.unwrap().unwrap().enabled);
    assert_eq!(link("aiPrompt").sort, Some(171));
    let on: Vec<&str> =
        plugins.iter().filter(|row| row.enabled).map(|row| row.name.as_str()).collect();
    assert_eq!(
        on,
        ["contextPath", "cryptorRequest", "websocket", "divide", "tcp", "cryptorResponse"]
    );

    let divide: usize = {
        let mut count = 0;
        for handle_type in 1..=3 {
            count += plugin_handle::of_plugin(tx, "5", handle_type).await.unwrap().len();
        }
        count
    };
    assert_eq!(divide, 15);
    let context_path = plugin_handle::of_plugin(tx, "14", 2).await.unwrap();
    assert!(context_path.iter().any(|row| row.field == "contextPath"));
    assert_eq!(dict::of_type(tx, "operator").await.unwrap().len(), 11);
    assert_eq!(
        dict::of_type(tx, "loadBalance").await.unwrap()[0].dict_value.as_deref(),
        Some("hash")
    );

    assert_eq!(permission::resources(tx).await.unwrap().len(), 555);
    assert_eq!(permission::resources_of_user(tx, "1").await.unwrap().len(), 555);
    let perms = permission::of_user(tx, "1").await.unwrap();
    for expected in ["system:plugin:edit", "plugin:divideRule:add", "system:namespace:list"] {
        assert!(perms.iter().any(|perm| perm == expected), "{expected}");
    }
    let roles = role::of_user(tx, "1").await.unwrap();
    assert_eq!(roles.len(), 1);
    assert_eq!(roles[0].role_name, "super");
    let admin = user::find(tx, "1").await.unwrap().unwrap();
    assert!(admin.enabled && admin.password_ms.is_none() && admin.created_ms == admin.updated_ms);
}

async fn a_database_of_a_newer_version_is_refused(test: TestStore) {
    use sqlx::ConnectOptions;

    let sql = "INSERT INTO _sqlx_migrations
        (version, description, success, checksum, execution_time) VALUES ($1, 'later', TRUE, $2, 0)";
    let (version, checksum) = (99_990_101_000_000_i64, vec![1_u8]);
    match &test.location {
        Location::Sqlite(path) => {
            let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
            let mut conn = options.connect().await.unwrap();
            sqlx::query(sql).bind(version).bind(checksum).execute(&mut conn).await.unwrap();
        }
        Location::Postgres(options) => {
            let mut conn = options.connect().await.unwrap();
            sqlx::query(sql).bind(version).bind(checksum).execute(&mut conn).await.unwrap();
        }
    }
    let refused = test.store.migrate().await.unwrap_err();
    assert!(matches!(refused, Error::Migrate { .. }), "{refused}");
    assert!(refused.to_string().contains("99990101000000"), "{refused}");
}

#[tokio::test]
async fn two_admins_that_start_at_once_prepare_postgresql_once() {
    let location = postgres_location();
    let options = StoreOptions { acquire_timeout: LIMIT, ..StoreOptions::default() };
    let start = || async {
        let store = Store::open(&location, options.clone()).await.unwrap();
        store.migrate().await.unwrap();
        let first = store.seed(&seed()).await.unwrap();
        let mut tx = store.read().await.unwrap();
        (first, epoch(&mut tx).await.unwrap(), plugin::all(&mut tx).await.unwrap().len())
    };
    let (a, b, c) = tokio::join!(start(), start(), start());
    assert_eq!([a.0, b.0, c.0].iter().filter(|first| **first).count(), 1);
    assert_eq!((&a.1, a.2), (&b.1, b.2));
    assert_eq!((&a.1, a.2), (&c.1, c.2));
}

/// C-33: a database that would garble names is refused at the start, not at the first umlaut.
#[tokio::test]
async fn a_postgresql_database_in_another_encoding_is_refused() {
    use sqlx::ConnectOptions;

    let Location::Postgres(options) = postgres_location() else { unreachable!() };
    let mut conn = options.connect().await.unwrap();
    let name = format!("{}_latin1", options.get_database().unwrap());
    let sql = format!(
        "CREATE DATABASE {name} ENCODING 'LATIN1' TEMPLATE template0
         LOCALE_PROVIDER libc LOCALE 'C'"
    );
    sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&mut conn).await.unwrap();
    let location = Location::Postgres(Box::new(options.database(&name)));
    let store = Store::open(&location, StoreOptions::default()).await.unwrap();
    let refused = store.migrate().await.unwrap_err();
    assert!(refused.to_string().contains("LATIN1, expected UTF8"), "{refused}");
}

#[tokio::test]
async fn a_second_admin_on_a_sqlite_file_is_refused_until_the_first_is_gone() {
    let (location, folder) = sqlite_location();
    let first = Store::open(&location, StoreOptions::default()).await.unwrap();
    first.migrate().await.unwrap();

    let refused = Store::open(&location, StoreOptions::default()).await.unwrap_err();
    assert!(matches!(refused, Error::InUse { .. }), "{refused}");
    assert!(refused.to_string().contains("in use by another admin"), "{refused}");

    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", entry.path().display());
    }

    first.close().await;
    assert!(first.read().await.unwrap_err().is_transient());
    let second = Store::open(&location, StoreOptions::default()).await.unwrap();
    second.migrate().await.unwrap();
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error_that_may_pass() {
    let location = Location::parse("postgres://u:secret@127.0.0.1:1/none").unwrap();
    let error = Store::open(&location, StoreOptions::default()).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[tokio::test]
async fn an_address_of_the_java_form_leads_to_its_schema() {
    use sqlx::ConnectOptions;

    let Location::Postgres(options) = postgres_location() else { unreachable!() };
    let mut conn = options.connect().await.unwrap();
    sqlx::query("CREATE SCHEMA gateway").execute(&mut conn).await.unwrap();
    let address = format!(
        "jdbc:postgresql://{}:{}/{}?currentSchema=gateway&useUnicode=true",
        options.get_host(),
        options.get_port(),
        options.get_database().unwrap(),
    );
    let password = postgres_password();
    let location = Location::parse(&address).unwrap().with_credentials("longmen", &password);
    let store = Store::open(&location, StoreOptions::default()).await.unwrap();
    store.migrate().await.unwrap();
    assert!(store.seed(&seed()).await.unwrap());
    let tables: i64 = sqlx::query_scalar(
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'gateway'",
    )
    .fetch_one(&mut conn)
    .await
    .unwrap();
    assert!(tables > 20, "{tables}");
}

/// The password of the test server, which its address carries.
fn postgres_password() -> String {
    let url = longmen_core::test_util::postgres::server_url();
    let (_, rest) = url.split_once("://longmen:").unwrap();
    rest.split_once('@').unwrap().0.to_owned()
}
