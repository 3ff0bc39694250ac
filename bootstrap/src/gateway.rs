//! A gateway from its configuration to its end.

mod publishing;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use longmen_core::chain::{Driver, Registry, TunnelLimits, Tunnels};
use longmen_core::layer::InFlightLimit;
use longmen_core::lifecycle::Lifecycle;
use longmen_core::snapshot::{Publisher, SnapshotStore};
use longmen_core::telemetry::access_log::AccessLog;
use longmen_core::upstream::{ClientFactory, EndpointRegistry, UpstreamClient};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;
use tracing::info;

use self::publishing::publisher_options;
use crate::client;
use crate::config::{ClientStrategy, GatewayConfig};
use crate::connection::Settings;
use crate::edge::{self, Watchers};
use crate::handover::{self, Post};
use crate::keep::Keeper;
use crate::management::{self, Endpoints};
use crate::operator::{Operators, explain};
use crate::sockets;
use crate::stack::{Filters, Parts};
use crate::stop::Work;
use crate::sync::{self, Applier, LinkOptions, PollOptions};
use crate::upstreams;
use crate::worker::{ConnectionLimit, Worker};

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
    inherited: Vec<TcpListener>,
    takeover: bool,
}

/// The way to a gateway.
#[derive(Debug)]
pub struct Gateway;

impl Gateway {
    /// A gateway with all plugins of this build.
    #[must_use]
    pub fn builder(config: GatewayConfig) -> GatewayBuilder {
        let registry = longmen_plugins::registry();
        GatewayBuilder { config, registry, inherited: Vec::new(), takeover: false }
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
    work: Work,
    /// Not ready any more.
    stopping: Arc<AtomicBool>,
    /// Answers say that their connection ends.
    closing: Arc<AtomicBool>,
    /// A successor has taken over.
    handed_over: Arc<AtomicBool>,
    /// Taken when it stops.
    control: Option<Runtime>,
    workers: Vec<JoinHandle<()>>,
    /// Closed when the workers have ended.
    access_log: Option<AccessLog>,
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

    /// Sockets that listen already, instead of opening any: one on the management port is the
    /// management's, all others are public. Whoever gave them is taken to hold them too.
    #[must_use]
    pub fn inherited(mut self, listeners: Vec<TcpListener>) -> Self {
        self.inherited = listeners;
        self
    }

    /// Takes over from the gateway that serves the same address, where there is one: its sockets are
    /// used, and it is stopped once this gateway is ready.
    #[must_use]
    pub fn takeover(mut self, takeover: bool) -> Self {
        self.takeover = takeover;
        self
    }

    /// Opens the sockets, starts workers and sync, and returns at once: the gateway serves, and is
    /// ready once it has its configuration. One that takes over serves when it is ready.
    ///
    /// # Errors
    /// An address that cannot be bound or taken over; threads that cannot be had.
    pub fn start(self) -> Result<RunningGateway, StartError> {
        let Self { config, mut registry, inherited, takeover } = self;
        // Asked by plugin: the file may spell a name in other ways.
        let plugins = config.plugins.clone();
        registry.switch_off(move |name| !plugins.is_enabled(name));
        let opened = sockets::open(&config, inherited, takeover)?;
        let control = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("control")
            .enable_all()
            .build()?;
        let store = Arc::new(SnapshotStore::new());
        let [stopping, closing, handed_over] = [(); 3].map(|()| Arc::new(AtomicBool::new(false)));
        let watchers = Watchers::start(&config)?;
        let filters = edge::filters(&config)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))?;
        let known = EndpointRegistry::new(upstreams::endpoint_options(&config));
        let options = publisher_options(&config, &known);
        let known_plugins = registry.clone();
        let publisher = Publisher::new(Arc::clone(&store), registry, options);
        let applier = Applier::new(publisher, watchers.metrics.clone());
        let keeper = config
            .snapshot
            .path
            .clone()
            .map(|path| Keeper::new(path, &config.namespace, applier.clone()));
        if let Some(keeper) = &keeper {
            keeper.restore();
        }
        let prefixes = config.filters.health_paths.clone();
        let endpoints = Endpoints::new(
            Arc::clone(&store),
            prefixes,
            Arc::clone(&stopping),
            watchers.metrics.clone(),
            Some(applier.clone()),
            config.management.on_public_port,
        );
        let tls = client::sync_tls(&config.sync)?;
        let asking = explain::options(&config, &filters, &endpoints, control.handle());
        let operators = Operators::new(applier.clone(), &known_plugins, &config, asking);
        let clients = client::factory(&config.http_client, control.handle())?;
        let work = Work {
            lifecycle: Lifecycle::new(),
            doors: opened.doors(),
            in_flight: InFlightLimit::new(config.limits.max_in_flight),
            tunnels: Tunnels::new(tunnel_limits(&config)),
            connections: ConnectionLimit::new(config.limits.max_connections),
            served: CancellationToken::new(),
        };
        let spare = opened.spare()?;
        let address = opened.address;
        let shared = SharedParts {
            store: &store,
            endpoints: &endpoints,
            operators: &operators,
            clients: &clients,
            filters: &filters,
            watchers: &watchers,
        };
        let workers = start_workers(&config, opened.public, shared, &closing, &work)?;
        let management = control.block_on(management::serve(
            opened.management,
            work.doors.open.clone(),
            endpoints,
            operators,
            work.lifecycle.clone(),
        ))?;
        let post = Post {
            address: opened.asked_for,
            netty: config.netty.clone(),
            patience: handover::SUCCESSOR_LIMIT,
            doors: work.doors.clone(),
            lifecycle: work.lifecycle.clone(),
            store: Arc::clone(&store),
            applier: applier.clone(),
            keeper: keeper.clone(),
            handed_over: Arc::clone(&handed_over),
        };
        work.lifecycle.spawn(control.handle(), "handover", post.run(opened.predecessor, spare));
        housekeeping(&applier, &control, &work);
        if let Some(keeper) = keeper {
            let (stop, served) = (work.lifecycle.soft().clone(), work.served.clone());
            let keeping = keeper.run(stop, served, Arc::clone(&handed_over));
            work.lifecycle.spawn(control.handle(), "snapshot", keeping);
        }
        upstreams::check(&config, &known, &clients, control.handle(), &work.lifecycle);
        let sessions = Arc::new(AtomicUsize::new(0));
        if let Some(metrics) = &watchers.metrics {
            edge::control_figures(metrics, &store, &applier, &sessions);
            metrics.states(known.clone());
        }
        let links = LinkOptions::new(&config, address.port(), sessions, tls);
        let polls = PollOptions::new(&config, &links);
        sync::start(links, &applier, control.handle(), &work.lifecycle, &work.served);
        sync::start_polling(polls, &applier, control.handle(), &work.lifecycle, &work.served);
        info!(%address, %management, workers = workers.len(), "serving");
        Ok(RunningGateway {
            address,
            management,
            store,
            upstreams: known,
            clients,
            work,
            stopping,
            closing,
            handed_over,
            control: Some(control),
            workers,
            access_log: watchers.access_log,
            delay: config.shutdown.delay,
            grace: config.shutdown.grace,
        })
    }
}

impl RunningGateway {
    /// Waits for SIGINT or SIGTERM, or for a successor to take over, then stops. Says whether all
    /// went well.
    ///
    /// # Errors
    /// Signal handlers cannot be installed.
    pub fn run_until_signal(self) -> io::Result<bool> {
        if let Some(control) = &self.control {
            control.block_on(self.work.lifecycle.until_signal())?;
        }
        Ok(self.stop())
    }

    /// Stops in good order: not ready any more, a delay for those who look, no new connections,
    /// requests under way finish up to the grace period. Blocks until done; says whether all went
    /// well. Not to be called from an async task.
    #[must_use]
    pub fn stop(mut self) -> bool {
        let Some(control) = self.control.take() else { return true };
        let hard = self.work.lifecycle.hard().clone();
        // With a successor there is somebody to connect to: nobody has to look, and the address is as
        // ready as before, also for who asks on a connection that this process still has.
        let handed_over = self.handed_over.load(Ordering::Relaxed);
        self.stopping.store(!handed_over, Ordering::Relaxed);
        let delay = if handed_over { Duration::ZERO } else { self.delay };
        let mut well = control.block_on(async {
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = hard.cancelled() => {}
            }
            self.closing.store(true, Ordering::Relaxed);
            self.work.end(self.grace).await
        });
        for worker in self.workers.drain(..) {
            well &= worker.join().is_ok();
        }
        if let Some(log) = self.access_log.take() {
            log.close();
        }
        control.shutdown_timeout(Duration::from_millis(100));
        info!("stopped");
        well
    }
}

impl Drop for RunningGateway {
    fn drop(&mut self) {
        if let Some(control) = self.control.take() {
            self.work.lifecycle.soft().cancel();
            self.work.lifecycle.hard().cancel();
            control.shutdown_background();
        }
    }
}

/// Milliseconds since 1970-01-01 UTC.
pub(crate) fn wall_clock() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

fn tunnel_limits(config: &GatewayConfig) -> TunnelLimits {
    TunnelLimits {
        max_frame_bytes: config.websocket.max_frame_bytes,
        idle: config.websocket.idle_timeout,
        write_stall: config.timeouts.client_write_stall,
        max_open: config.websocket.max_connections,
    }
}

/// What all workers have in common.
#[derive(Clone, Copy)]
struct SharedParts<'a> {
    store: &'a Arc<SnapshotStore>,
    endpoints: &'a Endpoints,
    operators: &'a Operators,
    clients: &'a ClientFactory,
    filters: &'a Filters,
    watchers: &'a Watchers,
}

fn start_workers(
    config: &GatewayConfig,
    listeners: Vec<Vec<TcpListener>>,
    shared: SharedParts<'_>,
    closing: &Arc<AtomicBool>,
    work: &Work,
) -> Result<Vec<JoinHandle<()>>, StartError> {
    let (_, threads_each) = sockets::workers(config);
    let soft = work.lifecycle.soft().clone();
    let settings = Arc::new(Settings::new(config, Arc::clone(closing), soft));
    if let Some(metrics) = &shared.watchers.metrics {
        edge::connection_figures(metrics, &work.connections);
        edge::websocket_figures(metrics, &work.tunnels);
        let clients = shared.clients.clone();
        metrics.connections(move || clients.stats());
    }
    let limits = edge::head_limits(config);
    let driver_options = edge::driver_options(config, work.tunnels.clone());
    let mut workers = Vec::with_capacity(listeners.len());
    for (number, listeners) in listeners.into_iter().enumerate() {
        let (store, endpoints, in_flight) =
            (Arc::clone(shared.store), shared.endpoints.clone(), work.in_flight.clone());
        let (clients, driver_options) = (shared.clients.clone(), driver_options.clone());
        // Nothing looks at requests where there is nothing to ask on the public port.
        let asked = config.local.enabled || config.management.on_public_port;
        let operators = asked.then(|| shared.operators.clone());
        let strategy = config.http_client.strategy;
        let error_status = edge::error_status(config);
        let filters = shared.filters.clone();
        let worker = Worker {
            name: format!("worker-{number}"),
            threads: threads_each,
            listeners,
            settings: Arc::clone(&settings),
            edge: Arc::new(shared.watchers.edge(config)),
            connections: work.connections.clone(),
            tunnels: work.tunnels.clone(),
            doors: work.doors.clone(),
            lifecycle: work.lifecycle.clone(),
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
                (
                    Parts {
                        error_status,
                        endpoints,
                        operators,
                        in_flight,
                        limits,
                        filters,
                        driver,
                    },
                    client,
                )
            }),
        };
        workers.push(worker.start()?);
    }
    Ok(workers)
}

/// What is done now and then beside serving.
fn housekeeping(applier: &Applier, control: &Runtime, work: &Work) {
    let (applier, served) = (applier.clone(), work.served.clone());
    work.lifecycle.spawn(control.handle(), "housekeeping", async move {
        let mut ticks = tokio::time::interval(RELEASE);
        loop {
            tokio::select! {
                _ = ticks.tick() => applier.release(),
                () = served.cancelled() => return,
            }
        }
    });
}
