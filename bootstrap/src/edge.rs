//! What stands at the edge of the gateway, made from its configuration: the filters, what upstreams
//! are told about clients, access log and metrics.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use longmen_core::chain::{DriverOptions, Edge, Forwarded, TunnelTotals, Tunnels};
use longmen_core::error::ErrorStatus;
use longmen_core::layer::{
    CollapseSlashes, CrossFault, CrossOptions, CrossRules, FileSize, FixedPaths, HeadLimits,
};
use longmen_core::snapshot::SnapshotStore;
use longmen_core::telemetry::Observer;
use longmen_core::telemetry::access_log::{AccessLog, AccessLogOptions};
use longmen_core::telemetry::metrics::Metrics;

use crate::config::{Compat, CrossConfig, ForwardedMode, GatewayConfig, GetBody, RpcTypeHeader};
use crate::management::age_seconds;
use crate::stack::Filters;
use crate::sync::Applier;
use crate::upstreams;
use crate::worker::ConnectionLimit;

/// Who watches the requests of a gateway.
#[derive(Debug)]
pub(crate) struct Watchers {
    pub(crate) metrics: Option<Metrics>,
    pub(crate) access_log: Option<AccessLog>,
}

impl Watchers {
    /// Opens the access log and makes the metrics, where they are switched on.
    ///
    /// # Errors
    /// The access log cannot be opened.
    pub(crate) fn start(config: &GatewayConfig) -> io::Result<Self> {
        let management = &config.management;
        let metrics = management
            .metrics_enabled
            .then(|| Metrics::new(config.netty.workers(), management.metrics_max_series));
        let access_log = match &config.access_log {
            None => None,
            Some(log) => Some(AccessLog::start(AccessLogOptions {
                format: log.format,
                path: log.path.clone(),
                queue: log.queue_size,
            })?),
        };
        if let (Some(metrics), Some(log)) = (&metrics, &access_log) {
            let (lines, drops) = (log.figures(), log.figures());
            metrics.counter(
                "longmen_access_log_lines",
                "Lines of the access log written",
                move || lines.written() as f64,
            );
            metrics.counter(
                "longmen_access_log_dropped",
                "Lines of the access log lost: the queue was full, or they could not be written",
                move || drops.dropped() as f64,
            );
        }
        Ok(Self { metrics, access_log })
    }

    /// The front of one worker.
    pub(crate) fn edge(&self, config: &GatewayConfig) -> Edge {
        let observer = Observer {
            metrics: self.metrics.as_ref().map(Metrics::worker),
            log: self.access_log.as_ref().map(AccessLog::worker),
        };
        let watched = observer.metrics.is_some() || observer.log.is_some();
        Edge { observer: watched.then_some(observer), ..unwatched(config) }
    }
}

/// The front of a worker that nobody watches.
pub(crate) fn unwatched(config: &GatewayConfig) -> Edge {
    let compat = &config.compat;
    Edge {
        trusted: compat.trusted_proxies.clone().into(),
        forwarded: match compat.forwarded_mode {
            ForwardedMode::Off => Forwarded::Off,
            ForwardedMode::Append => Forwarded::Append,
            ForwardedMode::Replace => Forwarded::Replace,
        },
        id_upstream: compat.request_id_upstream,
        id_response: compat.request_id_response,
        drop_get_body: compat.get_body == GetBody::Drop,
        normalize_query: compat.normalize_query,
        observer: None,
    }
}

/// How requests are driven.
pub(crate) fn driver_options(config: &GatewayConfig, tunnels: Tunnels) -> DriverOptions {
    DriverOptions {
        error_status: error_status(config),
        rpc_type_header: config.compat.rpc_type_header == RpcTypeHeader::Honour,
        tunnels,
        calls: upstreams::call_options(config),
        ..DriverOptions::default()
    }
}

/// What is told about client connections at a scrape.
pub(crate) fn connection_figures(metrics: &Metrics, connections: &ConnectionLimit) {
    let (open, refused) = (connections.clone(), connections.clone());
    metrics.gauge("longmen_connections_open", "Client connections that are open", move || {
        open.open() as f64
    });
    metrics.counter(
        "longmen_connections_refused",
        "Client connections closed at once because so many were open",
        move || refused.refused() as f64,
    );
}

/// What is told about proxied websockets at a scrape. Frames and bytes are counted when one ends.
pub(crate) fn websocket_figures(metrics: &Metrics, tunnels: &Tunnels) {
    let open = tunnels.clone();
    metrics.gauge("longmen_websockets_open", "Proxied websockets that are open", move || {
        open.open() as f64
    });
    type Total = fn(&TunnelTotals) -> &AtomicU64;
    let counters: [(&'static str, &'static str, Total); 5] = [
        ("longmen_websockets_opened", "Proxied websockets that were opened", |t| &t.opened),
        ("longmen_websocket_client_frames", "Frames from clients", |t| &t.frames_from_clients),
        ("longmen_websocket_upstream_frames", "Frames to clients", |t| &t.frames_to_clients),
        ("longmen_websocket_client_bytes", "Bytes from clients", |t| &t.bytes_from_clients),
        ("longmen_websocket_upstream_bytes", "Bytes to clients", |t| &t.bytes_to_clients),
    ];
    for (name, help, total) in counters {
        let tunnels = tunnels.clone();
        metrics.counter(name, help, move || total(tunnels.totals()).load(Ordering::Relaxed) as f64);
    }
}

/// What the control side tells at a scrape.
pub(crate) fn control_figures(
    metrics: &Metrics,
    store: &Arc<SnapshotStore>,
    applier: &Applier,
    sessions: &Arc<AtomicUsize>,
) {
    let (version, ready) = (Arc::clone(store), Arc::clone(store));
    let (faults, retired) = (applier.clone(), applier.clone());
    let sessions = Arc::clone(sessions);
    metrics.gauge("longmen_sync_connected", "Open sessions with admins", move || {
        sessions.load(Ordering::Relaxed) as f64
    });
    metrics.gauge(
        "longmen_sync_ready",
        "Whether a full set of configuration is in force",
        move || f64::from(u8::from(ready.load().ready)),
    );
    metrics.gauge(
        "longmen_sync_version",
        "Version of the configuration in force; 0 from a stock admin",
        move || version.load().position.version as f64,
    );
    let restored = applier.clone();
    metrics.gauge(
        "longmen_sync_from_snapshot",
        "1 while the configuration in force comes from the kept file and no admin has confirmed it",
        move || f64::from(u8::from(restored.restored_ms().is_some())),
    );
    let restored = applier.clone();
    metrics.gauge(
        "longmen_sync_snapshot_age_seconds",
        "Age of the kept file that is in force; 0 once an admin has confirmed it",
        move || restored.restored_ms().map_or(0.0, |ms| age_seconds(ms) as f64),
    );
    let local = applier.clone();
    metrics.gauge(
        "longmen_sync_local_changes",
        "Changes in force that were written at the gateway itself, since the last full refresh",
        move || local.local_changes() as f64,
    );
    metrics.gauge(
        "longmen_snapshot_faults",
        "Objects that are not in force as configured",
        move || faults.faults() as f64,
    );
    metrics.gauge(
        "longmen_snapshots_retired",
        "Old snapshots that somebody still holds",
        move || retired.retired() as f64,
    );
}

/// How envelope answers choose their status.
pub(crate) const fn error_status(config: &GatewayConfig) -> ErrorStatus {
    match config.compat.error_status {
        Compat::Shenyu => ErrorStatus::Shenyu,
        Compat::Standard => ErrorStatus::Standard,
    }
}

/// The limits of request heads and announced bodies.
pub(crate) const fn head_limits(config: &GatewayConfig) -> HeadLimits {
    HeadLimits {
        max_line: config.netty.max_initial_line_bytes,
        max_headers: config.netty.max_header_bytes,
        max_body: config.limits.request_max_bytes,
    }
}

/// The filters in front of the plugins.
///
/// # Errors
/// CORS settings that cannot stand in a header.
pub(crate) fn filters(config: &GatewayConfig) -> Result<Filters, CrossFault> {
    let filters = &config.filters;
    let cross = match &filters.cross {
        None => None,
        Some(cross) => Some(Arc::new(CrossRules::new(&cross_options(cross))?)),
    };
    Ok(Filters {
        collapse_slashes: CollapseSlashes(filters.collapse_slashes),
        cross,
        file_size: FileSize { max: filters.file_max_bytes },
        fixed_paths: FixedPaths::new(&filters.exclude_paths, &filters.fallback_paths),
    })
}

/// Source: ShenYu 2.7.1, CORS filter: prefixes count only together with a domain, and have the
/// request's own scheme.
fn cross_options(config: &CrossConfig) -> CrossOptions {
    let prefixed = config.origin_domain.iter().flat_map(|domain| {
        let spacer = &config.origin_spacer;
        let prefixes = config.origin_prefixes.iter().map(|prefix| prefix.trim());
        prefixes
            .filter(|prefix| !prefix.is_empty())
            .map(move |prefix| format!("{prefix}{spacer}{}", domain.trim()))
    });
    CrossOptions {
        any_origin: config.any_origin,
        credentials: config.credentials,
        headers: config.headers.clone(),
        methods: config.methods.clone(),
        expose: config.expose.clone(),
        max_age_seconds: config.max_age.as_secs(),
        origins: config.origins.iter().cloned().chain(prefixed).collect(),
        pattern: config.origin_pattern.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::cross_options;
    use crate::config::GatewayConfig;

    #[test]
    fn prefixes_are_joined_with_the_domain() {
        let text = "shenyu:\n  cross:\n    enabled: true\n    allowedOrigin:\n      \
                    domain: shop.example\n      spacer: '-'\n      prefixes: a, b\n      \
                    origins: http://x, y\n";
        let config = GatewayConfig::from_yaml(text).unwrap_or_else(|error| panic!("{error}"));
        let options = cross_options(&config.filters.cross.unwrap());
        assert_eq!(options.origins, ["http://x", "y", "a-shop.example", "b-shop.example"]);
        assert_eq!((options.methods, options.max_age_seconds), (vec!["*".to_owned()], 18_000));
    }
}
