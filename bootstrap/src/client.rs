//! The clients that call upstreams, from the configuration.

use longmen_core::upstream::{
    ClientFactory, ClientOptions, KeyStore, PoolLimit, PoolOptions, ProxyOptions, TlsConnector,
    TlsOptions, TlsSetupError,
};
use tokio::runtime::Handle;

use crate::config::{
    ClientTlsConfig, HttpClientConfig, KeyStoreType, PoolConfig, PoolType, ProxyConfig, SyncConfig,
};

/// Why the way to upstreams cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A file of `shenyu.httpclient.ssl`.
    #[error("shenyu.httpclient.ssl: {0}")]
    Tls(#[from] TlsSetupError),
    /// A file of `shenyu.sync.ssl`.
    #[error("shenyu.sync.ssl: {0}")]
    Sync(#[source] TlsSetupError),
    /// The pattern of hosts that are called directly.
    #[error("shenyu.httpclient.proxy.nonProxyHostsPattern: {0}")]
    Pattern(#[from] regex::Error),
}

/// Makes what the clients of all workers share. Names are looked up on `control`.
///
/// # Errors
/// Certificates and keys that cannot be read; a pattern that is none.
pub(crate) fn factory(
    config: &HttpClientConfig,
    control: &Handle,
) -> Result<ClientFactory, SetupError> {
    Ok(ClientFactory::new(options(config)?, control)?)
}

/// Makes what connects to admins whose addresses ask for TLS.
///
/// # Errors
/// Certificates that cannot be read.
pub(crate) fn sync_tls(config: &SyncConfig) -> Result<TlsConnector, SetupError> {
    let trusted_certificates = config.trusted_certificates.clone();
    let options = TlsOptions { trusted_certificates, ..TlsOptions::default() };
    TlsConnector::new(&options).map_err(SetupError::Sync)
}

fn options(config: &HttpClientConfig) -> Result<ClientOptions, SetupError> {
    Ok(ClientOptions {
        connect_timeout: config.connect_timeout,
        keep_alive: config.keep_alive,
        pool: pool(&config.pool),
        max_response_header_bytes: config.max_response_header_bytes,
        http2: config.http2,
        replay_bytes: config.replay_buffer_bytes,
        wiretap: config.wiretap,
        tls: tls(&config.ssl),
        proxy: config.proxy.as_ref().map(proxy).transpose()?,
    })
}

fn pool(config: &PoolConfig) -> PoolOptions {
    PoolOptions {
        limit: match config.pool_type {
            PoolType::Elastic => PoolLimit::Elastic,
            PoolType::Fixed => PoolLimit::Fixed {
                max_connections: config.max_connections,
                max_pending: config.max_pending,
                acquire_timeout: config.acquire_timeout,
            },
            PoolType::Disabled => PoolLimit::Disabled,
        },
        max_idle: config.max_idle_time,
        max_idle_per_upstream: config.max_idle_connections,
        max_life: config.max_life_time,
        eviction_interval: config.eviction_interval,
    }
}

fn tls(config: &ClientTlsConfig) -> TlsOptions {
    let key_store = config.key_store.as_ref().map(|store| match store.store_type {
        KeyStoreType::Pem => KeyStore::Pem { path: store.path.clone() },
        KeyStoreType::Pkcs12 => KeyStore::Pkcs12 {
            path: store.path.clone(),
            password: store
                .password
                .as_ref()
                .map_or_else(String::new, |password| password.expose().to_owned()),
        },
    });
    TlsOptions {
        insecure: config.insecure,
        trusted_certificates: config.trusted_certificates.clone(),
        key_store,
        handshake_timeout: config.handshake_timeout,
        close_flush_timeout: config.close_flush_timeout,
    }
}

fn proxy(config: &ProxyConfig) -> Result<ProxyOptions, SetupError> {
    let password = config.password.as_ref().map(|password| password.expose().to_owned());
    let whole = |pattern: &String| regex::Regex::new(&format!("^(?:{pattern})$"));
    Ok(ProxyOptions {
        host: config.host.to_ascii_lowercase(),
        port: config.port,
        credentials: config.username.clone().map(|user| (user, password.unwrap_or_default())),
        direct: config.non_proxy_hosts.as_ref().map(whole).transpose()?,
    })
}
