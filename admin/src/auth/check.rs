//! The token check, before anything else looks at a request.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, header};
use longmen_db::repository::user;

use super::{Caller, token};
use crate::{
    error::{ApiError, ApiResult},
    extract::QueryArgs,
    state::AppState,
};

/// What the check needs: the state, and which paths are open.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    pub(crate) state: AppState,
    pub(crate) open: Arc<super::PathPatterns>,
}

/// Lets a request through if its path is open or its token good; the caller goes along as an
/// extension of the request.
pub(crate) async fn check_token(
    State(gate): State<Gate>,
    mut request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    if gate.open.matches(path) || gate.state.white_list().matches(path) {
        return next.run(request).await;
    }
    match authenticated(&gate.state, request.headers(), request.uri().query()).await {
        Ok(caller) => {
            request.extensions_mut().insert(Arc::new(caller));
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

/// The caller of a request, by the token in its headers or its query.
///
/// # Errors
/// [`ApiError::Token`] for a token that is missing or not good; failures of the store.
pub(crate) async fn authenticated(
    state: &AppState,
    headers: &HeaderMap,
    query: Option<&str>,
) -> ApiResult<Caller> {
    authenticate(state, find_token(headers, query)).await
}

/// The first token that is not blank: header, query parameter, cookie.
fn find_token(headers: &HeaderMap, query: Option<&str>) -> Option<String> {
    let filled = |text: &str| (!text.trim().is_empty()).then(|| text.trim().to_owned());
    headers
        .get(token::TOKEN_HEADER)
        .and_then(|value| filled(value.to_str().ok()?))
        .or_else(|| filled(QueryArgs::parse(query?.as_bytes()).raw(token::TOKEN_HEADER)?))
        .or_else(|| {
            headers
                .get_all(header::COOKIE)
                .iter()
                .filter_map(|value| value.to_str().ok())
                .flat_map(|value| value.split(';'))
                .filter_map(|pair| pair.trim().split_once('='))
                .find(|(name, _)| *name == token::TOKEN_HEADER)
                .and_then(|(_, value)| filled(value))
        })
}

/// The caller of a good token.
///
/// # Errors
/// [`ApiError::Token`] for every other, without saying why; failures of the store.
async fn authenticate(state: &AppState, token: Option<String>) -> ApiResult<Caller> {
    let token = token.ok_or(ApiError::Token)?;
    let name = token::unchecked_user(&token).ok_or(ApiError::Token)?;
    let mut tx = state.store().read().await?;
    let user = user::find_by_name(&mut tx, &name).await?.ok_or(ApiError::Token)?;
    let claims = token::verify(&token, &user.password, state.now_ms()).ok_or(ApiError::Token)?;
    let taken_over = match (filled(&claims.client_id), filled(&user.client_id)) {
        (Some(given), Some(stored)) => given != stored,
        _ => false,
    };
    if !user.enabled || taken_over {
        return Err(ApiError::Token);
    }
    Ok(Caller { user_id: user.id, name: user.user_name, client_id: claims.client_id })
}

fn filled(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_token_that_is_not_blank_counts() {
        let headers = |pairs: &[(&'static str, &'static str)]| -> HeaderMap {
            pairs
                .iter()
                .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
                .collect()
        };
        for (sent, query, wanted) in [
            (
                &[("x-access-token", "h"), ("cookie", "X-Access-Token=c")][..],
                Some("X-Access-Token=q"),
                Some("h"),
            ),
            (&[("x-access-token", " ")], Some("a=1&X-Access-Token=q"), Some("q")),
            (&[("cookie", "a=b; X-Access-Token=c")], Some("X-Access-Token="), Some("c")),
            (&[("cookie", "X-Access-Tokens=c")], None, None),
            (&[], None, None),
        ] {
            assert_eq!(find_token(&headers(sent), query).as_deref(), wanted, "{sent:?} {query:?}");
        }
    }
}
