//! Errors as callers of gRPC understand them: HTTP 200, the outcome in `grpc-status`, no body.

use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Response, StatusCode};

use super::GatewayError;
use crate::body::Body;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// Whether a request is a call of gRPC: a POST with a content type of that family, gRPC-Web included.
#[must_use]
pub fn is_grpc(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::POST
        && headers
            .get(CONTENT_TYPE)
            .is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}

impl GatewayError {
    /// The answer to a caller of gRPC: head and trailers in one.
    ///
    /// The code follows the status that says what happened, whatever `shenyu.errorStatus` is.
    ///
    /// Source: gRPC over HTTP2, "Trailers-Only"; gRPC's mapping of HTTP statuses, but for 413 and 431
    /// (`RESOURCE_EXHAUSTED`) and 504 (`DEADLINE_EXCEEDED`: the call may have been processed).
    #[must_use]
    pub fn to_grpc_response(&self) -> Response<Body> {
        let mut response = Response::new(Body::empty());
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(GRPC_STATUS, HeaderValue::from(code(self.0.standard.status)));
        if let Ok(message) = HeaderValue::from_str(&encoded(&self.0.standard.message)) {
            headers.insert(GRPC_MESSAGE, message);
        }
        response
    }
}

fn code(status: StatusCode) -> u16 {
    const UNKNOWN: u16 = 2;
    const DEADLINE_EXCEEDED: u16 = 4;
    const PERMISSION_DENIED: u16 = 7;
    const RESOURCE_EXHAUSTED: u16 = 8;
    const UNIMPLEMENTED: u16 = 12;
    const INTERNAL: u16 = 13;
    const UNAVAILABLE: u16 = 14;
    const UNAUTHENTICATED: u16 = 16;
    match status.as_u16() {
        400 => INTERNAL,
        401 => UNAUTHENTICATED,
        403 => PERMISSION_DENIED,
        404 => UNIMPLEMENTED,
        413 | 431 => RESOURCE_EXHAUSTED,
        429 | 502 | 503 => UNAVAILABLE,
        504 => DEADLINE_EXCEEDED,
        _ => UNKNOWN,
    }
}

/// Percent-encodes what may not stand in `grpc-message`.
fn encoded(text: &str) -> String {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if (b' '..=b'~').contains(&byte) && byte != b'%' {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method, StatusCode};
    use http_body::Body as _;

    use super::is_grpc;
    use crate::error::{Fault, GatewayError, Reason};

    #[test]
    fn faults_are_trailers_only() {
        for (status, code) in [(404, "12"), (502, "14"), (503, "14"), (504, "4"), (500, "2")] {
            let status = StatusCode::from_u16(status).unwrap();
            let message = "100% of ✓ taken";
            let error = GatewayError::new(Fault::Gateway, Reason::Overloaded, status, message);
            let answer = error.shenyu(StatusCode::OK, "other").to_grpc_response();
            assert_eq!(answer.status(), StatusCode::OK);
            assert_eq!(answer.headers()["grpc-status"], code);
            assert_eq!(answer.headers()["grpc-message"], "100%25 of %E2%9C%93 taken");
            assert!(answer.body().is_end_stream());
        }
    }

    #[test]
    fn calls_are_told_by_method_and_type() {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/grpc+proto".parse().unwrap());
        assert!(is_grpc(&Method::POST, &headers));
        assert!(!is_grpc(&Method::GET, &headers));
        headers.insert("content-type", "application/json".parse().unwrap());
        assert!(!is_grpc(&Method::POST, &headers));
    }
}
