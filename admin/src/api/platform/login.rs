//! `GET /platform/login`.

use longmen_db::{
    Actor, date_text,
    repository::user::{self, UserRow},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    auth::{self, Claims, Verdict},
    context::Context,
    error::{ApiError, ApiResult},
    extract::{FromQuery, JavaType, Query, QueryArgs},
    reply::Reply,
    state::AppState,
};

/// Who wants in. Never logged.
pub(super) struct LoginQuery {
    user_name: String,
    password: String,
    client_id: Option<String>,
}

impl FromQuery for LoginQuery {
    const PARAMETERS: &'static [(&'static str, JavaType, bool)] = &[
        ("userName", JavaType::String, true),
        ("password", JavaType::String, true),
        ("clientId", JavaType::String, false),
    ];

    fn from_query(args: &QueryArgs) -> ApiResult<Self> {
        Ok(Self {
            user_name: args.text("userName").unwrap_or_default(),
            password: args.text("password").unwrap_or_default(),
            client_id: args.filled("clientId"),
        })
    }
}

/// The user that logged in, and the token.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct LoginResponse {
    id: String,
    user_name: String,
    role: i32,
    enabled: bool,
    /// The client of the log-in before this one.
    client_id: Option<String>,
    date_created: String,
    date_updated: String,
    token: String,
    /// Life of the token in milliseconds, not a time.
    expired_time: i64,
}

/// Checks the password and hands out a token.
pub(super) async fn login(
    context: Context,
    Query(query): Query<LoginQuery>,
) -> ApiResult<Reply<LoginResponse>> {
    let state = context.state();
    let life = state.config().security.token_lifetime;
    let life_ms = i64::try_from(life.as_millis()).unwrap_or(i64::MAX);
    let password = match state.password_cipher() {
        Some(cipher) => cipher.open(query.password),
        None => query.password,
    };
    let mut tx = context.read().await?;
    let user = user::find_by_name(&mut tx, &query.user_name).await?;
    let stored = user.as_ref().map(|user| user.password.clone());
    // Not held while the hash is computed.
    drop(tx);
    let verdict = state.passwords().verify(stored, password.clone()).await?;
    let Some(user) = user.filter(|_| verdict != Verdict::Wrong) else {
        return Err(ApiError::refused("username or password error"));
    };
    if !user.enabled {
        return Err(ApiError::refused("the user is disabled"));
    }
    let better_hash = match verdict {
        Verdict::RightButOld => Some(state.passwords().hash(password).await?),
        Verdict::Right | Verdict::Wrong => None,
    };
    let key = note_login(state, &user, better_hash, query.client_id.as_deref()).await?;
    let claims = Claims {
        user_name: user.user_name.clone(),
        client_id: query.client_id,
        exp: state.now_ms().saturating_add(life_ms) / 1000,
    };
    let token = auth::issue(&claims, &key)?;
    let zone = state.store().time_zone();
    Ok(Reply::new(
        "login dashboard user success",
        LoginResponse {
            id: user.id,
            user_name: user.user_name,
            role: user.role,
            enabled: user.enabled,
            client_id: user.client_id,
            date_created: date_text(user.created_ms, zone),
            date_updated: date_text(user.updated_ms, zone),
            token,
            expired_time: life_ms,
        },
    ))
}

/// Stores what a log-in changes: the client that will count from now on, and a better hash of the
/// password. Returns the hash in force, by which the token is signed.
async fn note_login(
    state: &AppState,
    user: &UserRow,
    better_hash: Option<String>,
    client_id: Option<&str>,
) -> ApiResult<String> {
    if better_hash.is_none() && client_id.is_none() {
        return Ok(user.password.clone());
    }
    let mut uow = state.store().begin(Actor::system()).await?;
    let mut key = user.password.clone();
    if let Some(hash) = better_hash {
        let upgraded = user::upgrade_hash(&mut uow, &user.id, &user.password, &hash).await?;
        if upgraded > 0 {
            key = hash;
        } else if let Some(current) = user::find(&mut uow, &user.id).await? {
            // Another log-in upgraded it first; if the password itself was changed meanwhile, this
            // one counts as the log-in just before.
            key = current.password;
        }
    }
    if let Some(client_id) = client_id {
        user::set_client_id(&mut uow, &user.id, client_id).await?;
    }
    uow.commit().await?;
    Ok(key)
}
