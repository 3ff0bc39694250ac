//! Websockets: the upstream switches first, then the client is told, then bytes flow both ways.

use std::sync::Arc;

use http::header::{CONNECTION, UPGRADE};
use http::{HeaderValue, Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;
use tokio::time::timeout;
use tracing::debug;

use super::around::{too_slow, upstream_request};
use crate::body::Body;
use crate::chain::{RequestContext, Target};
use crate::error::{GatewayError, Reason};
use crate::upstream::{Tunnel, UpstreamClient};

/// Opens a websocket: forwards the handshake, and ties both connections together once the upstream
/// has switched. An upstream that does not switch is an ordinary answer.
pub(super) async fn open(
    cx: &mut RequestContext,
    client: &Arc<dyn UpstreamClient>,
    target: &Target,
) -> Result<Response<Body>, GatewayError> {
    check_handshake(cx)?;
    let Some(client_side) = cx.head.extensions.remove::<OnUpgrade>() else {
        return Err(GatewayError::bad_request(
            Reason::BadRequest,
            "a websocket handshake is only possible over HTTP/1.1",
        ));
    };
    cx.body = Body::empty();
    let mut request = upstream_request(cx, target)?;
    request.headers_mut().insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    request.headers_mut().insert(UPGRADE, HeaderValue::from_static("websocket"));
    let switched = timeout(target.policy.timeout, client.upgrade(&target.endpoint, request)).await;
    let tunnel = match switched {
        Err(_) => return Err(too_slow(target)),
        Ok(Err(failure)) => return Err(failure.error),
        Ok(Ok(Err(response))) => return Ok(response),
        Ok(Ok(Ok(tunnel))) => tunnel,
    };
    let Tunnel { head, io } = tunnel;
    let endpoint = target.endpoint.to_string();
    // It is under way on its upstream for as long as it lives.
    let busy = cx.exchange.hand_over();
    cx.spawn(async move {
        let _busy = busy;
        let client_io = match client_side.await {
            Ok(client_io) => client_io,
            Err(error) => {
                debug!(upstream = endpoint, "client left before the websocket began: {error}");
                return;
            }
        };
        let (mut near, mut far) = (TokioIo::new(client_io), TokioIo::new(io));
        if let Err(error) = copy_bidirectional(&mut near, &mut far).await {
            debug!(upstream = endpoint, "websocket ended: {error}");
        }
    });
    Ok(Response::from_parts(head, Body::empty()))
}

/// What RFC 6455 asks of a handshake; anything else is refused before the upstream is bothered.
fn check_handshake(cx: &RequestContext) -> Result<(), GatewayError> {
    let header = |name: &str| cx.head.headers.get(name).and_then(|value| value.to_str().ok());
    let bad = |text| Err(GatewayError::bad_request(Reason::BadRequest, text));
    if cx.head.method != http::Method::GET {
        return bad("a websocket handshake must be a GET request");
    }
    let upgrades = header("connection").is_some_and(|value| {
        value.split(',').any(|word| word.trim().eq_ignore_ascii_case("upgrade"))
    });
    if !upgrades {
        return bad("a websocket handshake must have Connection: Upgrade");
    }
    if header("sec-websocket-key").is_none_or(|key| key.trim().len() != 24) {
        return bad("a websocket handshake must have a Sec-WebSocket-Key of 24 characters");
    }
    if header("sec-websocket-version") != Some("13") {
        return Err(GatewayError::new(
            crate::error::Fault::Client,
            Reason::BadRequest,
            StatusCode::UPGRADE_REQUIRED,
            "only version 13 of websockets is served",
        ));
    }
    Ok(())
}
