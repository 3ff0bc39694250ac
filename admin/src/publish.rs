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
//! Gateways that poll are told by the same dispatcher: see [`polling`].
//!
//! Source: ShenYu 2.7.1, websocket channel; marks, catch-up and acknowledgements are ours.

mod catch_up;
mod changes;
mod dispatcher;
mod endpoint;
mod gateways;
mod handshake;
mod hub;
mod listing;
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

use std::sync::Arc;

use axum::extract::ws::Utf8Bytes;
use longmen_core::chain::Registry;
use longmen_core::config::Secret;
use longmen_core::lifecycle::Lifecycle;
use longmen_core::sync::RunningMode;
use longmen_db::Store;
use tokio::runtime::Handle;
use tokio::sync::Notify;

pub use endpoint::routes;
pub use gateways::{GatewayView, Gateways, Kind};

use dispatcher::Dispatcher;
use hub::Hub;
use patience::Patience;
use polling::{Polling, States};
use refreshes::Refreshes;
use token::SyncToken;

use crate::config::{HistoryConfig, SyncConfig};
use crate::lease;

/// The sync of one admin. Clones are handles to the same.
#[derive(Debug, Clone)]
pub struct Publisher(Arc<Shared>);

/// What the dispatcher and the sessions share.
#[derive(Debug)]
struct Shared {
    store: Store,
    /// What this admin calls itself, for as long as its process lives.
    admin: String,
    config: SyncConfig,
    token: SyncToken,
    hub: Arc<Hub>,
    refreshes: Refreshes,
    polling: Polling,
    gateways: Gateways,
    /// How long the store may take.
    patience: Patience,
    /// The answer to the question for the running mode.
    running_mode: Utf8Bytes,
    /// Has the dispatcher read the table now.
    poke: Notify,
}

impl Shared {
    /// Lets go of what nobody asks for any more.
    fn sweep(&self) {
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
            admin: store.owner().to_owned(),
            store,
            token,
            hub: Arc::new(Hub::new(limits.max_sessions, limits.queue_size)),
            config: config.clone(),
            gateways: Gateways::default(),
            patience,
            running_mode,
            poke: Notify::new(),
        })))
    }

    /// Starts the dispatcher, and what keeps its log small. When the life comes to its end both
    /// stop, and all sessions with them.
    ///
    /// # Errors
    /// The database's.
    pub async fn start(&self, life: &Lifecycle, history: &HistoryConfig) -> anyhow::Result<()> {
        let dispatcher = Dispatcher::new(Arc::clone(&self.0)).await?;
        let (runtime, stop) = (Handle::current(), life.soft());
        life.spawn(&runtime, "dispatcher", dispatcher.run(stop.clone()));
        let (store, patience) = (self.0.store.clone(), self.0.patience);
        let history = history.clone();
        let owner = self.0.admin.clone();
        let pruner =
            lease::run(self.0.store.clone(), "pruning", owner.clone(), stop.clone(), move || {
                pruner::run(store.clone(), history.clone(), patience)
            });
        life.spawn(&runtime, "pruner", pruner);
        life.spawn(&runtime, "reports", reports::run(Arc::clone(&self.0), stop.clone()));
        let shared = Arc::clone(&self.0);
        let forget = lease::run(self.0.store.clone(), "gateways", owner, stop.clone(), move || {
            reports::forget(Arc::clone(&shared))
        });
        life.spawn(&runtime, "gateways", forget);
        Ok(())
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
