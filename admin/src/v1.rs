//! The paths below `/v1`: real statuses and one shape of errors.
//!
//! The endpoints of the reference answer errors by HTTP 200 with a code inside; ours do not. Handlers are
//! the same for both: what went wrong is noted beside the answer, and written anew here.

use axum::Json;
use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

/// The header by which a caller names a request; also the one that answers carry.
const REQUEST_ID: &str = "x-request-id";

/// What went wrong, noted beside an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    /// The kind.
    pub(crate) fault: Fault,
    /// The text for the caller.
    pub(crate) message: String,
}

/// Kinds of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No token, or a bad one.
    Unauthorized,
    /// The caller may not do this.
    Forbidden,
    /// Something about the request is wrong.
    Invalid,
    /// Nothing has this path.
    NotFound,
    /// The path has no such method.
    MethodNotAllowed,
    /// Something inside failed, or took too long.
    Internal,
}

impl Fault {
    const fn status(self) -> StatusCode {
        match self {
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::Invalid => StatusCode::BAD_REQUEST,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    const fn code(self) -> &'static str {
        match self {
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::Invalid => "invalid",
            Self::NotFound => "notFound",
            Self::MethodNotAllowed => "methodNotAllowed",
            Self::Internal => "internal",
        }
    }
}

/// An error of `/v1`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Problem {
    /// `unauthorized`, `forbidden`, `invalid`, `notFound`, `methodNotAllowed` or `internal`.
    #[schema(value_type = String)]
    code: &'static str,
    /// What is wrong, for people.
    message: String,
    /// Values that the message speaks of, by name.
    #[schema(value_type = Object)]
    params: serde_json::Map<String, serde_json::Value>,
    /// The members of the request that are wrong.
    fields: Vec<FieldProblem>,
    /// The name of the request, also in the header `X-Request-Id`.
    request_id: String,
}

/// What is wrong with one member of a request.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FieldProblem {
    /// The member: a JSON pointer, or the name of a query parameter.
    pointer: String,
    /// What was sent.
    value: Option<String>,
    /// What was expected.
    expected: String,
}

/// Gives the errors of paths below `/v1` their real status and shape.
pub(crate) async fn real_statuses(request: Request, next: Next) -> Response {
    if !request.uri().path().starts_with("/v1/") {
        return next.run(request).await;
    }
    let request_id = request_id(request.headers());
    let known = request.extensions().get::<MatchedPath>().is_some();
    let mut response = next.run(request).await;
    let Some(Told { fault, message }) = response.extensions_mut().remove::<Told>() else {
        return named(response, &request_id);
    };
    let (fault, message) = match fault {
        Fault::Invalid if !known => (Fault::NotFound, "nothing answers at this path".to_owned()),
        fault => (fault, message),
    };
    let problem = Problem {
        code: fault.code(),
        fields: field(&message).into_iter().collect(),
        message,
        params: serde_json::Map::new(),
        request_id: request_id.clone(),
    };
    named((fault.status(), Json(problem)).into_response(), &request_id)
}

/// A refusal that names one member begins with it: `limit: 900 is too much, expected at most 500`.
fn field(message: &str) -> Option<FieldProblem> {
    let (pointer, rest) = message.split_once(": ")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '[' | ']');
    if pointer.is_empty() || !pointer.chars().all(plain) {
        return None;
    }
    let (told, expected) = rest.rsplit_once(", expected ")?;
    let value = told.split_once(" is ").map(|(value, _)| value.trim_matches('"').to_owned());
    Some(FieldProblem { pointer: pointer.to_owned(), value, expected: expected.to_owned() })
}

fn named(mut response: Response, request_id: &str) -> Response {
    if let Ok(value) = request_id.parse() {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

/// The caller's name for a request if it is short and plain, else a new one.
fn request_id(headers: &HeaderMap) -> String {
    let plain = |id: &&str| {
        (1..=64).contains(&id.len()) && id.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-')
    };
    let given = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok()).filter(plain);
    given.map_or_else(|| format!("{:016x}", rand::random::<u64>()), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_that_names_a_member_tells_it() {
        let told = field("limit: 900 is too much, expected 1 to 500").unwrap();
        assert_eq!((told.pointer.as_str(), told.value.as_deref()), ("limit", Some("900")));
        assert_eq!(told.expected, "1 to 500");
        for text in ["", "no: member is named", "a b: 1 is x, expected y"] {
            assert!(field(text).is_none(), "{text}");
        }
    }
}
