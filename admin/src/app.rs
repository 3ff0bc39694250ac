//! Starting and stopping an admin.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context as _;
use axum::{
    Extension, Router,
    middleware::{from_fn, from_fn_with_state},
};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;

use crate::{
    api, auth,
    config::AdminConfig,
    error::ApiError,
    first_start::{self, GeneratedPassword},
    middleware, openapi,
    publish::Publisher,
    router::Routes,
    serve,
    state::AppState,
};

/// How long tasks may take to end after the last request.
const TASK_DEADLINE: Duration = Duration::from_secs(5);

/// An admin that is not started yet.
#[derive(Debug)]
pub struct Admin {
    config: AdminConfig,
}

/// An admin that serves. Dropping it does not stop it; [`RunningAdmin::stop`] does.
#[derive(Debug)]
pub struct RunningAdmin {
    /// Where it listens.
    pub addr: SocketAddr,
    /// The password of `admin`, if this start made one: to be shown once.
    pub generated_password: Option<GeneratedPassword>,
    state: AppState,
    server: JoinHandle<()>,
}

// === impl Admin ===

impl Admin {
    /// An admin with the given settings. Several may run in one process, each with its own.
    #[must_use]
    pub const fn builder(config: AdminConfig) -> Self {
        Self { config }
    }

    /// Opens the store, brings its schema up to date, and listens.
    ///
    /// # Errors
    /// The store cannot be opened, or the address cannot be listened on; nothing is left running.
    pub async fn start(self) -> anyhow::Result<RunningAdmin> {
        let listen = self.config.listen.clone();
        let listener = TcpListener::bind(&listen)
            .await
            .with_context(|| format!("listen on {listen} (server.address, server.port)"))?;
        let addr = listener.local_addr().with_context(|| format!("listen on {listen}"))?;
        let stop = CancellationToken::new();
        let store = first_start::open_store(&self.config).await?;
        let generated_password = first_start::seed(&store, &self.config).await?;
        let (sync, context_path) = (self.config.sync.clone(), self.config.context_path.clone());
        let publisher = Publisher::new(store.clone(), sync, &self.config.data_dir, &context_path)?;
        let state = AppState::new(self.config, store, publisher, stop.clone());
        state.publisher().start(state.tasks(), stop.clone()).await?;
        let router = router(&state, api::routes())?;
        let server = tokio::spawn(serve::serve(listener, router, stop));
        tracing::info!(%addr, "admin serves");
        Ok(RunningAdmin { addr, generated_password, state, server })
    }
}

// === impl RunningAdmin ===

impl RunningAdmin {
    /// The shared parts, for tests that look behind the API.
    #[must_use]
    pub const fn state(&self) -> &AppState {
        &self.state
    }

    /// Stops listening, lets requests in flight and tasks end within limits, closes the store.
    pub async fn stop(self) {
        self.state.stop().cancel();
        if let Err(error) = self.server.await {
            tracing::error!(%error, "the listener ended badly");
        }
        self.state.tasks().close();
        if tokio::time::timeout(TASK_DEADLINE, self.state.tasks().wait()).await.is_err() {
            tracing::warn!(seconds = TASK_DEADLINE.as_secs(), "tasks were left at the stop");
        }
        self.state.store().close().await;
    }
}

/// The service: routes, token check, and the layers around them, outermost last.
fn router(state: &AppState, routes: Routes) -> anyhow::Result<Router> {
    let document = serde_json::to_string(&openapi::document(&routes))?;
    let (router, table) = routes.build();
    let gate = auth::Gate { state: state.clone(), open: Arc::new(table.open) };
    let router = router
        .layer(Extension::<Arc<str>>(document.into()))
        .layer(from_fn_with_state(gate, auth::check_token));
    let router = match state.config().context_path.as_str() {
        "" => router,
        prefix => Router::new().nest(prefix, router).fallback(async || ApiError::Unreadable),
    };
    Ok(router
        .layer(CatchPanicLayer::custom(|_panic: Box<dyn std::any::Any + Send>| {
            use axum::response::IntoResponse as _;
            tracing::error!("a call panicked");
            ApiError::Unreadable.into_response()
        }))
        .layer(middleware::cors())
        .layer(from_fn(middleware::log))
        .with_state(state.clone()))
}
