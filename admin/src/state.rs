//! What all calls share.

use std::sync::Arc;

use anyhow::Context as _;
use longmen_core::{chain::Registry, lifecycle::Lifecycle};
use longmen_db::Store;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    auth::{PasswordCipher, Passwords, PathPatterns},
    config::AdminConfig,
    publish::Publisher,
    registration::Registration,
    router::BodyBudget,
};

/// The shared parts of one running admin; clones are handles to the same.
#[derive(Debug, Clone)]
pub struct AppState(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    config: AdminConfig,
    white_list: PathPatterns,
    password_cipher: Option<PasswordCipher>,
    store: Store,
    passwords: Passwords,
    publisher: Publisher,
    plugins: Registry,
    bodies: BodyBudget,
    registration: Registration,
    life: Lifecycle,
}

impl AppState {
    pub(crate) fn new(config: AdminConfig, store: Store, life: Lifecycle) -> anyhow::Result<Self> {
        let security = &config.security;
        let password_cipher = match &security.aes {
            Some(aes) => {
                let cipher = PasswordCipher::new(aes.key.expose(), aes.iv.expose());
                Some(cipher.map_err(anyhow::Error::msg).context("shenyu.aes.secret")?)
            }
            None => None,
        };
        let publisher = Publisher::new(store.clone(), &config.sync, &config.server.context_path)?;
        Ok(Self(Arc::new(Shared {
            bodies: BodyBudget::new(config.server.bodies_max_bytes),
            white_list: PathPatterns::new(&security.white_list),
            password_cipher,
            config,
            store,
            passwords: Passwords::start()?,
            publisher,
            plugins: longmen_plugins::registry(),
            registration: Registration::default(),
            life,
        })))
    }

    /// The settings of this admin.
    #[must_use]
    pub fn config(&self) -> &AdminConfig {
        &self.0.config
    }

    /// Paths that ask for no token, besides those of public routes.
    #[must_use]
    pub fn white_list(&self) -> &PathPatterns {
        &self.0.white_list
    }

    /// Opens passwords that clients encrypted, if that is configured.
    #[must_use]
    pub fn password_cipher(&self) -> Option<&PasswordCipher> {
        self.0.password_cipher.as_ref()
    }

    /// Where everything is kept.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// Makes and checks password hashes.
    #[must_use]
    pub fn passwords(&self) -> &Passwords {
        &self.0.passwords
    }

    /// The plugins of this build: the very code that gateways run.
    #[must_use]
    pub fn plugins(&self) -> &Registry {
        &self.0.plugins
    }

    /// What the bodies of all calls under way may hold together.
    #[must_use]
    pub fn bodies(&self) -> &BodyBudget {
        &self.0.bodies
    }

    /// What registering clients share.
    pub(crate) fn registration(&self) -> &Registration {
        &self.0.registration
    }

    /// The sync with gateways.
    #[must_use]
    pub fn publisher(&self) -> &Publisher {
        &self.0.publisher
    }

    /// Start and stop of this admin, and what runs in between.
    #[must_use]
    pub fn life(&self) -> &Lifecycle {
        &self.0.life
    }

    /// Cancelled when the admin is to stop.
    #[must_use]
    pub fn stop(&self) -> &CancellationToken {
        self.0.life.soft()
    }

    /// Where tasks that outlive a call are counted; the stop waits for them.
    #[must_use]
    pub fn tasks(&self) -> &TaskTracker {
        self.0.life.tracker()
    }

    /// Milliseconds since 1970-01-01 UTC, by the store's clock.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.0.store.now_ms()
    }
}
