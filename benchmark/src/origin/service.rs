//! Which path gets which answer.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;

use super::body::{BodyError, OriginBody};
use super::{Fault, Shared, echo, sse, websocket};

/// Names the origin in every answer.
const X_UPSTREAM: HeaderName = HeaderName::from_static("x-upstream");

static HELLO: &[u8; 13] = b"Hello, world!";
static TWO_KB: [u8; 2_048] = text();
/// Four thousand bytes, as the published comparison of gateways uses.
static FOUR_KB: [u8; 4_000] = text();

const DELAY: Duration = Duration::from_millis(20);

/// Longest wait a query may ask for.
const MAX_DELAY: Duration = Duration::from_secs(600);

/// Answers one request, or fails where the connection is to be closed without an answer.
pub(super) async fn answer(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<OriginBody>, BodyError> {
    match Fault::from_code(shared.fault.load(Ordering::Relaxed)) {
        Fault::None => {}
        Fault::Close => return Err("closed on purpose".into()),
        Fault::SlowHead(delay) => tokio::time::sleep(delay).await,
    }
    let name = shared.name_header.clone();
    let mut response = match request.uri().path() {
        "/hello" => text_answer(HELLO),
        "/2k" => text_answer(&TWO_KB),
        "/4k" => text_answer(&FOUR_KB),
        "/delay20" => {
            tokio::time::sleep(DELAY).await;
            text_answer(&TWO_KB)
        }
        "/echo" => echo::stream(request),
        "/sse" => sse::answer(&request),
        path if path == "/ws" || path.starts_with("/ws/") => websocket::answer(request),
        path if path.starts_with("/status/") => status(&path["/status/".len()..]),
        path if path.starts_with("/fault/") => fault(&request).await?,
        _ => echo::describe(&shared, request).await?,
    };
    response.headers_mut().insert(X_UPSTREAM, name);
    Ok(response)
}

/// The value of `key` in the query, if it is a number.
pub(super) fn query_number(request: &Request<Incoming>, key: &str) -> Option<u64> {
    let pairs = request.uri().query()?.split('&');
    let value = pairs.filter_map(|pair| pair.split_once('=')).find(|(name, _)| *name == key)?.1;
    value.parse().ok()
}

/// An answer without a body.
pub(super) fn empty(status: StatusCode) -> Response<OriginBody> {
    let mut response = Response::new(OriginBody::full(Bytes::new()));
    *response.status_mut() = status;
    response
}

fn text_answer(body: &'static [u8]) -> Response<OriginBody> {
    let mut response = Response::new(OriginBody::full(Bytes::from_static(body)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

fn status(code: &str) -> Response<OriginBody> {
    // Interim statuses are no answers; 200 is the least a final one can be here.
    let code = code.parse().ok().filter(|code| (200..=999).contains(code));
    empty(
        code.and_then(|code: u16| StatusCode::from_u16(code).ok()).unwrap_or(StatusCode::NOT_FOUND),
    )
}

async fn fault(request: &Request<Incoming>) -> Result<Response<OriginBody>, BodyError> {
    match request.uri().path() {
        "/fault/close" => Err("closed on purpose".into()),
        "/fault/slow-head" => {
            let delay = Duration::from_millis(query_number(request, "ms").unwrap_or(1_000));
            tokio::time::sleep(delay.min(MAX_DELAY)).await;
            Ok(text_answer(HELLO))
        }
        "/fault/cut-body" => {
            Ok(Response::new(OriginBody::cut(Bytes::from_static(&FOUR_KB[..10]), 1_000)))
        }
        _ => Ok(empty(StatusCode::NOT_FOUND)),
    }
}

/// Printable text with a line break at each 64th byte.
const fn text<const N: usize>() -> [u8; N] {
    let mut bytes = [b'x'; N];
    let mut at = 0;
    while at < N {
        bytes[at] = if at % 64 == 63 { b'\n' } else { b'a' + (at % 26) as u8 };
        at += 1;
    }
    bytes
}
