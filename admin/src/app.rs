//! Starting and stopping an admin.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context as _;
use axum::{
    Extension, Router,
    middleware::{from_fn, from_fn_with_state},
    response::Redirect,
    routing::get,
};
use http::{Method, Uri};
use longmen_core::lifecycle::Lifecycle;
use tokio::{net::TcpListener, runtime::Handle};
use tower_http::catch_panic::CatchPanicLayer;

use crate::{
    api, auth,
    config::AdminConfig,
    error::ApiError,
    first_start::{self, GeneratedPassword},
    instances,
    jobs::Job,
    middleware, openapi, publish,
    registration::probes,
    router::Routes,
    serve,
    state::AppState,
    v1,
};

/// How long the store may take to close.
const CLOSE_DEADLINE: Duration = Duration::from_secs(5);

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
        let listen = self.config.server.socket();
        let listener = TcpListener::bind(listen)
            .await
            .with_context(|| format!("listen on {listen} (server.address, server.port)"))?;
        let addr = listener.local_addr().with_context(|| format!("listen on {listen}"))?;
        let store = first_start::open_store(&self.config).await?;
        let generated_password = first_start::seed(&store, &self.config).await?;
        let life = Lifecycle::new();
        publish::share_token(&store, &self.config.sync).await?;
        let state = AppState::new(self.config, store, life.clone())?;
        state.publisher().start(&life, &state.config().history, addr).await?;
        let router = router(&state, api::routes())?;
        life.spawn(&Handle::current(), "probes", probes::run(state.clone()));
        let (store, of_job) = (state.store().clone(), state.clone());
        let instances = Job::new(store, "instances")
            .run(life.soft().clone(), move |lease| instances::keep_states(of_job.clone(), lease));
        life.spawn(&Handle::current(), "instances", instances);
        life.spawn(
            &Handle::current(),
            "listener",
            serve::serve(listener, router, state.config().server.clone(), life.clone()),
        );
        tracing::info!(%addr, "admin serves");
        Ok(RunningAdmin { addr, generated_password, state })
    }
}

// === impl RunningAdmin ===

impl RunningAdmin {
    /// The shared parts, for tests that look behind the API.
    #[must_use]
    pub const fn state(&self) -> &AppState {
        &self.state
    }

    /// Stops listening, lets requests in work and tasks end within the configured grace, closes the
    /// store. Says whether all of it ended by itself, in time and without a failure.
    pub async fn stop(self) -> bool {
        // The listener drains its connections within the grace; what else runs gets a little more.
        let grace = self.state.config().server.shutdown_grace + Duration::from_secs(1);
        let ended = self.state.life().stop(grace).await;
        self.state.publisher().say_goodbye().await;
        // Waits for open transactions; whoever still holds one must not hold up the end.
        let closed = tokio::time::timeout(CLOSE_DEADLINE, self.state.store().close()).await;
        if closed.is_err() {
            tracing::warn!(after = ?CLOSE_DEADLINE, "the store was left with open transactions");
        }
        ended.well() && closed.is_ok()
    }
}

/// The service: routes, token check, and the layers around them, outermost last.
fn router(state: &AppState, routes: Routes) -> anyhow::Result<Router> {
    let document = serde_json::to_string(&openapi::document(&routes))?;
    let (router, table) = routes.build();
    let gate = auth::Gate { state: state.clone(), open: Arc::new(table.open) };
    let router = router
        .layer(Extension::<Arc<str>>(document.into()))
        .layer(from_fn_with_state(gate, auth::check_token))
        .layer(from_fn(v1::real_statuses));
    let router = match state.config().server.context_path.as_str() {
        "" => router,
        prefix => {
            let root = Redirect::to(prefix);
            // The reference leaves what is beside its prefix to the server it runs in.
            let below: Arc<str> = prefix.into();
            let beside = async move |method: Method, uri: Uri| {
                ApiError::refused(format!(
                    "{method} {}: nothing answers here, expected a path below {below} \
                     (server.servlet.context-path)",
                    uri.path()
                ))
            };
            Router::new()
                .nest(prefix, router)
                .route(&format!("{prefix}/"), get(root))
                .fallback(beside)
        }
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
