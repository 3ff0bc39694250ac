//! The server half of the sync: what admin tells gateways, and when.
//!
//! ```text
//! commit ─▶ config_change ─▶ dispatcher ─▶ hub ─▶ queue of each session ─▶ websocket
//!                 ▲                                        ▲
//!                 └── catch-up of one of our gateways      └── full refresh, read once for all
//! ```
//!
//! The dispatcher reads the change log from its position on, writes the frames of a change set
//! once for each dialect, and puts them into the bounded queues of the sessions. A session answers
//! what its gateway asks and sends what is in its queue, in one order. Nothing here waits for a
//! slow gateway, and nothing is told that is not committed.
//!
//! Gateways that poll are told by the same dispatcher: see `polling`.
//!
//! Source: ShenYu 2.7.1, websocket channel; marks, catch-up and acknowledgements are ours.

mod catch_up;
mod changes;
mod dispatcher;
mod endpoint;
mod gateways;
mod handshake;
mod hub;
mod missing;
mod object;
mod patience;
mod polling;
mod pruner;
mod refreshes;
mod reports;
mod sequence;
mod session;
mod text;
mod token;

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use axum::extract::ws::Utf8Bytes;
use longmen_core::chain::Registry;
use longmen_core::config::Secret;
use longmen_core::lifecycle::Lifecycle;
use longmen_core::sync::RunningMode;
use longmen_db::Store;
use tokio::runtime::Handle;
use tokio::sync::Notify;

pub use endpoint::routes;
pub(crate) use gateways::address;
pub use gateways::{GatewayView, Gateways};
pub(crate) use missing::add_faults;
pub(crate) use token::share_token;

use dispatcher::Dispatcher;
use hub::Hub;
use patience::Patience;
use polling::{Polling, States};
use refreshes::Refreshes;
use reports::Reporter;
use token::SyncToken;

use crate::config::{HistoryConfig, SyncConfig};
use crate::instances::Instances;
use crate::jobs::Job;

/// The sync of one admin. Clones are handles to the same.
#[derive(Debug, Clone)]
pub struct Publisher(Arc<Shared>);

/// What the dispatcher and the sessions share.
#[derive(Debug)]
struct Shared {
    store: Store,
    config: SyncConfig,
    token: SyncToken,
    hub: Arc<Hub>,
    refreshes: Refreshes,
    polling: Polling,
    gateways: Gateways,
    /// Instances that said that they are alive.
    instances: Instances,
    reporter: Reporter,
    /// This admin, as people know it: `host:port`, once it listens.
    name: OnceLock<String>,
    started_ms: i64,
    /// How long the store may take.
    patience: Patience,
    /// The answer to the question for the running mode.
    running_mode: Utf8Bytes,
    /// Has the dispatcher read the table now.
    poke: Notify,
}

impl Shared {
    /// Lets go of what nobody asks for any more.
    fn let_go(&self) {
        self.refreshes.sweep();
        self.polling.states.sweep();
        self.polling.pollers.sweep(self);
    }
}

impl Publisher {
    /// Prepares the sync: takes the configured sync token, or opens or makes the kept one.
    ///
    /// # Errors
    /// The token's file can neither be read nor made.
    pub fn new(store: Store, config: &SyncConfig, context_path: &str) -> anyhow::Result<Self> {
        let configured = config.token.as_ref().map(Secret::expose);
        let token = SyncToken::open(configured, &config.token_path)?;
        let running_mode = serde_json::to_string(&RunningMode::standalone(context_path))?.into();
        let limits = &config.websocket;
        let patience = Patience::new(config.query_timeout);
        Ok(Self(Arc::new(Shared {
            refreshes: Refreshes::new(store.clone(), patience),
            polling: Polling::new(States::new(store.clone(), patience), config.http.max_held),
            started_ms: store.now_ms(),
            store,
            token,
            hub: Arc::new(Hub::new(limits.max_sessions, limits.queue_size)),
            config: config.clone(),
            gateways: Gateways::default(),
            instances: Instances::default(),
            reporter: Reporter::default(),
            name: OnceLock::new(),
            patience,
            running_mode,
            poke: Notify::new(),
        })))
    }

    /// Starts the dispatcher, what keeps its log small, and what tells the other admins of the gateways
    /// here; `addr` is where this admin listens. When the life comes to its end all of it stops, and all
    /// sessions with it.
    ///
    /// # Errors
    /// The database's.
    pub async fn start(
        &self,
        life: &Lifecycle,
        history: &HistoryConfig,
        addr: SocketAddr,
    ) -> anyhow::Result<()> {
        self.0.name.get_or_init(|| own_name(addr));
        let dispatcher = Dispatcher::new(Arc::clone(&self.0)).await?;
        let (runtime, stop) = (Handle::current(), life.soft());
        life.spawn(&runtime, "dispatcher", dispatcher.run(stop.clone()));
        let (store, patience) = (self.0.store.clone(), self.0.patience);
        let pruner = pruner::run(store, history.clone(), patience, stop.clone());
        life.spawn(&runtime, "pruner", pruner);
        life.spawn(&runtime, "reports", Arc::clone(&self.0).report(stop.clone()));
        let sweeper = Arc::clone(&self.0);
        let sweep = Job::new(self.0.store.clone(), "gateways")
            .run(stop.clone(), move |lease| Arc::clone(&sweeper).sweep(lease));
        life.spawn(&runtime, "gateways", sweep);
        Ok(())
    }

    /// Tells the other admins of the end; to be called once all sessions have ended.
    pub(crate) async fn say_goodbye(&self) {
        self.0.say_goodbye().await;
    }

    /// Stores what is known here of gateways and instances, so that reading the tables shows it.
    ///
    /// # Errors
    /// The database's.
    pub(crate) async fn write_reports(&self) -> anyhow::Result<()> {
        self.0.write_reports().await
    }

    /// Instances that say that they are alive.
    pub(crate) fn instances(&self) -> &Instances {
        &self.0.instances
    }

    /// Warns of plugins that were just switched on and that connected gateways do not have.
    pub(crate) fn switched_on<'a>(
        &self,
        registry: &Registry,
        namespace: &str,
        plugins: impl IntoIterator<Item = &'a str>,
    ) {
        let connected = self.gateways().connected(namespace);
        missing::warn_of_switched_on(registry, &connected, namespace, plugins);
    }

    /// How many questions of gateways that poll are held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.0.polling.held(self.0.config.http.max_held)
    }

    /// The gateways that are or were connected.
    #[must_use]
    pub fn gateways(&self) -> &Gateways {
        &self.0.gateways
    }
}

impl Shared {
    /// This admin, as people know it.
    fn name(&self) -> String {
        self.name.get().cloned().unwrap_or_default()
    }
}

/// The name of the machine and the port; the address where the machine has no name.
fn own_name(addr: SocketAddr) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match host.trim() {
        "" => addr.to_string(),
        host => format!("{host}:{}", addr.port()),
    }
}
