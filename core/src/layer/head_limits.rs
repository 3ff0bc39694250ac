//! Limits of what the head holds and announces.

use http::{HeaderMap, Request, StatusCode, Uri, Version};

use super::file_size::announced;
use super::{Admission, Admitted};
use crate::body::BodyLimit;
use crate::chain::Inbound;
use crate::error::{Fault, GatewayError, Reason};

/// Refuses request lines longer than `max_line` bytes (414), header sections longer than
/// `max_headers` bytes (431) and bodies longer than `max_body` bytes (413, at once where announced,
/// else as soon as they are), and closes.
///
/// The server itself refuses only what is longer than line and headers together may be. Costs a walk
/// over the headers.
#[derive(Debug, Clone, Copy)]
pub struct HeadLimits {
    /// The longest request line, in bytes, without its line end.
    pub max_line: usize,
    /// The longest header section, in bytes, with its line ends.
    pub max_headers: usize,
    /// The longest body, in bytes; `None` for no limit.
    pub max_body: Option<u64>,
}

impl Admission for HeadLimits {
    fn admit(&self, request: &mut Request<Inbound>) -> Admitted {
        // HTTP/2 has no line; its names and values are held to the same figures.
        let line = request.method().as_str().len() + target(request.uri()) + " HTTP/1.1 ".len();
        if line > self.max_line {
            let text = format!("the request line is longer than {} bytes", self.max_line);
            return refuse(Reason::HeaderTooLarge, StatusCode::URI_TOO_LONG, text);
        }
        if request.version() < Version::HTTP_2 && section(request.headers()) > self.max_headers {
            let text = format!("the header section is longer than {} bytes", self.max_headers);
            let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
            return refuse(Reason::HeaderTooLarge, status, text);
        }
        let Some(limit) = self.max_body else { return Admitted::Pass };
        if announced(request.headers()).is_some_and(|length| length > limit) {
            return Admitted::Refuse(too_large(limit));
        }
        request.body_mut().limit_body(BodyLimit { bytes: limit, refusal: too_large });
        Admitted::Pass
    }
}

/// The bytes of a target as it was sent.
fn target(uri: &Uri) -> usize {
    let origin = uri.path_and_query().map_or(0, |target| target.as_str().len());
    match (uri.scheme_str(), uri.authority()) {
        (Some(scheme), Some(authority)) => {
            origin + scheme.len() + "://".len() + authority.as_str().len()
        }
        _ => origin,
    }
}

/// The bytes of a header section: names, values, colons, blanks and line ends.
fn section(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum()
}

fn too_large(limit: u64) -> GatewayError {
    let text = format!("the body is larger than {limit} bytes");
    GatewayError::new(Fault::Client, Reason::BodyTooLarge, StatusCode::PAYLOAD_TOO_LARGE, text)
        .closing()
}

/// Source: ShenYu 2.7.1 refuses heads with an empty body.
fn refuse(reason: Reason, status: StatusCode, text: String) -> Admitted {
    Admitted::Refuse(GatewayError::new(Fault::Client, reason, status, text).closing().shenyu_bare())
}
