//! What failed calls mean for their requests.

use std::error::Error as StdError;
use std::io;

use http::header::TRANSFER_ENCODING;
use http::{Response, StatusCode};

use super::connect::{self, ConnectError};
use super::stats::ConnectFailure;
use crate::body::BodyError;
use crate::error::{Fault, GatewayError, Reason, Retry};
use crate::upstream::Address;

/// The error of a call. With `unsent` nothing of the request was written.
///
/// A broken request body shows up here too, but is the client's fault.
pub(super) fn of_call(
    address: &Address,
    error: &(dyn StdError + 'static),
    unsent: bool,
) -> GatewayError {
    if let Some(body) = find::<BodyError>(error) {
        return GatewayError::of_request_body(body).detail(format_args!("{address}: {body}"));
    }
    if let Some(connect) = find::<ConnectError>(error) {
        return connect.for_request(address);
    }
    let hyper = find::<hyper::Error>(error);
    if hyper.is_some_and(hyper::Error::is_user) {
        return GatewayError::bad_request(Reason::BadRequest, "the request body is broken")
            .detail(format_args!("{address}: {}", chain(error)));
    }
    let (reason, message) = if hyper.is_some_and(hyper::Error::is_parse) {
        (Reason::UpstreamProtocol, "the upstream's answer is not HTTP")
    } else {
        (Reason::UpstreamReset, "the upstream closed the connection without an answer")
    };
    let retry = if unsent || is_unprocessed(error) { Retry::Safe } else { Retry::IfIdempotent };
    GatewayError::new(Fault::Upstream, reason, StatusCode::BAD_GATEWAY, message)
        .shenyu(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error")
        .retry_when(retry)
        .detail(format_args!("{address}: {}", chain(error)))
}

/// Refuses an answer that is HTTP, but none that may be passed on: it switches protocols where nobody
/// asked for that, or its body has a transfer coding that would have to be undone here.
///
/// Source: RFC 9110, section 15.2.2; RFC 9112, section 6.1.
pub(super) fn of_answer<B>(address: &Address, response: &Response<B>) -> Result<(), GatewayError> {
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let text = "the upstream switches protocols, which nobody asked for";
        return Err(unusable(text).detail(address));
    }
    let mut codings = response.headers().get_all(TRANSFER_ENCODING).iter();
    let Some(coding) = codings.next() else { return Ok(()) };
    if codings.next().is_none() && coding.as_bytes().eq_ignore_ascii_case(b"chunked") {
        return Ok(());
    }
    let text = "the upstream's answer has a transfer coding other than chunked";
    Err(unusable(text).detail(format_args!("{address}: {coding:?}")))
}

fn unusable(message: &'static str) -> GatewayError {
    GatewayError::new(Fault::Upstream, Reason::UpstreamProtocol, StatusCode::BAD_GATEWAY, message)
        .shenyu(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error")
        .retry_when(Retry::IfIdempotent)
}

/// The error of an answer whose head is larger than the limit.
pub(super) fn of_large_head(address: &Address, limit: usize) -> GatewayError {
    unusable("the head of the upstream's answer is too large")
        .detail(format_args!("{address}: more than {limit} bytes"))
}

/// Whether the upstream said that it did not touch the request.
pub(super) fn is_unprocessed(error: &(dyn StdError + 'static)) -> bool {
    find::<h2::Error>(error).is_some_and(|error| {
        // Streams that a GOAWAY does not count as taken end with its error.
        error.reason() == Some(h2::Reason::REFUSED_STREAM)
            || (error.is_go_away()
                && error.is_remote()
                && error.reason() == Some(h2::Reason::NO_ERROR))
    })
}

/// The error of a connection that a library opened.
pub(super) fn of_connect(
    address: &Address,
    error: &(dyn StdError + 'static),
    timed_out: bool,
) -> (ConnectFailure, GatewayError) {
    if let Some(connect) = find::<ConnectError>(error) {
        return (connect.kind(), connect.for_request(address));
    }
    let kind = if timed_out {
        ConnectFailure::Timeout
    } else if find::<rustls::Error>(error).is_some() {
        ConnectFailure::Tls
    } else {
        ConnectFailure::Connect
    };
    (kind, connect::failed(kind, address, chain(error)))
}

/// The first error of a type in a chain of causes, also inside of I/O errors, which leave the one
/// they carry out of their chain.
pub(super) fn find<'a, E: StdError + 'static>(
    error: &'a (dyn StdError + 'static),
) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

/// A chain of causes as one text.
pub(super) fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let more = inner.to_string();
        if !text.ends_with(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = inner.source();
    }
    text
}
