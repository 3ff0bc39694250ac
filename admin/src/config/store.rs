//! The store: `DATABASE_URL`, `spring.datasource.*`, `shenyu.database.*`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use longmen_core::config::{KeySpec, Kind, MILLIS, Reader, SECONDS, Secret, Section, TimeUnit};

use super::jdbc::{self, Jdbc};

const JVM: &str = "a setting of Java's database library";
const POSITIVE_MILLIS: Kind = Kind::Time { unit: TimeUnit::Millis, min_ms: 1 };

/// The keys of this section.
pub(super) const SECTION: Section = Section {
    title: "Store",
    about: "Without an address the store is one SQLite file. A PostgreSQL database is named by the \
            variable `DATABASE_URL=postgres://user:password@host:5432/name`, or by \
            `spring.datasource.url` in JDBC form with `username` and `password` beside it; the \
            variable wins. Data of a ShenYu admin on MySQL, H2 or Oracle comes over by \
            `longmen-admin import`, in a later version.",
    keys: &[
        KeySpec::new(
            "DATABASE_URL",
            Kind::SecretUrl,
            "",
            "The address of a PostgreSQL database, as variable.",
        ),
        KeySpec::new(
            "spring.datasource.url",
            Kind::SecretUrl,
            "",
            "The same as `jdbc:postgresql://host:5432/name`; a `postgres://` address is taken too.",
        ),
        KeySpec::new("spring.datasource.username", Kind::Text, "", "The user of that database."),
        KeySpec::new("spring.datasource.password", Kind::Secret, "", "Its password."),
        KeySpec::new(
            "spring.datasource.hikari.maximum-pool-size",
            Kind::Int { min: 1, max: 1000 },
            "20",
            "Connections to the database at most.",
        ),
        KeySpec::new(
            "spring.datasource.hikari.minimum-idle",
            Kind::Int { min: 0, max: 1000 },
            "0",
            "Connections that are kept open.",
        ),
        KeySpec::new(
            "spring.datasource.hikari.connection-timeout",
            POSITIVE_MILLIS,
            "30000",
            "How long a request may wait for a connection.",
        ),
        KeySpec::new(
            "spring.datasource.hikari.idle-timeout",
            MILLIS,
            "600000",
            "How long an idle connection is kept; 0 keeps it.",
        ),
        KeySpec::new(
            "spring.datasource.hikari.max-lifetime",
            MILLIS,
            "1800000",
            "The age past which a connection is replaced; 0 is no limit.",
        ),
        KeySpec::new(
            "shenyu.database.path",
            Kind::File,
            ".data/longmen.db",
            "The SQLite file; made at first start.",
        ),
        KeySpec::new(
            "shenyu.database.dialect",
            Kind::Text,
            "",
            "What a ShenYu file says of its database; compared with the address.",
        ),
        KeySpec::new(
            "shenyu.history.retention",
            SECONDS,
            "365d",
            "How long changes stay in the history, and lines in the operation log; 0 keeps them.",
        ),
        KeySpec::new(
            "shenyu.history.dispatchRetention",
            SECONDS,
            "1d",
            "How long changes are kept for gateways that were away; older ones get a full refresh.",
        ),
        KeySpec::new(
            "shenyu.history.dispatchMaxChanges",
            Kind::Int { min: 1, max: 100_000_000 },
            "100000",
            "How many changes are kept for gateways that were away.",
        ),
        KeySpec::inert("shenyu.database.init_enable", "the schema is always brought up to date"),
        KeySpec::inert("shenyu.database.init_script", "the schema is built in"),
        KeySpec::inert("spring.datasource.driver-class-name", JVM),
        KeySpec::inert("spring.datasource.hikari.*", JVM),
        KeySpec::inert("spring.datasource.*", JVM),
        KeySpec::inert("spring.sql.*", "the schema is built in"),
        KeySpec::inert("mybatis.*", JVM),
    ],
};

/// Where the admin keeps its data.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreConfig {
    /// One SQLite file; the folder is made if need be.
    Sqlite {
        /// The file.
        path: PathBuf,
    },
    /// A PostgreSQL database.
    Postgres {
        /// A `postgres://` address, with user and password where there are any.
        url: Secret,
    },
}

impl fmt::Debug for StoreConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite { path } => f.debug_struct("Sqlite").field("path", path).finish(),
            Self::Postgres { .. } => f.write_str("Postgres(***)"),
        }
    }
}

/// The pool of connections to a PostgreSQL database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolConfig {
    /// Connections at most.
    pub max_connections: u32,
    /// Connections that are kept open.
    pub min_connections: u32,
    /// How long a request may wait for a connection.
    pub acquire_timeout: Duration,
    /// How long an idle connection is kept; `None`: as long as its age allows.
    pub idle_timeout: Option<Duration>,
    /// The age past which a connection is replaced; `None`: any age.
    pub max_lifetime: Option<Duration>,
}

/// How long changes are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryConfig {
    /// In the history; `None`: for ever.
    pub retention: Option<Duration>,
    /// For gateways that were away.
    pub dispatch_retention: Duration,
    /// For gateways that were away, by their number.
    pub dispatch_max_changes: u64,
}

impl StoreConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let path = reader.get("shenyu.database.path");
        let dialect: Option<String> = reader.optional("shenyu.database.dialect");
        let username: Option<String> = reader.optional("spring.datasource.username");
        let password = reader.secret("spring.datasource.password");
        let from_variable = reader.optional::<Secret>("DATABASE_URL");
        let from_key = reader.optional::<Secret>("spring.datasource.url");
        let (key, url) = match (from_variable, from_key) {
            (Some(url), _) => ("DATABASE_URL", url),
            (None, Some(url)) => ("spring.datasource.url", url),
            (None, None) => return Self::without_address(reader, dialect.as_deref(), path),
        };
        match jdbc::read(url.expose(), username.as_deref(), password.as_ref()) {
            Jdbc::Postgres(url) => Self::Postgres { url },
            Jdbc::Sqlite(path) => Self::Sqlite { path },
            Jdbc::Other(name) => {
                reader.reject(key, other_database(&name));
                Self::Sqlite { path }
            }
            Jdbc::Unknown => {
                reader.reject(
                    key,
                    "expected jdbc:postgresql://host:port/name or postgres://user:password@host:port/name, \
                     found a value that is not shown",
                );
                Self::Sqlite { path }
            }
        }
    }

    /// A ShenYu file names its database by a profile and leaves the address to a file inside the
    /// jar. Starting on an empty SQLite file would hide that; `h2` is ShenYu's own way to say
    /// "embedded".
    fn without_address(reader: &mut Reader<'_>, dialect: Option<&str>, path: PathBuf) -> Self {
        let profiles: Vec<String> = reader.list("spring.profiles.active");
        let by_profile = profiles.iter().find_map(|name| match name.as_str() {
            "pg" => Some("PostgreSQL"),
            "mysql" => Some("MySQL"),
            "oracle" => Some("Oracle"),
            "og" => Some("openGauss"),
            "ob" => Some("OceanBase"),
            _ => None,
        });
        let by_dialect = match dialect.map(str::to_ascii_lowercase).as_deref() {
            Some("postgresql" | "postgres") => Some("PostgreSQL"),
            Some("mysql") => Some("MySQL"),
            Some("oracle") => Some("Oracle"),
            Some("opengauss") => Some("openGauss"),
            Some("oceanbase") => Some("OceanBase"),
            _ => None,
        };
        let named = by_profile
            .map(|name| ("spring.profiles.active", name))
            .or_else(|| by_dialect.map(|name| ("shenyu.database.dialect", name)));
        match named {
            Some((key, "PostgreSQL")) => reader.reject(
                key,
                "says that the store is PostgreSQL; expected its address in spring.datasource.url or \
                 DATABASE_URL",
            ),
            Some((key, name)) => reader.reject(key, other_database(name)),
            None => {}
        }
        Self::Sqlite { path }
    }
}

fn other_database(name: &str) -> String {
    format!(
        "{name} is not a store of Longmen; name a PostgreSQL database here, or none for the built-in \
         SQLite file (`longmen-admin import`, which brings its data over, comes in a later version)"
    )
}

impl PoolConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let limit = |time: Duration| (!time.is_zero()).then_some(time);
        let max_connections = reader.get("spring.datasource.hikari.maximum-pool-size");
        let min: u32 = reader.get("spring.datasource.hikari.minimum-idle");
        Self {
            max_connections,
            min_connections: min.min(max_connections),
            acquire_timeout: reader.get("spring.datasource.hikari.connection-timeout"),
            idle_timeout: limit(reader.get("spring.datasource.hikari.idle-timeout")),
            max_lifetime: limit(reader.get("spring.datasource.hikari.max-lifetime")),
        }
    }
}

impl HistoryConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let retention: Duration = reader.get("shenyu.history.retention");
        let dispatch_retention = reader.get("shenyu.history.dispatchRetention");
        if !retention.is_zero() && retention < dispatch_retention {
            reader.reject(
                "shenyu.history.retention",
                "expected 0 or at least shenyu.history.dispatchRetention",
            );
        }
        Self {
            retention: (!retention.is_zero()).then_some(retention),
            dispatch_retention,
            dispatch_max_changes: reader.get("shenyu.history.dispatchMaxChanges"),
        }
    }
}
