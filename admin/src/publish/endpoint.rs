//! The route `/websocket`.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use longmen_core::sync::{NEGOTIATION_HEADER, NEGOTIATION_VERSION};

use super::Shared;
use super::gateways::GatewayView;
use super::handshake::{Opening, admit};
use super::hub::Dialect;
use super::session;
use crate::error::ApiError;
use crate::permission::Permission;
use crate::router::Routes;
use crate::serve::Peer;
use crate::state::AppState;

/// The largest message from one of our gateways, in bytes: an acknowledgement names its faults.
const OUR_MESSAGE_BYTES: usize = 1024 * 1024;

/// The routes of the sync.
#[must_use]
pub fn routes() -> Routes {
    Routes::new("sync").raw(
        Method::GET,
        "/websocket",
        Permission::Own("Origin list and sync token"),
        "Opens a sync session of a gateway",
        get(websocket),
    )
}

async fn websocket(
    State(state): State<AppState>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let shared = Arc::clone(&state.publisher().0);
    let config = &shared.config.websocket;
    if !config.enabled {
        return ApiError::Unreadable.into_response();
    }
    let peer: Option<SocketAddr> = peer.map(|Extension(Peer(peer))| peer);
    let opening = match admit(&headers, peer, config, &shared.token) {
        Ok(opening) => opening,
        Err(refusal) => {
            tracing::warn!(?peer, ?refusal, "a gateway's handshake was refused");
            return refusal.response(shared.store.now_ms());
        }
    };
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(rejection) => return rejection.into_response(),
    };
    let dialect = if opening.ours { Dialect::Ours } else { Dialect::Stock };
    let Some(inbox) = shared.hub.open(&opening.namespace, dialect) else {
        tracing::warn!(?peer, limit = config.max_sessions, "no room for another gateway");
        return (StatusCode::SERVICE_UNAVAILABLE, "no room for another gateway").into_response();
    };
    // Asked once the hub has the session: a stop from here on ends it, one before is seen here.
    if state.stop().is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "admin stops").into_response();
    }
    let limit = match dialect {
        Dialect::Stock => config.max_message_bytes,
        Dialect::Ours => OUR_MESSAGE_BYTES,
    };
    let listed = Listed::new(&shared, view(&shared, inbox.id, &opening, peer));
    let host = peer.map_or_else(String::new, |peer| peer.ip().to_canonical().to_string());
    let instance = session::Who { namespace: opening.namespace, host, port: opening.port };
    // The stop waits for it from here on.
    let (counted, hard) = (state.tasks().token(), state.life().hard().clone());
    let mut response =
        upgrade.max_message_size(limit).max_frame_size(limit).on_upgrade(move |socket| {
            let held = (listed, counted);
            async move {
                let _held = held;
                let session = session::run(shared, inbox, instance, dialect, socket);
                tokio::select! {
                    () = hard.cancelled() => {}
                    () = Box::pin(session) => {}
                }
            }
        });
    if dialect == Dialect::Ours {
        response.headers_mut().insert(
            HeaderName::from_static(NEGOTIATION_HEADER),
            HeaderValue::from_static(NEGOTIATION_VERSION),
        );
    }
    response
}

/// Lists a gateway as connected for as long as it lives: an upgrade that fails drops it as well as
/// the end of the session.
struct Listed {
    shared: Arc<Shared>,
    id: u64,
}

impl Listed {
    fn new(shared: &Arc<Shared>, view: GatewayView) -> Self {
        let id = view.id;
        shared.gateways.opened(view);
        Self { shared: Arc::clone(shared), id }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.shared.gateways.closed(self.id, self.shared.store.now_ms());
    }
}

fn view(shared: &Shared, id: u64, opening: &Opening, peer: Option<SocketAddr>) -> GatewayView {
    let now_ms = shared.store.now_ms();
    let (name, session) = match &opening.instance {
        Some((name, session)) => (name.clone(), *session),
        None => (format!("{}-{id}", shared.store.process_id()), 0),
    };
    GatewayView {
        id,
        name,
        session,
        namespace: opening.namespace.clone(),
        host: peer.map_or_else(String::new, |peer| peer.ip().to_canonical().to_string()),
        port: opening.port,
        kind: if opening.ours { "longmen" } else { "stock" },
        transport: "websocket",
        connected: true,
        since: now_ms,
        info: None,
        heard_at: now_ms,
        epoch: None,
        version: None,
        in_force_since: None,
        faults: Vec::new(),
    }
}
