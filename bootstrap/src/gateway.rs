//! A gateway from its configuration to its end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use longmen_core::chain::{CallOptions, Driver, DriverOptions, Registry};
use longmen_core::error::ErrorStatus;
use longmen_core::layer::{HeadLimits, InFlightLimit};
use longmen_core::lifecycle::Lifecycle;
use longmen_core::snapshot::{
    MissingPlugin, Publisher, PublisherOptions, SnapshotStore, UpstreamMode,
};
use longmen_core::upstream::{
    CheckOptions, Checker, ClientFactory, EjectionPolicy, EndpointOptions, EndpointRegistry,
    TcpProbe, UpstreamClient,
};
use tokio::runtime::{Builder, Runtime};
use tracing::info;

use crate::client;
use crate::config::{ClientStrategy, Compat, GatewayConfig, OnMissing, UpstreamsMode, WorkerModel};
use crate::connection::Settings;
use crate::management::{self, Endpoints};
use crate::stack::Parts;
use crate::sync::{self, Applier, LinkOptions};
use crate::worker::{ConnectionLimit, Worker};
use crate::{config::RpcTypeHeader, listener};

/// How often old snapshots are looked at.
const RELEASE: Duration = Duration::from_secs(1);

/// Why a gateway could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A socket or a thread cannot be had.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A certificate, a key or a pattern for the way to upstreams is unusable.
    #[error("{0}")]
    Client(#[from] client::SetupError),
}

/// A gateway that is yet to start.
#[derive(Debug)]
pub struct GatewayBuilder {
    config: GatewayConfig,
    registry: Registry,
}

/// The way to a gateway.
#[derive(Debug)]
pub struct Gateway;

impl Gateway {
    /// A gateway with all plugins of this build.
    #[must_use]
    pub fn builder(config: GatewayConfig) -> GatewayBuilder {
        GatewayBuilder { config, registry: longmen_plugins::registry() }
    }
}

/// A gateway that serves. Dropping it ends everything at once; [`RunningGateway::stop`] is graceful.
#[derive(Debug)]
pub struct RunningGateway {
    /// Where clients connect.
    pub address: SocketAddr,
    /// Where health and information answer beside the public port.
    pub management: SocketAddr,
    /// What is in force.
    pub store: Arc<SnapshotStore>,
    /// The states of the upstreams.
    pub upstreams: EndpointRegistry,
    /// Where the counters of upstream connections are.
    pub clients: ClientFactory,
    lifecycle: Lifecycle,
    stopping: Arc<AtomicBool>,
    /// Taken when it stops.
    control: Option<Runtime>,
    workers: Vec<JoinHandle<()>>,
    delay: Duration,
    grace: Duration,
}

impl GatewayBuilder {
    /// Replaces the plugins; for tests and for builds with plugins of their own.
    #[must_use]
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = registry;
        self
    }

    /// Opens the sockets, starts workers and sync, and returns at once: the gateway serves, and is
    /// ready once it has its configuration.
    ///
    /// # Errors
    /// An address that cannot be bound; threads that cannot be had.
    pub fn start(self) -> Result<RunningGateway, StartError> {
        let Self { config, mut registry } = self;
        // Asked by plugin: the file may spell a name in other ways.
        let plugins = config.plugins.clone();
        registry.switch_off(move |name| !plugins.is_enabled(name));
        let control = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("control")
            .enable_all()
            .build()?;
        let lifecycle = Lifecycle::new();
        let store = Arc::new(SnapshotStore::new());
        let stopping = Arc::new(AtomicBool::new(false));
        let upstreams = EndpointRegistry::new(endpoint_options(&config));
        let options = publisher_options(&config, &upstreams);
        let publisher = Publisher::new(Arc::clone(&store), registry, options);
        let applier = Applier::new(publisher);
        let prefixes = config.filters.health_paths.clone();
        let endpoints = Endpoints::new(Arc::clone(&store), prefixes, Arc::clone(&stopping));
        let clients = client::factory(&config.http_client, control.handle())?;
        let shared = SharedParts { store: &store, endpoints: &endpoints, clients: &clients };
        let (address, workers) = start_workers(&config, shared, &stopping, &lifecycle)?;
        let management = control.block_on(management::serve(
            SocketAddr::new(config.management.address, config.management.port),
            endpoints,
            lifecycle.clone(),
        ))?;
        housekeeping(&applier, &control, &lifecycle);
        check_upstreams(&config, &upstreams, &control, &lifecycle);
        sync::start(link_options(&config, address.port()), &applier, control.handle(), &lifecycle);
        info!(%address, %management, workers = workers.len(), "serving");
        Ok(RunningGateway {
            address,
            management,
            store,
            upstreams,
            clients,
            lifecycle,
            stopping,
            control: Some(control),
            workers,
            delay: config.shutdown.delay,
            grace: config.shutdown.grace,
        })
    }
}

impl RunningGateway {
    /// Waits for SIGINT or SIGTERM, then stops. Says whether all went well.
    ///
    /// # Errors
    /// Signal handlers cannot be installed.
    pub fn run_until_signal(self) -> io::Result<bool> {
        if let Some(control) = &self.control {
            control.block_on(self.lifecycle.until_signal())?;
        }
        Ok(self.stop())
    }

    /// Stops in good order: not ready any more, a delay for those who look, no new connections,
    /// requests under way finish up to the grace period. Blocks until done; says whether all went
    /// well. Not to be called from an async task.
    #[must_use]
    pub fn stop(mut self) -> bool {
        let Some(control) = self.control.take() else { return true };
        self.stopping.store(true, Ordering::Relaxed);
        let hard = self.lifecycle.hard().clone();
        let well = control.block_on(async {
            tokio::select! {
                () = tokio::time::sleep(self.delay) => {}
                () = hard.cancelled() => {}
            }
            self.lifecycle.stop(self.grace).await
        });
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
        control.shutdown_timeout(Duration::from_millis(100));
        info!("stopped");
        well
    }
}

impl Drop for RunningGateway {
    fn drop(&mut self) {
        if let Some(control) = self.control.take() {
            self.lifecycle.soft().cancel();
            self.lifecycle.hard().cancel();
            control.shutdown_background();
        }
    }
}

fn publisher_options(config: &GatewayConfig, upstreams: &EndpointRegistry) -> PublisherOptions {
    PublisherOptions {
        on_missing: match config.plugins.on_missing {
            OnMissing::Refuse => MissingPlugin::Refuse,
            OnMissing::Ignore => MissingPlugin::Ignore,
        },
        upstreams: match config.sync.upstreams {
            UpstreamsMode::Auto => UpstreamMode::Auto,
            UpstreamsMode::Replace => UpstreamMode::Replace,
            UpstreamsMode::Merge => UpstreamMode::Merge,
        },
        zone: config.time_zone.time_zone(),
        endpoints: upstreams.clone(),
    }
}

fn endpoint_options(config: &GatewayConfig) -> EndpointOptions {
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

fn call_options(config: &GatewayConfig) -> CallOptions {
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

fn link_options(config: &GatewayConfig, port: u16) -> LinkOptions {
    let websocket = &config.sync.websocket;
    LinkOptions {
        urls: websocket.urls.clone(),
        namespace: config.namespace.clone(),
        port,
        origin: websocket.allow_origin.clone(),
        token: config.sync.token.as_ref().map(|token| token.expose().to_owned()),
        connect_timeout: websocket.connect_timeout,
        answer_timeout: websocket.answer_timeout,
        ping_interval: websocket.ping_interval,
        reconnect_interval: websocket.reconnect_interval,
        master_check_interval: websocket.master_check_interval,
        max_message_bytes: websocket.max_message_bytes,
    }
}

fn error_status(config: &GatewayConfig) -> ErrorStatus {
    match config.compat.error_status {
        Compat::Shenyu => ErrorStatus::Shenyu,
        Compat::Standard => ErrorStatus::Standard,
    }
}

fn wall_clock() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// What all workers have in common.
#[derive(Clone, Copy)]
struct SharedParts<'a> {
    store: &'a Arc<SnapshotStore>,
    endpoints: &'a Endpoints,
    clients: &'a ClientFactory,
}

fn start_workers(
    config: &GatewayConfig,
    shared: SharedParts<'_>,
    stopping: &Arc<AtomicBool>,
    lifecycle: &Lifecycle,
) -> Result<(SocketAddr, Vec<JoinHandle<()>>), StartError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if config.netty.worker_count == 0 { cores } else { config.netty.worker_count };
    let (count, threads_each) = match config.netty.worker_model {
        WorkerModel::PerCore => (threads, 1),
        WorkerModel::Shared => (1, threads),
    };
    let wanted = SocketAddr::new(config.server.address, config.server.port);
    let listeners = listener::open(wanted, count, &config.netty)?;
    let address = match listeners.first() {
        Some(listener) => listener.local_addr()?,
        None => wanted,
    };
    let settings = Arc::new(Settings::new(config, Arc::clone(stopping)));
    let connections = ConnectionLimit::new(config.limits.max_connections);
    let in_flight = InFlightLimit::new(config.limits.max_in_flight);
    let limits = HeadLimits {
        max_target: config.netty.max_initial_line_bytes,
        max_body: config.limits.request_max_bytes,
    };
    let driver_options = DriverOptions {
        error_status: error_status(config),
        rpc_type_header: config.compat.rpc_type_header == RpcTypeHeader::Honour,
        calls: call_options(config),
        ..DriverOptions::default()
    };
    let mut workers = Vec::with_capacity(listeners.len());
    for (number, listener) in listeners.into_iter().enumerate() {
        let (store, endpoints, in_flight) =
            (Arc::clone(shared.store), shared.endpoints.clone(), in_flight.clone());
        let (clients, driver_options) = (shared.clients.clone(), driver_options.clone());
        let strategy = config.http_client.strategy;
        let error_status = error_status(config);
        let worker = Worker {
            name: format!("worker-{number}"),
            threads: threads_each,
            listener,
            settings: Arc::clone(&settings),
            connections: connections.clone(),
            lifecycle: lifecycle.clone(),
            parts: Box::new(move |runtime| {
                let client: Arc<dyn UpstreamClient> = match strategy {
                    ClientStrategy::Hyper => Arc::new(clients.hyper(runtime)),
                    ClientStrategy::Reqwest => Arc::new(clients.reqwest(runtime)),
                };
                let driver = Driver::new(
                    store,
                    Arc::clone(&client),
                    driver_options,
                    runtime.clone(),
                    wall_clock,
                );
                (Parts { error_status, endpoints, in_flight, limits, driver }, client)
            }),
        };
        workers.push(worker.start()?);
    }
    Ok((address, workers))
}

/// What is done now and then beside serving.
fn housekeeping(applier: &Applier, control: &Runtime, lifecycle: &Lifecycle) {
    let (applier, soft) = (applier.clone(), lifecycle.soft().clone());
    lifecycle.spawn(control.handle(), "housekeeping", async move {
        let mut ticks = tokio::time::interval(RELEASE);
        loop {
            tokio::select! {
                _ = ticks.tick() => applier.release(),
                () = soft.cancelled() => return,
            }
        }
    });
}

/// Probes upstreams as configured, and those that requests ejected since nobody could connect. Where
/// a proxy stands between, a direct connection says nothing about those.
fn check_upstreams(
    config: &GatewayConfig,
    upstreams: &EndpointRegistry,
    control: &Runtime,
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
        ejected: defaults.ejected.filter(|_| config.http_client.proxy.is_none()),
        print: check.print_interval,
        ..defaults
    };
    let probe = TcpProbe { timeout: check.timeout };
    let checker = Checker::new(upstreams.clone(), options, probe);
    let soft = lifecycle.soft().clone();
    lifecycle.spawn(control.handle(), "upstream-check", async move {
        tokio::select! {
            () = checker.run() => {}
            () = soft.cancelled() => {}
        }
    });
}
