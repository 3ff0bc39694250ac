//! The admin's configuration: `application.yml` with ShenYu's keys, variables and arguments.

mod jdbc;
mod register;
mod security;
mod server;
mod store;
mod sync;

use std::path::Path;

use longmen_core::config::logging::{self, LoggingConfig};
use longmen_core::config::{
    ConfigError, Environment, Inputs, KeySpec, Kind, Loaded, MemoryEnvironment, Reader, Schema,
    Section, Zone, load, spring,
};

pub use register::{ImportConfig, RegisterConfig, RegisterType};
pub use security::{AesConfig, DashboardConfig, SecurityConfig};
pub use server::ServerConfig;
pub use store::{HistoryConfig, PoolConfig, StoreConfig};
pub use sync::{HttpSyncConfig, SyncConfig, WebsocketSyncConfig};

/// The `application.yml` that is shipped, in force where there is no file.
pub const SHIPPED: &str = include_str!("../application.yml");

const GENERAL: Section = Section {
    title: "General",
    about: "",
    keys: &[KeySpec::new(
        "shenyu.timeZone",
        Kind::Zone,
        "system",
        "The zone of dates in answers and imports.",
    )],
};

const FOREIGN: Section = Section {
    title: "Keys of other frameworks",
    about: "",
    keys: &[
        KeySpec::inert("spring.jackson.*", "the zone of dates is `shenyu.timeZone`"),
        KeySpec::inert("spring.thymeleaf.*", "Java's web framework"),
        KeySpec::inert("spring.mvc.*", "Java's web framework"),
        KeySpec::inert("spring.messages.*", "Java's web framework"),
        KeySpec::inert("spring.application.*", "Spring"),
        KeySpec::inert("spring.*", "Spring"),
    ],
};

/// All keys that the admin knows.
pub static SCHEMA: Schema = Schema {
    name: "Admin",
    sections: &[
        server::SECTION,
        store::SECTION,
        security::SECTION,
        sync::SECTION,
        GENERAL,
        register::SECTION,
        logging::SECTION,
        spring::SECTION,
        FOREIGN,
    ],
};

/// Everything that can be configured about an admin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminConfig {
    /// Where clients connect.
    pub server: ServerConfig,
    /// Where the data is kept.
    pub store: StoreConfig,
    /// The pool of connections to a PostgreSQL store.
    pub pool: PoolConfig,
    /// How long changes are kept.
    pub history: HistoryConfig,
    /// Login, tokens and permissions.
    pub security: SecurityConfig,
    /// The channels to gateways.
    pub sync: SyncConfig,
    /// How services register.
    pub register: RegisterConfig,
    /// Bounds of an imported archive.
    pub import: ImportConfig,
    /// The largest document of a service's API, in bytes.
    pub swagger_max_bytes: u64,
    /// The zone of dates in answers.
    pub time_zone: Zone,
    /// What is logged, and how.
    pub logging: LoggingConfig,
}

impl AdminConfig {
    /// Loads the configuration from arguments (without the program's name), environment and
    /// files; `default_path` is the file read where nobody names another, and where it is
    /// missing [`SHIPPED`] is in force.
    ///
    /// # Errors
    /// [`ConfigError`] with everything that is wrong.
    pub fn load(
        arguments: &[String],
        environment: &dyn Environment,
        default_path: &Path,
    ) -> Result<Loaded<Self>, ConfigError> {
        let roots = SCHEMA.roots();
        let inputs =
            Inputs { arguments, environment, default_path, shipped: SHIPPED, roots: &roots };
        load(&SCHEMA, &inputs, Self::read)
    }

    /// Loads one YAML text without environment and arguments: for tests.
    ///
    /// # Errors
    /// As [`AdminConfig::load`]; the text is called `application.yml`.
    pub fn from_yaml(text: &str) -> Result<Self, ConfigError> {
        let path = Path::new("application.yml");
        let environment = MemoryEnvironment::new().with_file(path, text);
        Self::load(&[], &environment, path).map(|loaded| loaded.config)
    }

    fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            server: ServerConfig::read(reader),
            store: StoreConfig::read(reader),
            pool: PoolConfig::read(reader),
            history: HistoryConfig::read(reader),
            security: SecurityConfig::read(reader),
            sync: SyncConfig::read(reader),
            register: RegisterConfig::read(reader),
            import: ImportConfig::read(reader),
            swagger_max_bytes: reader.get("shenyu.swagger.max-body-size"),
            time_zone: reader.get("shenyu.timeZone"),
            logging: LoggingConfig::read(reader),
        }
    }
}

impl Default for AdminConfig {
    /// The table's defaults.
    fn default() -> Self {
        match Self::from_yaml("{}") {
            Ok(config) => config,
            Err(error) => unreachable!("the defaults are valid: {error}"),
        }
    }
}

#[cfg(test)]
mod tests;
