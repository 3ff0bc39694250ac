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
//! Source: ShenYu 2.7.1, websocket channel; marks, catch-up and acknowledgements are ours.

mod catch_up;
mod changes;
mod dispatcher;
mod endpoint;
mod gateways;
mod handshake;
mod hub;
mod object;
mod refreshes;
mod sequence;
mod session;
mod settings;
mod text;
mod token;

use std::path::Path;
use std::sync::Arc;

use axum::extract::ws::Utf8Bytes;
use longmen_core::sync::RunningMode;
use longmen_db::Store;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use endpoint::routes;
pub use gateways::{GatewayView, Gateways};
pub use settings::SyncSettings;

use dispatcher::Dispatcher;
use hub::Hub;
use refreshes::Refreshes;
use token::SyncToken;

/// The sync of one admin. Clones are handles to the same.
#[derive(Debug, Clone)]
pub struct Publisher(Arc<Shared>);

/// What the dispatcher and the sessions share.
#[derive(Debug)]
struct Shared {
    store: Store,
    settings: SyncSettings,
    token: SyncToken,
    hub: Arc<Hub>,
    refreshes: Refreshes,
    gateways: Gateways,
    /// The answer to the question for the running mode.
    running_mode: Utf8Bytes,
    /// Has the dispatcher read the table now.
    poke: Notify,
}

impl Publisher {
    /// Prepares the sync: opens or makes the sync token in `data_dir`.
    ///
    /// # Errors
    /// The token's file can neither be read nor made.
    pub fn new(
        store: Store,
        settings: SyncSettings,
        data_dir: &Path,
        context_path: &str,
    ) -> anyhow::Result<Self> {
        let token = SyncToken::open(settings.token.as_deref(), data_dir)?;
        if settings.allow_anonymous {
            tracing::warn!(
                "shenyu.sync.websocket.allowAnonymous is true: any machine that reaches the admin \
                 can read the whole configuration, secrets included"
            );
        }
        let running_mode = serde_json::to_string(&RunningMode::standalone(context_path))?.into();
        Ok(Self(Arc::new(Shared {
            refreshes: Refreshes::new(store.clone()),
            store,
            settings,
            token,
            hub: Arc::default(),
            gateways: Gateways::default(),
            running_mode,
            poke: Notify::new(),
        })))
    }

    /// Starts the dispatcher. On `stop` it ends, and all sessions with it.
    ///
    /// # Errors
    /// The database's.
    pub async fn start(&self, tasks: &TaskTracker, stop: CancellationToken) -> anyhow::Result<()> {
        let dispatcher = Dispatcher::new(Arc::clone(&self.0)).await?;
        tasks.spawn(dispatcher.run(stop));
        Ok(())
    }

    /// The gateways that are or were connected.
    #[must_use]
    pub fn gateways(&self) -> &Gateways {
        &self.0.gateways
    }
}
