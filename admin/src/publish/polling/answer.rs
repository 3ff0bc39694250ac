//! Answers, in the form that a stock gateway reads.

use std::convert::Infallible;

use axum::Json;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderName, HeaderValue, StatusCode, header};
use longmen_core::sync::Group;
use serde::Serialize;
use serde_json::json;

use super::states::{Position, State};
use crate::error::{ApiError, BUSY};

/// Why a request is refused.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The channel is switched off.
    Off,
    /// There is no such namespace.
    NoNamespace,
    /// No group is asked for.
    NoGroup,
    /// A group that is none.
    UnknownGroup(String),
    /// What is known of a group is missing or is not `md5,time`; as it was sent.
    Known(Option<String>),
    /// The form is larger than so many bytes, or did not arrive.
    Form(usize),
    /// So many requests are held already.
    Full(usize),
    /// The store failed.
    Inside(anyhow::Error),
}

impl From<anyhow::Error> for Refusal {
    fn from(error: anyhow::Error) -> Self {
        Self::Inside(error)
    }
}

impl Refusal {
    /// The status, and the text: the reference's where it has one.
    fn told(&self) -> (StatusCode, String) {
        match self {
            Self::Off => (
                StatusCode::NOT_FOUND,
                "polling is switched off, expected shenyu.sync.http.enabled: true at the admin"
                    .into(),
            ),
            Self::NoNamespace => (StatusCode::NOT_FOUND, "namespace is not exist".into()),
            Self::NoGroup => (
                StatusCode::BAD_REQUEST,
                "groupKeys is missing, expected names of groups such as RULE".into(),
            ),
            Self::UnknownGroup(name) => (
                StatusCode::BAD_REQUEST,
                format!("No enum constant org.apache.shenyu.common.enums.ConfigGroupEnum.{name}"),
            ),
            Self::Known(given) => {
                let given = given.as_deref().unwrap_or("null");
                (StatusCode::BAD_REQUEST, format!("group param invalid:{given}"))
            }
            Self::Form(limit) => (
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("the form cannot be read, expected at most {limit} bytes"),
            ),
            Self::Full(limit) => (
                StatusCode::SERVICE_UNAVAILABLE,
                format!("{limit} requests are held already (shenyu.sync.http.maxHeld)"),
            ),
            Self::Inside(_) => (StatusCode::SERVICE_UNAVAILABLE, BUSY.to_owned()),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match &self {
            Self::Inside(error) => {
                tracing::warn!(error = format!("{error:#}"), "a polling gateway got no answer");
            }
            Self::Full(limit) => {
                tracing::warn!(limit, "no room to hold another request of a polling gateway");
            }
            _ => tracing::debug!(refusal = ?self, "a polling gateway was refused"),
        }
        let (status, message) = self.told();
        (status, Json(json!({"code": 500, "message": message, "data": null}))).into_response()
    }
}

/// A token that is not good, or a store that cannot tell: the latter is no quick 200 either.
pub(super) fn not_admitted(error: ApiError) -> Response {
    match error {
        ApiError::Internal(error) => Refusal::Inside(error).into_response(),
        error => error.into_response(),
    }
}

/// Where an answer stands, for gateways of ours.
#[derive(Serialize)]
struct Mark<'a> {
    epoch: &'a str,
    version: u64,
}

fn mark(epoch: &str, version: u64) -> String {
    let mark = Mark { epoch, version };
    serde_json::to_string(&mark).expect("a mark is plain data")
}

/// Groups with their objects. Their texts are shared by all who are sent them.
pub(super) fn groups(state: &State, groups: &[Group], ours: bool) -> Response {
    let mut pieces = vec![Bytes::from_static(br#"{"code":200,"message":"success","data":{"#)];
    for (index, group) in groups.iter().enumerate() {
        let one = state.group(*group);
        let comma = if index == 0 { "" } else { "," };
        let head = format!(
            r#"{comma}"{}":{{"md5":"{}","lastModifyTime":{},"data":"#,
            group.name(),
            one.md5,
            one.modified
        );
        pieces.extend([head.into(), one.text.clone(), Bytes::from_static(b"}")]);
    }
    pieces.push(Bytes::from_static(b"}"));
    if ours {
        pieces.push(format!(r#","longmen":{}"#, mark(&state.epoch, state.version)).into());
    }
    pieces.push(Bytes::from_static(b"}"));
    let body = Body::from_stream(stream::iter(pieces.into_iter().map(Ok::<_, Infallible>)));
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// The names of groups that differ; none when nothing did for as long as the request was held.
pub(super) fn changed(at: &Position, differing: &[Group], ours: bool) -> Response {
    let names: Vec<&str> = differing.iter().map(|group| group.name()).collect();
    let names = serde_json::to_string(&names).expect("names are plain data");
    let mark =
        if ours { format!(r#","longmen":{}"#, mark(&at.epoch, at.version)) } else { String::new() };
    let text = format!("{{\"code\":200,\"message\":\"success\",\"data\":{names}{mark}}}\n");
    let headers: [(HeaderName, HeaderValue); 4] = [
        (header::PRAGMA, HeaderValue::from_static("no-cache")),
        (header::EXPIRES, HeaderValue::from_static("Thu, 01 Jan 1970 00:00:00 GMT")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache,no-store")),
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json;charset=ISO-8859-1")),
    ];
    (headers, text).into_response()
}
