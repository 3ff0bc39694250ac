//! How upstreams are called, limited and watched, from the configuration.

use longmen_core::chain::CallOptions;
use longmen_core::lifecycle::Lifecycle;
use longmen_core::upstream::{
    CheckOptions, Checker, ClientFactory, EjectionPolicy, EndpointOptions, EndpointRegistry,
};
use tokio::runtime::Handle;

use crate::config::GatewayConfig;

/// Bounds of each upstream.
pub(crate) fn endpoint_options(config: &GatewayConfig) -> EndpointOptions {
    let check = &config.upstream_check;
    EndpointOptions {
        max_in_flight: u32::try_from(config.http_client.max_per_upstream).unwrap_or(u32::MAX),
        ejection: EjectionPolicy {
            after: check.eject_after,
            base: check.eject_time,
            max: check.eject_max_time,
        },
    }
}

/// Time limits and retries of calls.
pub(crate) fn call_options(config: &GatewayConfig) -> CallOptions {
    let (client, times) = (&config.http_client, &config.timeouts);
    CallOptions {
        response_timeout: client.response_timeout,
        client_body_idle: Some(times.client_body_idle),
        upstream_body_idle: client.idle_timeout.or(times.upstream_body_idle),
        total: times.total,
        retry_non_idempotent: config.compat.retry_non_idempotent,
        replay_bytes: client.replay_buffer_bytes,
    }
}

/// Probes upstreams as configured, and those that requests ejected since nobody could connect, by the
/// way that requests take.
pub(crate) fn check(
    config: &GatewayConfig,
    upstreams: &EndpointRegistry,
    clients: &ClientFactory,
    control: &Handle,
    lifecycle: &Lifecycle,
) {
    let check = &config.upstream_check;
    let defaults = CheckOptions::default();
    let options = CheckOptions {
        enabled: check.enabled,
        interval: check.interval,
        healthy: check.healthy_threshold,
        unhealthy: check.unhealthy_threshold,
        parallel: check.pool_size,
        print: check.print_interval,
        ..defaults
    };
    let probe = clients.probe(check.timeout);
    let checker = Checker::new(upstreams.clone(), options, probe);
    let soft = lifecycle.soft().clone();
    lifecycle.spawn(control, "upstream-check", async move {
        tokio::select! {
            () = checker.run() => {}
            () = soft.cancelled() => {}
        }
    });
}
