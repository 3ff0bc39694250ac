//! The gateway's configuration: `application.yml` with ShenYu's keys, variables and arguments.

mod access_log;
mod compat;
mod filters;
mod foreign;
mod httpclient;
mod limits;
mod management;
mod match_cache;
mod match_index;
mod netty;
mod plugins;
mod server;
mod snapshot;
mod sync;
mod upstream_check;
mod websocket;

use std::path::Path;

use longmen_core::config::logging::{self, LoggingConfig};
use longmen_core::config::{
    ConfigError, Environment, Inputs, KeySpec, Kind, Loaded, MemoryEnvironment, Reader, Schema,
    Section, Zone, load, spring,
};

pub use access_log::AccessLogConfig;
pub use compat::{Compat, CompatConfig, ForwardedMode, GetBody, RpcTypeHeader};
pub use filters::{CrossConfig, FiltersConfig};
pub use httpclient::{
    ClientStrategy, ClientTlsConfig, HttpClientConfig, KeyStoreConfig, KeyStoreType, PoolConfig,
    PoolType, ProxyConfig,
};
pub use limits::{LimitsConfig, ShutdownConfig, TimeoutsConfig};
pub use management::{LocalConfig, ManagementConfig};
pub use match_cache::{CacheConfig, MatchCacheConfig};
pub use match_index::MatchIndexConfig;
pub use netty::{
    ListenerOptions, NettyConfig, SniCertificate, SniConfig, SniMode, SocketOptions, WorkerModel,
};
pub use plugins::{OnMissing, PluginsConfig};
pub use server::{CompressionConfig, ServerConfig};
pub use snapshot::SnapshotConfig;
pub use sync::{HttpSyncConfig, SyncConfig, UpstreamsMode, WebsocketSyncConfig};
pub use upstream_check::UpstreamCheckConfig;
pub use websocket::WebsocketConfig;

/// The `application.yml` that is shipped, in force where there is no file.
pub const SHIPPED: &str = include_str!("../application.yml");

const GENERAL: Section = Section {
    title: "General",
    about: "",
    keys: &[
        KeySpec::new(
            "shenyu.namespace",
            Kind::Text,
            "649330b6-c2d7-4edc-be8e-8a54df9eb385",
            "The id of the namespace whose data this gateway serves.",
        ),
        KeySpec::new(
            "shenyu.timeZone",
            Kind::Zone,
            "system",
            "The zone of `TimeBefore` and `TimeAfter` conditions.",
        ),
    ],
};

/// All keys that the gateway knows.
pub static SCHEMA: Schema = Schema {
    name: "Gateway",
    sections: &[
        server::SECTION,
        GENERAL,
        compat::SECTION,
        sync::SECTION,
        snapshot::SECTION,
        netty::SECTION,
        limits::SECTION,
        httpclient::SECTION,
        httpclient::POOL_SECTION,
        httpclient::TLS_SECTION,
        upstream_check::SECTION,
        match_index::SECTION,
        match_cache::SECTION,
        plugins::SECTION,
        filters::SECTION,
        websocket::SECTION,
        management::SECTION,
        access_log::SECTION,
        logging::SECTION,
        spring::SECTION,
        foreign::SECTION,
    ],
};

/// Everything that can be configured about a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayConfig {
    /// Where clients connect.
    pub server: ServerConfig,
    /// The id of the namespace served.
    pub namespace: String,
    /// The zone of time conditions.
    pub time_zone: Zone,
    /// Differences that a client can see.
    pub compat: CompatConfig,
    /// Where selectors and rules come from.
    pub sync: SyncConfig,
    /// The file of the last configuration in force.
    pub snapshot: SnapshotConfig,
    /// Workers, sockets and the limits of the request head.
    pub netty: NettyConfig,
    /// Bounds of what clients may hold.
    pub limits: LimitsConfig,
    /// Named time limits.
    pub timeouts: TimeoutsConfig,
    /// How the gateway stops.
    pub shutdown: ShutdownConfig,
    /// How upstreams are called.
    pub http_client: HttpClientConfig,
    /// Probing of upstreams.
    pub upstream_check: UpstreamCheckConfig,
    /// The index of selectors and rules.
    pub match_index: MatchIndexConfig,
    /// The caches of the choice of selectors and rules.
    pub match_cache: MatchCacheConfig,
    /// Which plugins take part.
    pub plugins: PluginsConfig,
    /// The filters in front of the plugins.
    pub filters: FiltersConfig,
    /// Proxied websockets.
    pub websocket: WebsocketConfig,
    /// The management port.
    pub management: ManagementConfig,
    /// The local admin endpoints.
    pub local: LocalConfig,
    /// The access log; `None` while it is switched off.
    pub access_log: Option<AccessLogConfig>,
    /// What is logged, and how.
    pub logging: LoggingConfig,
}

impl GatewayConfig {
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
    /// As [`GatewayConfig::load`]; the text is called `application.yml`.
    pub fn from_yaml(text: &str) -> Result<Self, ConfigError> {
        let path = Path::new("application.yml");
        let environment = MemoryEnvironment::new().with_file(path, text);
        Self::load(&[], &environment, path).map(|loaded| loaded.config)
    }

    fn read(reader: &mut Reader<'_>) -> Self {
        let compat = CompatConfig::read(reader);
        let local = LocalConfig::read(reader);
        let netty = NettyConfig::read(reader);
        let logging = LoggingConfig::read(reader);
        let access_log = AccessLogConfig::read(reader, netty.access_log, logging.format);
        let server = ServerConfig::read(reader);
        let config = Self {
            snapshot: SnapshotConfig::read(reader, server.port),
            server,
            namespace: reader.get("shenyu.namespace"),
            time_zone: reader.get("shenyu.timeZone"),
            sync: SyncConfig::read(reader),
            netty,
            limits: LimitsConfig::read(reader),
            timeouts: TimeoutsConfig::read(reader),
            shutdown: ShutdownConfig::read(reader),
            http_client: HttpClientConfig::read(reader, compat.mode),
            upstream_check: UpstreamCheckConfig::read(reader),
            match_index: MatchIndexConfig::read(reader),
            match_cache: MatchCacheConfig::read(reader),
            plugins: PluginsConfig::read(reader),
            filters: FiltersConfig::read(reader),
            websocket: WebsocketConfig::read(reader),
            management: ManagementConfig::read(reader),
            access_log,
            logging,
            compat,
            local,
        };
        config.validate(reader);
        config
    }

    /// What no section can see alone.
    fn validate(&self, reader: &mut Reader<'_>) {
        let same_port = self.management.port != 0 && self.management.port == self.server.port;
        let overlap = self.management.address == self.server.address
            || self.management.address.is_unspecified()
            || self.server.address.is_unspecified();
        if same_port && overlap {
            reader.reject(
                "shenyu.management.port",
                format!("expected another port than server.port, found \"{}\"", self.server.port),
            );
        }
    }
}

impl Default for GatewayConfig {
    /// The table's defaults; the column of `shenyu.compat` is `shenyu`.
    fn default() -> Self {
        match Self::from_yaml("{}") {
            Ok(config) => config,
            Err(error) => unreachable!("the defaults are valid: {error}"),
        }
    }
}

#[cfg(test)]
mod tests;
