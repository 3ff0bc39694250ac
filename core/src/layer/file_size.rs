//! The limit of uploaded files.

use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, Request, StatusCode};

use super::{Admission, Admitted};
use crate::body::BodyLimit;
use crate::chain::Inbound;
use crate::error::{GatewayError, Reason};

/// Refuses `multipart/form-data` bodies of more than `max` bytes: at once where they are announced
/// as longer, else as soon as they are. Nothing is collected. `None`: does nothing.
///
/// tower-http's limit knows one answer for all bodies, and not this one.
///
/// Source: ShenYu 2.7.1, file-size filter: status 400, code 403. There bodies are collected whole
/// first, and an empty one is not forwarded.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileSize {
    /// The most bytes.
    pub max: Option<u64>,
}

impl Admission for FileSize {
    fn admit(&self, request: &mut Request<Inbound>) -> Admitted {
        let Some(max) = self.max else { return Admitted::Pass };
        if !is_form(request.headers()) {
            return Admitted::Pass;
        }
        if announced(request.headers()).is_some_and(|length| length > max) {
            return Admitted::Refuse(refusal(max));
        }
        request.body_mut().limit_body(BodyLimit { bytes: max, refusal });
        Admitted::Pass
    }
}

/// The length that `Content-Length` announces.
pub(super) fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn is_form(headers: &HeaderMap) -> bool {
    const FORM: &[u8] = b"multipart/form-data";
    headers.get(CONTENT_TYPE).is_some_and(|value| {
        let essence = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
        essence.trim_ascii().eq_ignore_ascii_case(FORM)
    })
}

fn refusal(max: u64) -> GatewayError {
    let status = StatusCode::PAYLOAD_TOO_LARGE;
    GatewayError::envelope(Reason::BodyTooLarge, status, 403, "Payload too large!")
        .shenyu_status(StatusCode::BAD_REQUEST)
        .detail(format_args!("a multipart body of more than {max} bytes"))
        .closing()
}
