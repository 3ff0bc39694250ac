//! `GET /platform/login`.

use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    auth::{self, Claims, Verdict},
    context::Context,
    error::{ApiError, ApiResult},
    extract::{FromQuery, JavaType, Query, QueryArgs},
    reply::Reply,
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
    let config = state.config();
    let password = match &config.password_cipher {
        Some(cipher) => cipher.open(query.password),
        None => query.password,
    };
    let account = state.accounts().find(&query.user_name).await?;
    let stored = account.as_ref().map(|account| account.password_hash.clone());
    let verdict = state.passwords().verify(stored, password).await?;
    let Some(account) = account.filter(|_| verdict != Verdict::Wrong) else {
        return Err(ApiError::refused("username or password error"));
    };
    if !account.enabled {
        return Err(ApiError::refused("the user is disabled"));
    }
    let claims = Claims {
        user_name: account.name.clone(),
        client_id: query.client_id,
        exp: (state.now_ms() + config.token_life_ms) / 1000,
    };
    let token = auth::issue(&claims, &account.password_hash)?;
    Ok(Reply::new(
        "login dashboard user success",
        LoginResponse {
            id: account.id,
            user_name: account.name,
            role: 1,
            enabled: true,
            client_id: account.client_id,
            date_created: String::new(),
            date_updated: String::new(),
            token,
            expired_time: config.token_life_ms,
        },
    ))
}
