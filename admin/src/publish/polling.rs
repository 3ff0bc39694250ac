//! The channel for gateways that poll: `GET /configs/fetch` and `POST /configs/listener`.
//!
//! A gateway fetches whole groups, each with the digest of its objects, and then says again and
//! again which digests it has. What differs is named at once; where nothing does, the request is
//! held until the dispatcher has read a change of the namespace that alters one of the groups.
//! Whoever asks has the same state to compare with, read from the tables at a version that the
//! change log gave: a change between a fetch and the next question is found by comparing.
//!
//! Faults are answered with a status of their own, never with 200: a stock gateway takes a 200
//! without data for "nothing has changed" and asks again without a pause.
//!
//! Source: ShenYu 2.7.1, HTTP long polling, as executed; what it does wrong there is right here.

mod answer;
mod listed;
mod request;
mod states;
mod text;

use std::sync::Arc;

use axum::Extension;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use http::{HeaderMap, Method, Uri};
use longmen_core::sync::{Group, TOKEN_HEADER};
use longmen_db::repository::namespace;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::Shared;
use crate::auth;
use crate::error::ApiError;
use crate::extract::QueryArgs;
use crate::permission::Permission;
use crate::router::Routes;
use crate::serve::Peer;
use crate::state::AppState;

use answer::Refusal;
pub(super) use listed::Pollers;
use request::Known;
use states::Position;
pub(super) use states::States;

/// Who may poll: whoever may log in, as with the reference, or has the sync token.
const GUARD: Permission = Permission::Own("login token or sync token");

/// The most bytes of a question's form.
const MAX_FORM_BYTES: usize = 16 * 1024;

/// What this channel shares.
#[derive(Debug)]
pub(super) struct Polling {
    /// The states that are compared with and handed out.
    pub(super) states: States,
    /// The gateways that poll.
    pub(super) pollers: Pollers,
    /// Room for requests that are held.
    room: Arc<Semaphore>,
}

impl Polling {
    pub(super) fn new(states: States, max_held: usize) -> Self {
        let room = Arc::new(Semaphore::new(max_held.min(Semaphore::MAX_PERMITS)));
        Self { states, pollers: Pollers::default(), room }
    }

    /// How many requests are held, of at most so many.
    pub(super) fn held(&self, max_held: usize) -> usize {
        max_held.saturating_sub(self.room.available_permits())
    }
}

/// The routes of the channel.
pub(super) fn routes() -> Routes {
    Routes::new("sync")
        .raw(
            Method::GET,
            "/configs/fetch",
            GUARD,
            "Gives gateways that poll whole groups of objects",
            get(fetch),
        )
        .raw(
            Method::POST,
            "/configs/listener",
            GUARD,
            "Says which groups have changed, once some have",
            post(listen),
        )
}

async fn fetch(State(state): State<AppState>, headers: HeaderMap, uri: Uri) -> Response {
    if let Err(error) = admitted(&state, &headers, &uri).await {
        return answer::not_admitted(error);
    }
    match fetched(&state, &headers, &uri).await {
        Ok(response) => response,
        Err(refusal) => refusal.into_response(),
    }
}

async fn fetched(state: &AppState, headers: &HeaderMap, uri: &Uri) -> Result<Response, Refusal> {
    let shared = shared(state)?;
    let args = QueryArgs::parse(uri.query().unwrap_or_default().as_bytes());
    let namespace = request::namespace(&args);
    let position = position(&shared, &namespace).await?;
    let groups = request::groups(&args)?;
    let state = shared.polling.states.get(&namespace, &position).await?;
    Ok(answer::groups(&state, &groups, request::is_ours(headers)))
}

async fn listen(
    State(state): State<AppState>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
    uri: Uri,
    body: Body,
) -> Response {
    if let Err(error) = admitted(&state, &headers, &uri).await {
        return answer::not_admitted(error);
    }
    let Ok(form) = to_bytes(body, MAX_FORM_BYTES).await else {
        return Refusal::Form(MAX_FORM_BYTES).into_response();
    };
    let args = QueryArgs::parse(uri.query().unwrap_or_default().as_bytes());
    let args = args.and(QueryArgs::parse(&form));
    let peer = peer.map(|Extension(peer)| peer);
    match listened(&state, peer, &headers, &args).await {
        Ok(response) => response,
        Err(refusal) => refusal.into_response(),
    }
}

async fn listened(
    state: &AppState,
    peer: Option<Peer>,
    headers: &HeaderMap,
    args: &QueryArgs,
) -> Result<Response, Refusal> {
    let shared = shared(state)?;
    let known = Known::read(args)?;
    let namespace = request::namespace(args);
    let position = position(&shared, &namespace).await?;
    let asked = Asked { namespace: &namespace, known: &known, ours: request::is_ours(headers) };
    let caller = request::caller(headers, peer, asked.ours);
    let listed = caller.map(|caller| listed::arrive(&shared, &namespace, caller));
    // Watched from here on; what was delivered before is in the floor.
    let mut moves = shared.hub.moves(&namespace);
    let position = position.at_least(shared.hub.epoch(), shared.hub.floor(&namespace));
    let (mut at, differing) = shared.polling.states.compare(&namespace, &position, &known).await?;
    if !differing.is_empty() {
        return Ok(asked.answer(&at, &differing));
    }
    let told = |at: &Position| listed.iter().for_each(|listed| listed.has(&shared, at));
    told(&at);
    let Ok(_room) = Arc::clone(&shared.polling.room).try_acquire_owned() else {
        return Err(Refusal::Full(shared.config.http.max_held));
    };
    let deadline = Instant::now() + shared.config.http.hold;
    loop {
        let moved = tokio::select! {
            biased;
            () = state.stop().cancelled() => return Ok(asked.answer(&at, &[])),
            moved = timeout_at(deadline, moves.changed()) => moved,
        };
        if matches!(moved, Ok(Err(_))) {
            // The namespace's entry went with its last session, and its versions count anew.
            moves = shared.hub.moves(&namespace);
        }
        let now = Position { epoch: shared.hub.epoch(), version: shared.hub.floor(&namespace) };
        match shared.polling.states.compare(&namespace, &now, &known).await {
            Ok((seen, differing)) if differing.is_empty() => {
                at = seen;
                told(&at);
            }
            Ok((at, differing)) => return Ok(asked.answer(&at, &differing)),
            Err(error) if moved.is_err() => return Err(error.into()),
            // What cannot be read now is at the deadline, or at the next change.
            Err(error) => tracing::debug!(namespace, "a held request was not compared: {error:#}"),
        }
        if moved.is_err() {
            return Ok(asked.answer(&at, &[]));
        }
    }
}

/// What one question is about.
struct Asked<'a> {
    namespace: &'a str,
    known: &'a Known,
    ours: bool,
}

impl Asked<'_> {
    fn answer(&self, at: &Position, differing: &[Group]) -> Response {
        tracing::debug!(
            namespace = self.namespace,
            asked = self.known.len(),
            ?differing,
            "a question was answered"
        );
        answer::changed(at, differing, self.ours)
    }
}

/// Lets in a log-in's token and the sync token.
async fn admitted(state: &AppState, headers: &HeaderMap, uri: &Uri) -> Result<(), ApiError> {
    let token = &state.publisher().0.token;
    if headers.get(TOKEN_HEADER).is_some_and(|given| token.is(given.as_bytes())) {
        return Ok(());
    }
    auth::authenticated(state, headers, uri.query()).await.map(|_caller| ())
}

fn shared(state: &AppState) -> Result<Arc<Shared>, Refusal> {
    let shared = Arc::clone(&state.publisher().0);
    if shared.config.http.enabled { Ok(shared) } else { Err(Refusal::Off) }
}

/// Where the log of a namespace stands.
async fn position(shared: &Shared, of: &str) -> Result<Position, Refusal> {
    let reading = async {
        let mut tx = shared.store.read().await?;
        let Some(_there) = namespace::find(&mut tx, of).await? else { return Ok(None) };
        let epoch = longmen_db::epoch(&mut tx).await?.into();
        let version = longmen_db::current_version(&mut tx, of).await?;
        anyhow::Ok(Some(Position { epoch, version }))
    };
    let position = shared.patience.query("a namespace's version", reading).await?;
    position.ok_or(Refusal::NoNamespace)
}
