//! Limits of what the head announces.

use http::header::CONTENT_LENGTH;
use http::{Request, StatusCode};
use http_body::Body as _;

use super::{Admission, Admitted};
use crate::chain::Inbound;
use crate::error::{Fault, GatewayError, Reason};

/// Refuses targets longer than `max_target` bytes (414) and bodies announced as longer than
/// `max_body` bytes (413), and closes.
#[derive(Debug, Clone, Copy)]
pub struct HeadLimits {
    /// The longest target, in bytes.
    pub max_target: usize,
    /// The longest body, in bytes; `None` for no limit.
    pub max_body: Option<u64>,
}

impl Admission for HeadLimits {
    fn admit(&self, request: &mut Request<Inbound>) -> Admitted {
        let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
        if target > self.max_target {
            let text = format!("the target is longer than {} bytes", self.max_target);
            return refuse(Reason::HeaderTooLarge, StatusCode::URI_TOO_LONG, text);
        }
        let Some(limit) = self.max_body else { return Admitted::Pass };
        let announced = request
            .headers()
            .get(CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok()?.parse::<u64>().ok())
            .unwrap_or_else(|| request.body().body.size_hint().lower());
        if announced > limit {
            let text = format!("the body is larger than {limit} bytes");
            return refuse(Reason::BodyTooLarge, StatusCode::PAYLOAD_TOO_LARGE, text);
        }
        Admitted::Pass
    }
}

fn refuse(reason: Reason, status: StatusCode, text: String) -> Admitted {
    Admitted::Refuse(GatewayError::new(Fault::Client, reason, status, text).closing())
}
