//! Paths that are never routed.

use http::Request;

use super::{Admission, Admitted};
use crate::chain::Inbound;
use crate::condition::check_path;
use crate::error::{GatewayError, Reason};

/// Refuses with 400, before any routing: dot segments in any spelling, backslashes, `%00`, control
/// characters, invalid escapes. Everything else goes on as it came.
#[derive(Debug, Clone, Copy, Default)]
pub struct PathRules;

impl Admission for PathRules {
    fn admit(&self, request: &mut Request<Inbound>) -> Admitted {
        match check_path(request.uri().path()) {
            Ok(()) => Admitted::Pass,
            Err(fault) => Admitted::Refuse(GatewayError::bad_request(
                Reason::BadPath,
                format!("the path is refused: {fault}"),
            )),
        }
    }
}
