//! The head that an upstream would get, of a request that is not sent.

use http::request::Parts;

use super::around::upstream_request;
use super::{no_target, tunnel};
use crate::chain::{RequestContext, TargetKind, forwarding};
use crate::error::GatewayError;

/// What stands between the last plugin's decision and the upstream call, without the call.
///
/// Body hooks do not run, and no attempt is counted. A body that the request would not carry further is
/// let go.
///
/// # Errors
/// What the request would fail with before anything is sent.
pub(crate) fn as_sent(cx: &mut RequestContext) -> Result<Parts, GatewayError> {
    let Some(target) = cx.target.clone() else { return Err(no_target(cx)) };
    cx.meter_body();
    forwarding::apply(cx);
    let request = match target.kind {
        TargetKind::Http => upstream_request(cx, &target)?,
        TargetKind::WebSocket => {
            tunnel::check_handshake(cx)?;
            tunnel::handshake(cx, &target)?
        }
    };
    Ok(request.into_parts().0)
}
