//! Look-ups as the system is configured: `/etc/resolv.conf` with its search domains, `/etc/hosts`.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::rr::Name;
use tracing::warn;

use super::{Answer, LookUp, LookUpError, LookUpFuture};

const FILES: [&str; 2] = ["/etc/resolv.conf", "/etc/hosts"];
/// Entries of the hosts file have no time of their own; the file may be edited at any moment.
const HOSTS_TTL: Duration = Duration::from_secs(30);
/// The time that hickory gives them.
const NO_TTL: u64 = hickory_resolver::MAX_TTL as u64;

/// When the files were last changed; `None`: not there.
type Changed = [Option<SystemTime>; 2];

/// hickory with the system's files, read again when they change.
#[derive(Default)]
pub struct SystemLookUp {
    /// Built at the first look-up, on the runtime that looks up.
    current: Arc<Mutex<Option<(TokioResolver, Changed)>>>,
    fixed: Option<(ResolverConfig, ResolverOpts)>,
}

impl std::fmt::Debug for SystemLookUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SystemLookUp").finish_non_exhaustive()
    }
}

impl SystemLookUp {
    /// Look-ups by the system's settings.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Look-ups by one server, with these search domains, and the system's hosts file.
    #[must_use]
    pub fn by_server(server: SocketAddr, search: &[&str]) -> Self {
        let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()]
            .into_iter()
            .map(|mut connection| {
                connection.port = server.port();
                connection
            })
            .collect();
        let search = search.iter().filter_map(|name| Name::from_utf8(name).ok()).collect();
        let server = NameServerConfig::new(server.ip(), true, connections);
        let config = ResolverConfig::from_parts(None, search, vec![server]);
        let mut options = ResolverOpts::default();
        options.timeout = Duration::from_secs(2);
        Self { current: Arc::default(), fixed: Some((config, options)) }
    }
}

impl LookUp for SystemLookUp {
    fn look_up(&self, name: &str) -> LookUpFuture {
        let (current, fixed) = (Arc::clone(&self.current), self.fixed.clone());
        let name = name.to_owned();
        Box::pin(async move {
            let changed = [changed(FILES[0]).await, changed(FILES[1]).await];
            let resolver = {
                let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
                match &*current {
                    Some((resolver, as_of)) if *as_of == changed => resolver.clone(),
                    _ => {
                        let resolver = build(fixed)?;
                        *current = Some((resolver.clone(), changed));
                        resolver
                    }
                }
            };
            let found = resolver.lookup_ip(&*name).await.map_err(|error| fault(&error))?;
            let records = found.as_lookup().answers();
            let ttl = records.iter().map(|record| u64::from(record.ttl)).min().unwrap_or_default();
            let ttl = if ttl == NO_TTL { HOSTS_TTL } else { Duration::from_secs(ttl) };
            Ok(Answer { addresses: found.iter().collect(), ttl })
        })
    }
}

async fn changed(file: &str) -> Option<SystemTime> {
    tokio::fs::metadata(file).await.ok()?.modified().ok()
}

fn build(fixed: Option<(ResolverConfig, ResolverOpts)>) -> Result<TokioResolver, LookUpError> {
    let (config, mut options) = match fixed {
        Some(fixed) => fixed,
        None => hickory_resolver::system_conf::read_system_conf().unwrap_or_else(|error| {
            // As the C library does where there is no such file.
            warn!("cannot read {}, asking 127.0.0.1: {error}", FILES[0]);
            let local = NameServerConfig::udp_and_tcp([127, 0, 0, 1].into());
            (ResolverConfig::from_name_servers(vec![local]), ResolverOpts::default())
        }),
    };
    // What is found is kept in one place only, and a look-up ahead of time must get through.
    options.cache_size = 0;
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
        .with_options(options)
        .build()
        .map_err(|error| LookUpError::Failed(error.to_string()))
}

fn fault(error: &NetError) -> LookUpError {
    match error {
        NetError::Dns(DnsError::NoRecordsFound(found)) => LookUpError::NoSuchName {
            ttl: found.negative_ttl.map(|seconds| Duration::from_secs(u64::from(seconds))),
        },
        other => LookUpError::Failed(other.to_string()),
    }
}
