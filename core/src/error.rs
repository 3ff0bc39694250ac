//! The one error type of the request path.
//!
//! An error says whose fault it is, which stable reason code it has, what the client is told, and
//! whether another attempt would be safe. What the client is told never contains the detail: that
//! goes to the log. One layer turns errors into responses.
//!
//! Which error type to use where: this one for whatever ends a request; small `thiserror` types for
//! everything that happens at sync time, at start or in the store; `anyhow` in the binaries.

mod grpc;

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};

use crate::body::{Body, BodyError};
use crate::chain::Arrival;

pub use grpc::is_grpc;

/// Who caused the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The client sent something that cannot be served.
    Client,
    /// The gateway: its configuration, its limits, or a defect.
    Gateway,
    /// The upstream: refused, reset, too slow, or talking nonsense.
    Upstream,
}

/// Whether the same request may be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Retry {
    /// Nothing reached the upstream: always.
    Safe,
    /// Something may have been processed: only idempotent requests.
    IfIdempotent,
    /// Another attempt would fail the same way.
    Never,
}

/// How the status of envelope answers is chosen (`shenyu.errorStatus`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ErrorStatus {
    /// As the reference: HTTP 200 with the code in the body, 408 and 500 for upstream failures.
    #[default]
    Shenyu,
    /// The status that says what happened: 404, 413, 503, 504, …
    Standard,
}

/// Why a request did not get its answer; the stable codes of access log and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The request line, a header or the framing is not acceptable.
    BadRequest,
    /// The path has a form that is never routed.
    BadPath,
    /// The header section is larger than the limit.
    HeaderTooLarge,
    /// The body is larger than the limit.
    BodyTooLarge,
    /// The client named a protocol that is not served.
    UnknownRpcType,
    /// No selector of a proxy plugin matched.
    SelectorNotFound,
    /// No rule of the matched selector matched.
    RuleNotFound,
    /// The matched selector has no usable upstream.
    NoUpstream,
    /// Another upstream was to be tried, and there is none.
    NoUpstreamLeft,
    /// No plugin chose a target.
    NoTarget,
    /// A guard that cannot run was meant for this request.
    PluginUnavailable,
    /// A plugin refused the request.
    PluginRefused,
    /// A rule's handle or the rewritten target is unusable for this request.
    PluginFailed,
    /// The gateway is at its limit of requests.
    Overloaded,
    /// The gateway has no configuration yet.
    NotReady,
    /// A handler panicked.
    Panic,
    /// The client sent nothing of its body for too long.
    ClientBodyTimeout,
    /// The request took longer than any may.
    TotalTimeout,
    /// The upstream is at its limit of requests.
    UpstreamOverloaded,
    /// The upstream refused the connection or cannot be reached.
    UpstreamConnect,
    /// Connecting to the upstream took too long.
    UpstreamConnectTimeout,
    /// The upstream's name has no addresses, or cannot be looked up.
    UpstreamDns,
    /// No TLS with the upstream: certificate, name or protocol.
    UpstreamTls,
    /// No connection of a fixed pool came free.
    UpstreamPool,
    /// The upstream did not answer in time.
    UpstreamTimeout,
    /// The upstream closed or reset the connection before a full head.
    UpstreamReset,
    /// The upstream's answer is no HTTP.
    UpstreamProtocol,
    /// The upstream refused to switch protocols.
    UpstreamUpgrade,
    /// The upstream sent nothing of its body for too long.
    UpstreamBodyTimeout,
    /// The upstream's body broke off.
    UpstreamBodyReset,
    /// The client left before the end of the answer.
    ClientGone,
    /// The gateway stops.
    Stopping,
    /// A websocket carried nothing for too long.
    Idle,
}

impl Reason {
    /// The stable code, in snake case.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::BadRequest => "bad_request",
            Self::BadPath => "bad_path",
            Self::HeaderTooLarge => "header_too_large",
            Self::BodyTooLarge => "body_too_large",
            Self::UnknownRpcType => "unknown_rpc_type",
            Self::SelectorNotFound => "selector_not_found",
            Self::RuleNotFound => "rule_not_found",
            Self::NoUpstream => "no_upstream",
            Self::NoUpstreamLeft => "no_upstream_left",
            Self::NoTarget => "no_target",
            Self::PluginUnavailable => "plugin_unavailable",
            Self::PluginRefused => "plugin_refused",
            Self::PluginFailed => "plugin_failed",
            Self::Overloaded => "overloaded",
            Self::NotReady => "not_ready",
            Self::Panic => "panic",
            Self::ClientBodyTimeout => "client_body_timeout",
            Self::TotalTimeout => "total_timeout",
            Self::UpstreamOverloaded => "upstream_overloaded",
            Self::UpstreamConnect => "upstream_connect",
            Self::UpstreamConnectTimeout => "upstream_connect_timeout",
            Self::UpstreamDns => "upstream_dns",
            Self::UpstreamTls => "upstream_tls",
            Self::UpstreamPool => "upstream_pool",
            Self::UpstreamTimeout => "upstream_timeout",
            Self::UpstreamReset => "upstream_reset",
            Self::UpstreamProtocol => "upstream_protocol",
            Self::UpstreamUpgrade => "upstream_upgrade",
            Self::UpstreamBodyTimeout => "upstream_body_timeout",
            Self::UpstreamBodyReset => "upstream_body_reset",
            Self::ClientGone => "client_gone",
            Self::Stopping => "stopping",
            Self::Idle => "idle",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// What ends a request without the upstream's answer.
///
/// Boxed inside, so that a `Result` on the path stays one word wide.
#[derive(Debug)]
pub struct GatewayError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    fault: Fault,
    reason: Reason,
    standard: Face,
    /// What the reference shows, where that differs.
    shenyu: Option<Face>,
    retry: Retry,
    close: bool,
    detail: Option<String>,
    /// The request that it ends, where somebody watches and the chain did not see it.
    ends: Option<Box<Arrival>>,
}

/// What the client sees of an error.
#[derive(Debug, Clone)]
struct Face {
    status: StatusCode,
    code: i32,
    message: Cow<'static, str>,
    /// Whether it is answered without a body.
    bare: bool,
}

impl GatewayError {
    /// An error with the same status in both modes; the envelope repeats the status as its code.
    #[must_use]
    pub fn new(
        fault: Fault,
        reason: Reason,
        status: StatusCode,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        let code = i32::from(status.as_u16());
        let face = Face { status, code, message: message.into(), bare: false };
        Self(Box::new(Inner {
            fault,
            reason,
            standard: face,
            shenyu: None,
            retry: Retry::Never,
            close: false,
            detail: None,
            ends: None,
        }))
    }

    /// An envelope answer of the reference: HTTP 200 there, `standard` where real statuses are
    /// asked for.
    #[must_use]
    pub fn envelope(
        reason: Reason,
        standard: StatusCode,
        code: i32,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        let mut error = Self::new(Fault::Gateway, reason, standard, message);
        error.0.standard.code = code;
        error.0.shenyu = Some(Face { status: StatusCode::OK, ..error.0.standard.clone() });
        error
    }

    /// A refusal of something the client sent: 400, and the connection is closed.
    #[must_use]
    pub fn bad_request(reason: Reason, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Fault::Client, reason, StatusCode::BAD_REQUEST, message).closing()
    }

    /// Sets the status and the text that the reference uses for this.
    #[must_use]
    pub fn shenyu(mut self, status: StatusCode, message: impl Into<Cow<'static, str>>) -> Self {
        let code = i32::from(status.as_u16());
        self.0.shenyu = Some(Face { status, code, message: message.into(), bare: false });
        self
    }

    /// Sets the status that the reference has for this; code and text stay.
    #[must_use]
    pub fn shenyu_status(mut self, status: StatusCode) -> Self {
        self.0.shenyu = Some(Face { status, ..self.0.standard.clone() });
        self
    }

    /// The reference answers this with the same status and no body.
    #[must_use]
    pub fn shenyu_bare(mut self) -> Self {
        self.0.shenyu = Some(Face { bare: true, ..self.0.standard.clone() });
        self
    }

    /// What a request body that failed means: the client's fault, whoever met it.
    #[must_use]
    pub fn of_request_body(error: &BodyError) -> Self {
        match error {
            BodyError::TooLarge { limit } => Self::new(
                Fault::Client,
                Reason::BodyTooLarge,
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("the body is larger than {limit} bytes"),
            )
            .closing(),
            BodyError::Stalled { .. } => Self::new(
                Fault::Client,
                Reason::ClientBodyTimeout,
                StatusCode::REQUEST_TIMEOUT,
                "the request body did not arrive in time",
            )
            .closing()
            .detail(error),
            BodyError::Filter(_) => Self::new(
                Fault::Gateway,
                Reason::PluginFailed,
                StatusCode::INTERNAL_SERVER_ERROR,
                "the request body cannot be processed",
            )
            .closing()
            .detail(error),
            BodyError::OverTime => Self::new(
                Fault::Gateway,
                Reason::TotalTimeout,
                StatusCode::GATEWAY_TIMEOUT,
                "the time of the request is over",
            )
            .closing(),
            BodyError::Transport(_) | BodyError::Upstream(_) => {
                Self::bad_request(Reason::BadRequest, "the request body is broken").detail(error)
            }
        }
    }

    /// Says whether another attempt is safe.
    #[must_use]
    pub fn retry_when(mut self, retry: Retry) -> Self {
        self.0.retry = retry;
        self
    }

    /// Closes the client's connection after the answer.
    #[must_use]
    pub fn closing(mut self) -> Self {
        self.0.close = true;
        self
    }

    /// Adds what only the log may see.
    #[must_use]
    pub fn detail(mut self, detail: impl fmt::Display) -> Self {
        self.0.detail = Some(detail.to_string());
        self
    }

    /// Who caused it.
    #[must_use]
    pub fn fault(&self) -> Fault {
        self.0.fault
    }

    /// Its stable reason.
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.0.reason
    }

    /// Whether another attempt is safe.
    #[must_use]
    pub fn retry(&self) -> Retry {
        self.0.retry
    }

    /// The status the client sees.
    #[must_use]
    pub fn status(&self, mode: ErrorStatus) -> StatusCode {
        self.face(mode).status
    }

    /// The code in the body of the answer; `None` where that has no body.
    #[must_use]
    pub fn code(&self, mode: ErrorStatus) -> Option<i32> {
        let face = self.face(mode);
        (!face.bare).then_some(face.code)
    }

    /// Ends a request that the chain did not see.
    #[must_use]
    pub(crate) fn ending(mut self, arrival: Option<Arrival>) -> Self {
        self.0.ends = arrival.map(Box::new);
        self
    }

    /// The answer, to a caller of gRPC or another, and the end of a request that the chain did not see.
    #[must_use]
    pub(crate) fn into_response(mut self, mode: ErrorStatus, grpc: bool) -> Response<Body> {
        let response = if grpc { self.to_grpc_response() } else { self.to_response(mode) };
        match self.0.ends.take() {
            None => response,
            Some(arrival) => arrival.refused(&self, response),
        }
    }

    fn face(&self, mode: ErrorStatus) -> &Face {
        match (mode, &self.0.shenyu) {
            (ErrorStatus::Shenyu, Some(face)) => face,
            _ => &self.0.standard,
        }
    }

    /// What the client is told.
    #[must_use]
    pub fn message(&self, mode: ErrorStatus) -> &str {
        &self.face(mode).message
    }

    /// What only the log may see.
    #[must_use]
    pub fn log_detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    /// The answer: two members, `code` and `message`, in this order.
    ///
    /// Source: error envelope of ShenYu 2.7.1.
    #[must_use]
    pub fn to_response(&self, mode: ErrorStatus) -> Response<Body> {
        #[derive(serde::Serialize)]
        struct Envelope<'a> {
            code: i32,
            message: &'a str,
        }
        let face = self.face(mode);
        if face.bare {
            return self.bare_response(face.status);
        }
        let envelope = Envelope { code: face.code, message: &face.message };
        let text = serde_json::to_vec(&envelope).expect("a number and a text");
        let length = text.len();
        let mut response = Response::new(Body::from(Bytes::from(text)));
        *response.status_mut() = face.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        if self.0.close {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    fn bare_response(&self, status: StatusCode) -> Response<Body> {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        if self.0.close {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

impl fmt::Display for GatewayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.reason, self.0.standard.message)?;
        match &self.0.detail {
            Some(detail) => write!(f, " ({detail})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for GatewayError {}

#[cfg(test)]
mod tests {
    use super::{ErrorStatus, GatewayError, Reason};
    use http::StatusCode;
    use http_body_util::BodyExt;

    #[tokio::test]
    async fn the_envelope_has_two_members_and_never_the_detail() {
        let error = GatewayError::envelope(
            Reason::SelectorNotFound,
            StatusCode::NOT_FOUND,
            -107,
            "divide:Can not find selector, please check your configuration!",
        )
        .detail("10.0.0.1:8080 refused");
        assert_eq!(error.to_response(ErrorStatus::Standard).status(), StatusCode::NOT_FOUND);
        let response = error.to_response(ErrorStatus::Shenyu);
        assert_eq!(response.status(), StatusCode::OK);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let expected = r#"{"code":-107,"message":"divide:Can not find selector, please check your configuration!"}"#;
        assert_eq!(&body[..], expected.as_bytes());
    }
}
