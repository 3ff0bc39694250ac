//! What a failed call answers.
//!
//! The stock endpoints answer every application error with HTTP 200 and a code in the body; only
//! a missing or bad token is an HTTP 401. One type carries all of it, so a handler says *what*
//! failed and this module alone knows how that looks on the wire. Details of unexpected failures
//! go to the log, never to the client.
//!
//! Source: ShenYu 2.7.1 admin, result envelope and exception handler, as executed.

use std::borrow::Cow;

use axum::{
    Extension, Json,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

use crate::v1::{Fault, Told};

/// The result of a handler.
pub type ApiResult<T> = Result<T, ApiError>;

/// The text of every failure that a client is not told more about.
pub const BUSY: &str = "The system is busy, please try again later";

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// No token, or one that is not (or no longer) good: HTTP 401, code 600.
    #[error("token is error")]
    Token,
    /// The caller may not do this: code 601.
    #[error("token has no permission")]
    Permission,
    /// The request is refused with this text: code 500.
    #[error("{0}")]
    Refused(Cow<'static, str>),
    /// The body could not be read, or nothing answers at this path: code 500 and a fixed text.
    #[error("request could not be understood")]
    Unreadable,
    /// The store or something inside failed: logged here, a fixed text for the client.
    #[error("internal failure")]
    Internal(#[source] anyhow::Error),
}

impl ApiError {
    /// A refusal with the text that the client shows.
    pub fn refused(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Refused(text.into())
    }

    /// A required query parameter is absent.
    #[must_use]
    pub fn missing_parameter(name: &str) -> Self {
        Self::Refused(format!("{name} parameter is missing").into())
    }

    /// A query or path parameter is not of its type; `java_type` is the name clients know.
    #[must_use]
    pub fn wrong_type(name: &str, java_type: &str) -> Self {
        Self::Refused(format!("{name} should be of type {java_type}").into())
    }

    /// Whether making the call again can help, and cannot do a thing twice: nothing was written,
    /// or nothing was to be.
    #[must_use]
    pub fn may_be_tried_again(&self, method: &http::Method) -> bool {
        use longmen_db::Error;
        let Self::Internal(error) = self else { return false };
        match error.downcast_ref::<Error>() {
            Some(Error::Busy { .. } | Error::NodeLeaseOver) => true,
            Some(error) => error.is_transient() && method.is_safe(),
            None => false,
        }
    }

    /// The code in the body.
    #[must_use]
    pub const fn code(&self) -> i32 {
        match self {
            Self::Token => 600,
            Self::Permission => 601,
            Self::Refused(_) | Self::Unreadable | Self::Internal(_) => 500,
        }
    }

    /// What it is to the endpoints below `/v1`.
    const fn fault(&self) -> Fault {
        match self {
            Self::Token => Fault::Unauthorized,
            Self::Permission => Fault::Forbidden,
            Self::Refused(_) | Self::Unreadable => Fault::Invalid,
            Self::Internal(_) => Fault::Internal,
        }
    }

    /// The text in the body.
    #[must_use]
    pub fn client_message(&self) -> Cow<'_, str> {
        match self {
            Self::Token => "token is error".into(),
            Self::Permission => "token has no permission".into(),
            Self::Refused(text) => text.as_ref().into(),
            Self::Unreadable | Self::Internal(_) => BUSY.into(),
        }
    }
}

impl From<anyhow::Error> for ApiError {
    fn from(error: anyhow::Error) -> Self {
        Self::Internal(error)
    }
}

impl From<longmen_db::Error> for ApiError {
    fn from(error: longmen_db::Error) -> Self {
        if error.is_unique_violation() {
            tracing::debug!(%error, "a write met a row with the same key");
            return Self::refused("unique index conflict, please enter again");
        }
        if let longmen_db::Error::Reference { constraint, .. } = &error {
            tracing::debug!(%error, "a write refers to what is not there, or is still referred to");
            return Self::refused(format!(
                "{}: refers to what is not there any more, or is what others still refer to; \
                 expected ids of objects that are there, look again and repeat the call",
                field_of(constraint),
            ));
        }
        Self::Internal(error.into())
    }
}

/// The member of a request that a constraint is about, as far as its name tells: PostgreSQL's ends
/// with the column, SQLite gives none.
fn field_of(constraint: &str) -> &'static str {
    const FIELDS: [(&str, &str); 9] = [
        ("proxy_selector_id", "proxySelectorId"),
        ("selector_id", "selectorId"),
        ("discovery_handler_id", "discoveryHandlerId"),
        ("discovery_id", "discoveryId"),
        ("namespace_id", "namespaceId"),
        ("plugin_id", "pluginId"),
        ("rule_id", "ruleId"),
        ("role_id", "roleId"),
        ("user_id", "userId"),
    ];
    let column = constraint.strip_suffix("_fkey").unwrap_or(constraint);
    let found = FIELDS.iter().find(|(name, _)| column.ends_with(name));
    found.map_or("id", |(_, field)| field)
}

/// The failure envelope; `data` is always null.
#[derive(Debug, Serialize)]
struct Failure<'a> {
    code: i32,
    message: &'a str,
    data: Option<()>,
}

/// The envelope of a token failure, the only one without `data`.
#[derive(Debug, Serialize)]
struct TokenFailure<'a> {
    code: i32,
    message: &'a str,
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        if let Self::Internal(error) = &self {
            tracing::error!(error = format!("{error:#}"), "a call failed inside");
        }
        let code = self.code();
        let message = self.client_message();
        let told = Told { fault: self.fault(), message: message.clone().into_owned() };
        if !matches!(self, Self::Token) {
            let failure = Json(Failure { code, message: &message, data: None });
            return (Extension(told), failure).into_response();
        }
        let mut response = (
            StatusCode::UNAUTHORIZED,
            Extension(told),
            Json(TokenFailure { code, message: &message }),
        )
            .into_response();
        // `Access-Control-Allow-Origin` is added to every answer by the CORS layer.
        for (name, value) in [
            (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, PUT, DELETE"),
            (header::ACCESS_CONTROL_ALLOW_HEADERS, "Content-Type"),
            (header::ACCESS_CONTROL_MAX_AGE, "1800"),
            (header::CONTENT_TYPE, "application/json;charset=utf-8"),
        ] {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn body(error: ApiError) -> (StatusCode, serde_json::Value) {
        let response = error.into_response();
        let status = response.status();
        let bytes = axum::body::to_bytes(response.into_body(), 4096).await.unwrap();
        (status, serde_json::from_slice(&bytes).unwrap())
    }

    #[tokio::test]
    async fn each_failure_has_its_envelope() {
        let (status, json) = body(ApiError::Token).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        assert_eq!(json, serde_json::json!({"code": 600, "message": "token is error"}));

        let (status, json) = body(ApiError::Permission).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(
            json,
            serde_json::json!({"code": 601, "message": "token has no permission", "data": null})
        );
    }

    #[test]
    fn only_what_cannot_happen_twice_is_tried_again() {
        use http::Method;
        let inside = |error: longmen_db::Error| ApiError::from(error);
        let lease_over = inside(longmen_db::Error::NodeLeaseOver);
        assert!(lease_over.may_be_tried_again(&Method::POST));
        for error in [
            inside(longmen_db::Error::NoFreeNode),
            ApiError::refused("no"),
            ApiError::Token,
            anyhow::anyhow!("x").into(),
        ] {
            assert!(!error.may_be_tried_again(&Method::GET), "{error:?}");
        }
    }

    #[test]
    fn a_broken_reference_is_a_refusal_with_its_field() {
        for (constraint, field) in [
            ("plugin_handle_plugin_id_fkey", "pluginId"),
            ("discovery_rel_proxy_selector_id_fkey", "proxySelectorId"),
            ("rule_selector_id_fkey", "selectorId"),
            ("", "id"),
        ] {
            let (constraint, message) = (constraint.to_owned(), "driver's text".to_owned());
            let error = ApiError::from(longmen_db::Error::Reference { constraint, message });
            let told = error.client_message().into_owned();
            assert!(told.starts_with(&format!("{field}: ")) && !told.contains("driver"), "{told}");
        }
    }

    #[tokio::test]
    async fn what_failed_inside_is_not_told() {
        let (status, json) = body(anyhow::anyhow!("password=secret").into()).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(json, serde_json::json!({"code": 500, "message": BUSY, "data": null}));
    }
}
