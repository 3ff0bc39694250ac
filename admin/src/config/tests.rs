//! The admin's table and sections on files as people have them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use longmen_core::config::{
    ConfigError, Kind, Loaded, MemoryEnvironment, NoticeLevel, Secret, Status, check_page, load,
};

use super::{AdminConfig, Inputs, SCHEMA, SHIPPED, StoreConfig};

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../../tests/fixtures/config/", $name))
    };
}

fn loaded(text: &str, variables: &[(&str, &str)]) -> Result<Loaded<AdminConfig>, ConfigError> {
    let mut environment = MemoryEnvironment::new().with_file("application.yml", text);
    for (name, value) in variables {
        environment = environment.with_variable(name, value);
    }
    AdminConfig::load(&[], &environment, Path::new("application.yml"))
}

fn with(text: &str, variables: &[(&str, &str)]) -> AdminConfig {
    loaded(text, variables).map_or_else(|e| panic!("{e}"), |loaded| loaded.config)
}

fn warnings(text: &str) -> Vec<String> {
    let loaded = loaded(text, &[]).unwrap_or_else(|e| panic!("{e}"));
    let warns = loaded.notices.into_iter().filter(|n| n.level == NoticeLevel::Warn);
    warns.map(|n| n.text).collect()
}

fn problems(text: &str, variables: &[(&str, &str)]) -> Vec<String> {
    match loaded(text, variables) {
        Ok(loaded) => panic!("loaded {:?}", loaded.config),
        Err(error) => error.problems.iter().map(ToString::to_string).collect(),
    }
}

fn postgres(store: &StoreConfig) -> &str {
    match store {
        StoreConfig::Postgres { url } => url.expose(),
        StoreConfig::Sqlite { path } => panic!("SQLite at {}", path.display()),
    }
}

#[test]
fn the_table_and_the_sections_agree() {
    let environment = MemoryEnvironment::new().with_file("application.yml", "{}");
    let mut asked = BTreeSet::new();
    let inputs = Inputs {
        arguments: &[],
        environment: &environment,
        default_path: Path::new("application.yml"),
        shipped: SHIPPED,
        roots: &SCHEMA.roots(),
    };
    let read = load(&SCHEMA, &inputs, |reader| {
        let config = AdminConfig::read(reader);
        asked.extend(reader.asked());
        config
    });
    assert!(read.is_ok(), "{read:?}");
    let found_first = |path: &str| {
        path == "config" || path.starts_with("spring.") && !path.starts_with("spring.datasource.")
    };
    for spec in SCHEMA.keys().filter(|spec| spec.status == Status::Used) {
        assert!(asked.contains(spec.path) || found_first(spec.path), "{} is not read", spec.path);
        assert!(!spec.meaning.is_empty(), "{} has no meaning", spec.path);
        if let Kind::Choice(words) = spec.kind {
            for word in words {
                with(&format!("{}: {word}", spec.path), &[]);
            }
        }
    }
    let mut paths = BTreeSet::new();
    for path in SCHEMA.keys().flat_map(|spec| spec.aliases.iter().chain([&spec.path])) {
        assert!(paths.insert(*path), "{path} is declared twice");
    }
}

#[test]
fn defaults_and_the_shipped_file() {
    let config = AdminConfig::default();
    assert_eq!(config.server.socket().to_string(), "0.0.0.0:9095");
    assert_eq!(config.server.context_path, "");
    assert_eq!(config.store, StoreConfig::Sqlite { path: PathBuf::from(".data/longmen.db") });
    assert_eq!(config.security.token_lifetime, Duration::from_hours(24));
    assert_eq!(config.security.white_list.len(), 17);
    assert_eq!(config.security.dashboard.only_super_admin_permissions.len(), 12);
    assert_eq!(config.security.admin_password, None);
    assert!(config.sync.websocket.enabled && !config.sync.websocket.allow_anonymous);
    assert_eq!(config.sync.websocket.max_message_bytes, 10_240);
    assert_eq!(config.history.retention, Some(Duration::from_hours(365 * 24)));
    let shipped = with(SHIPPED, &[]);
    assert_eq!(warnings(SHIPPED), [""; 0]);
    assert_eq!(
        shipped.sync.websocket.allow_origins,
        ["ws://localhost:9095", "ws://localhost:9195"]
    );
    assert_eq!(shipped.store, config.store);
    let environment = MemoryEnvironment::new();
    let without_file = AdminConfig::load(&[], &environment, Path::new("application.yml"));
    assert_eq!(without_file.map(|loaded| loaded.config), Ok(shipped));
}

#[test]
fn a_stock_file_of_2_7_1() {
    let text = fixture!("stock-2.7.1.yml");
    let config = with(text, &[]);
    assert_eq!(config.server.socket().to_string(), "127.0.0.1:9096");
    // Stock's h2 profile means "embedded".
    assert_eq!(config.store, StoreConfig::Sqlite { path: PathBuf::from(".data/longmen.db") });
    assert_eq!(config.sync.websocket.allow_origins, ["ws://control:9095", "ws://edge:9195"]);
    assert_eq!(config.sync.websocket.max_message_bytes, 20_480);
    assert_eq!(config.security.token_lifetime, Duration::from_hours(1));
    assert_eq!(
        config.security.white_list,
        ["/", "/platform/login", "/websocket", "/actuator/health/**"]
    );
    assert_eq!(
        config.security.dashboard.only_super_admin_permissions,
        ["system:manager:add", "system:role:add"]
    );
    assert_eq!(config.security.dashboard.super_admin_password_valid, None);
    assert!(!config.register.checked);
    assert_eq!(config.register.check_interval, Duration::from_secs(15));
    assert_eq!((config.register.zombie_check_times, config.register.zombie_check_threads), (4, 3));
    assert_eq!(config.swagger_max_bytes, 5 << 20);
    assert_eq!((config.import.max_entry_bytes, config.import.max_entries), (1 << 20, 10));
    assert_eq!(warnings(text), [""; 0]);
}

#[test]
fn a_stock_file_of_2_6_1() {
    let text = fixture!("stock-2.6.1.yml");
    let config = with(text, &[]);
    assert_eq!(config.server.port, 9097);
    assert_eq!(config.sync.websocket.allow_origins, ["ws://a:9095", "ws://b:9195"]);
    assert_eq!(warnings(text), [""; 0]);
}

#[test]
fn a_stock_installation_on_postgresql() {
    let config = with(fixture!("postgres.yml"), &[("DB_HOST", "db")]);
    assert_eq!(postgres(&config.store), "postgres://postgres:123e4567@db:5432/shenyu");
    assert_eq!((config.pool.max_connections, config.pool.min_connections), (7, 5));
    assert_eq!(config.pool.acquire_timeout, Duration::from_secs(5));
    assert_eq!(config.pool.idle_timeout, None);
    assert!(!format!("{config:?}").contains("123e4567"));
    let url = "postgres://u:p@other/longmen";
    let by_variable = with(fixture!("postgres.yml"), &[("DATABASE_URL", url)]);
    assert_eq!(postgres(&by_variable.store), url);
    // As the published container is configured.
    let container = with(
        "{}",
        &[
            ("SPRING_PROFILES_ACTIVE", "pg"),
            ("spring.datasource.url", "jdbc:postgresql://db/s"),
            ("SPRING_DATASOURCE_USERNAME", "u"),
            ("SPRING_DATASOURCE_PASSWORD", "p"),
        ],
    );
    assert_eq!(postgres(&container.store), "postgres://u:p@db/s");
}

#[test]
fn other_databases_are_refused_by_name() {
    const IMPORT: &str = "is not a store of Longmen; name a PostgreSQL database here, or none for the built-in SQLite file (`longmen-admin import`, which brings its data over, comes in a later version)";
    for (yaml, want) in [
        ("spring.datasource.url: jdbc:mysql://h/shenyu", format!("spring.datasource.url: MySQL {IMPORT}")),
        ("spring.datasource.url: jdbc:h2:mem:~/shenyu", format!("spring.datasource.url: H2 {IMPORT}")),
        ("spring.datasource.url: jdbc:oracle:thin:@h:1521/x", format!("spring.datasource.url: Oracle {IMPORT}")),
        ("spring.profiles.active: mysql", format!("spring.profiles.active: MySQL {IMPORT}")),
        ("shenyu.database.dialect: oracle", format!("shenyu.database.dialect: Oracle {IMPORT}")),
        (
            "spring.profiles.active: pg",
            "spring.profiles.active: says that the store is PostgreSQL; expected its address in spring.datasource.url or DATABASE_URL".to_owned(),
        ),
        (
            "spring.datasource.url: db.local:5432/hidden",
            "spring.datasource.url: expected jdbc:postgresql://host:port/name or postgres://user:password@host:port/name, found a value that is not shown".to_owned(),
        ),
    ] {
        assert_eq!(problems(yaml, &[]), [format!("application.yml:1: {want}")], "{yaml}");
    }
    assert_eq!(
        problems("{}", &[("DATABASE_URL", "mysql://h/x")]),
        [format!("environment variable DATABASE_URL: DATABASE_URL: MySQL {IMPORT}")]
    );
}

#[test]
fn passwords_and_keys() {
    let config = with(
        "server.servlet.context-path: /admin/\nshenyu.aes.secret: {key: 0123456789abcdef, iv: 0123456789abcdef}",
        &[("SHENYU_ADMIN_PASSWORD", "open sesame"), ("SHENYU_SYNC_TOKEN", "t0ken")],
    );
    assert_eq!(config.security.admin_password.as_ref().map(Secret::expose), Some("open sesame"));
    assert_eq!(config.sync.token.as_ref().map(Secret::expose), Some("t0ken"));
    assert_eq!(config.security.aes.as_ref().map(|aes| aes.key.expose()), Some("0123456789abcdef"));
    assert_eq!(config.server.context_path, "/admin");
    let shown = format!("{config:?}");
    assert!(!shown.contains("sesame") && !shown.contains("t0ken") && !shown.contains("0123"));
    let half = with("shenyu.aes.secret.key: 0123456789abcdef", &[]);
    assert_eq!(half.security.aes, None);
}

#[test]
fn risky_settings_are_warned_about() {
    let warnings =
        warnings("shenyu: {sync.websocket.allowAnonymous: true, shiro.white-list: [/**]}");
    assert_eq!(
        warnings,
        [
            "shenyu.shiro.white-list has /**: much of the API needs no login",
            "shenyu.sync.websocket.allowAnonymous is on: anybody who reaches this port can read all configuration",
        ]
    );
}

#[test]
fn every_mistake_of_a_file_is_named_at_once() {
    let mut have = problems(fixture!("wrong/many.yml"), &[]);
    have.sort();
    let mut want = [
        "3: server.port: expected a port from 0 to 65535, found \"web\"",
        "5: server.servlet.context-path: expected a path that begins with /, found \"admin\"",
        "8: spring.datasource.url: MySQL is not a store of Longmen; name a PostgreSQL database here, or none for the built-in SQLite file (`longmen-admin import`, which brings its data over, comes in a later version)",
        "10: spring.datasource.hikari.maximum-pool-size: expected a whole number from 1 to 1000, found \"0\"",
        "12: shenyu.timeZone: expected a time zone such as Europe/Berlin, GMT+8 or +08:00, found \"nowhere\"",
        "14: shenyu.register.registerType: expected one of http, found \"zookeeper\"",
        "16: shenyu.register.props.checked: expected true or false, found \"perhaps\"",
        "17: shenyu.register.props.scheduledTime: expected a number of seconds, or a time such as 500ms or 10s, at least 1 ms, found \"0\"",
        "20: shenyu.sync.websocket.messageMaxSize: expected a number of bytes, or a size such as 512KB or 2MB, found \"big\"",
        "21: shenyu.sync.websocket.allowAnonymous: expected true or false, found \"2\"",
        "23: shenyu.jwt.expired-seconds: expected a number of milliseconds, or a time such as 500ms or 10s, at least 1000 ms, found \"10\"",
        "27: shenyu.shiro.white-list[1]: expected a path that begins with /, found \"platform/login\"",
        "30: shenyu.aes.secret.key: expected a key of 16, 24 or 32 bytes, found one of 6",
        "31: shenyu.aes.secret.iv: expected a vector of 16 bytes, found one of 6",
        "33: shenyu.history.retention: expected 0 or at least shenyu.history.dispatchRetention",
        "36: shenyu.config.import.max-entry-count: expected a whole number from 1 to 1000000, found \"all\"",
    ]
    .map(|line| format!("application.yml:{line}"));
    want.sort();
    assert_eq!(have, want);
}

#[test]
fn the_page_of_the_docs_is_fresh() {
    check_page(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md"), &SCHEMA);
}
