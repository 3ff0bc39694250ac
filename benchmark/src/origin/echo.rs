//! Answers that give back what came: the body as it is, or a JSON description of the request.

use std::fmt::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, TE, TRAILER};
use http::{HeaderValue, Request, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::Shared;
use super::body::{BodyError, OriginBody};

const X_METHOD: HeaderName = HeaderName::from_static("x-method");
const X_TARGET: HeaderName = HeaderName::from_static("x-target");
const X_BODY_SHA256: HeaderName = HeaderName::from_static("x-body-sha256");

/// What the JSON answer says of a request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Description<'a> {
    name: &'a str,
    method: &'a str,
    target: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<Vec<(&'a str, String)>>,
    body_length: u64,
    body_sha256: String,
}

/// A body that adds the hash of what went through as a trailer.
struct HashedBody {
    inner: Incoming,
    hash: Option<Sha256>,
}

/// Streams the request's body back, with its type.
///
/// The hash of a streamed body is known when it is over: a client that says `TE: trailers` gets it
/// as the trailer `x-body-sha256`.
pub(super) fn stream(request: Request<Incoming>) -> Response<OriginBody> {
    let (head, body) = request.into_parts();
    let trailers = head.headers.get_all(TE).iter().any(|value| value.as_bytes() == b"trailers");
    let mut response = Response::new(if trailers {
        OriginBody::boxed(HashedBody { inner: body, hash: Some(Sha256::new()) })
    } else {
        OriginBody::Request(body)
    });
    let headers = response.headers_mut();
    if trailers {
        headers.insert(TRAILER, HeaderValue::from_static("x-body-sha256"));
    }
    headers.insert(X_METHOD, value(head.method.as_str()));
    headers.insert(X_TARGET, value(target(&head.uri)));
    if let Some(content_type) = head.headers.get(CONTENT_TYPE) {
        headers.insert(CONTENT_TYPE, content_type.clone());
    }
    response
}

/// Reads the whole body, of any length, and describes the request.
///
/// # Errors
/// When the client breaks off.
pub(super) async fn describe(
    shared: &Shared,
    request: Request<Incoming>,
) -> Result<Response<OriginBody>, BodyError> {
    let (head, mut body) = request.into_parts();
    let mut hash = Sha256::new();
    let mut body_length = 0;
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            body_length += data.len() as u64;
            hash.update(&data);
        }
    }
    let description = Description {
        name: &shared.name,
        method: head.method.as_str(),
        target: target(&head.uri),
        headers: shared.echo_headers.then(|| pairs(&head.headers)),
        body_length,
        body_sha256: hex(hash),
    };
    let mut response = Response::new(OriginBody::full(serde_json::to_vec(&description)?));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

/// The target as it stood in the request line; for HTTP/2 the `:path`.
fn target(uri: &http::Uri) -> &str {
    uri.path_and_query().map_or("*", http::uri::PathAndQuery::as_str)
}

/// Header lines in the order of their first appearance; bytes that are no text are replaced.
fn pairs(headers: &HeaderMap) -> Vec<(&str, String)> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.as_str(), text(value))).collect()
}

fn value(text: &str) -> HeaderValue {
    // A method and a target were parsed from a request line; neither can hold a line break.
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static("unprintable"))
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl Body for HashedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = std::task::ready!(Pin::new(&mut self.inner).poll_frame(cx));
        Poll::Ready(match polled {
            Some(Ok(frame)) => {
                if let (Some(data), Some(hash)) = (frame.data_ref(), self.hash.as_mut()) {
                    hash.update(data);
                }
                // Trailers of the client are not given back; ours take their place.
                if frame.is_trailers() { self.trailer() } else { Some(Ok(frame)) }
            }
            Some(Err(error)) => Some(Err(error.into())),
            None => self.trailer(),
        })
    }
}

impl HashedBody {
    fn trailer(&mut self) -> Option<Result<Frame<Bytes>, BodyError>> {
        let mut trailers = HeaderMap::new();
        trailers.insert(X_BODY_SHA256, value(&hex(self.hash.take()?)));
        Some(Ok(Frame::trailers(trailers)))
    }
}
