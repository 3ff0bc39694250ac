//! Websockets: the upstream switches first, then the client is told, then frames flow both ways.

mod direction;
mod frames;
mod pump;
mod registry;
#[cfg(test)]
mod tests;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use http::header::{CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tracing::debug;

use super::around::{too_slow, upstream_request};
use crate::body::Body;
use crate::chain::{Exchange, Outcome, RequestContext, Target};
use crate::error::{Fault, GatewayError, Reason};
use crate::upstream::{Endpoint, Tunnel, UpstreamClient};

use pump::{End, Pump};
use registry::Seat;
pub use registry::{TunnelLimits, TunnelTotals, Tunnels};

/// A websocket whose upstream has switched while the client has yet to be told.
#[derive(Debug)]
pub(in crate::chain) struct Switched {
    client: OnUpgrade,
    upstream: Upgraded,
    endpoint: Arc<Endpoint>,
    seat: Seat,
}

/// Opens a websocket: forwards the handshake, and leaves both connections in the context once the
/// upstream has switched. An upstream that does not switch is an ordinary answer.
pub(super) async fn open(
    cx: &mut RequestContext,
    client: &Arc<dyn UpstreamClient>,
    target: &Target,
    tunnels: &Tunnels,
) -> Result<Response<Body>, GatewayError> {
    check_handshake(cx)?;
    let Some(client_side) = cx.head.extensions.get::<OnUpgrade>().cloned() else {
        return Err(GatewayError::bad_request(
            Reason::BadRequest,
            "a websocket handshake is only possible over HTTP/1.1",
        ));
    };
    let seat = tunnels.enter()?;
    cx.body = Body::empty();
    let request = handshake(cx, target)?;
    let switched = timeout(target.policy.timeout, client.upgrade(&target.endpoint, request)).await;
    let tunnel = match switched {
        Err(_) => return Err(too_slow(target)),
        Ok(Err(failure)) => return Err(failure.error),
        Ok(Ok(Err(response))) => return Ok(response),
        Ok(Ok(Ok(tunnel))) => tunnel,
    };
    let Tunnel { mut head, io } = tunnel;
    if !is_websocket(&head.headers) {
        return Err(GatewayError::new(
            Fault::Upstream,
            Reason::UpstreamUpgrade,
            StatusCode::BAD_GATEWAY,
            "the upstream switched to another protocol than websocket",
        )
        .shenyu(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error")
        .detail(&target.endpoint));
    }
    keep_end_to_end(&mut head.headers);
    let endpoint = Arc::clone(&target.endpoint);
    cx.switched = Some(Box::new(Switched { client: client_side, upstream: io, endpoint, seat }));
    Ok(Response::from_parts(head, Body::empty()))
}

/// The handshake as the upstream gets it.
pub(super) fn handshake(
    cx: &mut RequestContext,
    target: &Target,
) -> Result<Request<Body>, GatewayError> {
    let mut request = upstream_request(cx, target)?;
    request.extensions_mut().remove::<OnUpgrade>();
    request.headers_mut().insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    request.headers_mut().insert(UPGRADE, HeaderValue::from_static("websocket"));
    Ok(request)
}

impl Switched {
    /// Lets frames flow once the client has been sent the head. The request lives until they end.
    pub(super) fn begin(self, exchange: Exchange, runtime: &Handle) {
        let tunnels = self.seat.tunnels().clone();
        tunnels.tasks().spawn_on(self.run(exchange), runtime);
    }

    async fn run(self, mut exchange: Exchange) {
        let Self { client, upstream, endpoint, seat } = self;
        let near = match client.await {
            Ok(near) => near,
            Err(error) => {
                debug!(upstream = %endpoint, "client left before the websocket began: {error}");
                return;
            }
        };
        let tunnels = seat.tunnels();
        tunnels.totals().opened.fetch_add(1, Ordering::Relaxed);
        let begun = Instant::now();
        let limits = tunnels.limits().clone();
        let mut pump = Pump::new(TokioIo::new(near), TokioIo::new(upstream), limits);
        let mut away = pin!(tunnels.away().cancelled());
        let mut told = false;
        let end = poll_fn(|cx| {
            if !told && away.as_mut().poll(cx).is_ready() {
                told = true;
                pump.go_away();
            }
            pump.poll(cx)
        })
        .await;
        let (up, down) = pump.directions();
        let totals = tunnels.totals();
        for (total, amount) in [
            (&totals.frames_from_clients, up.frames.count),
            (&totals.frames_to_clients, down.frames.count),
            (&totals.bytes_from_clients, up.bytes),
            (&totals.bytes_to_clients, down.bytes),
        ] {
            total.fetch_add(amount, Ordering::Relaxed);
        }
        debug!(
            upstream = %endpoint, ?end, error = ?pump.error, elapsed = ?begun.elapsed(),
            bytes_from_client = up.bytes, frames_from_client = up.frames.count,
            bytes_to_client = down.bytes, frames_to_client = down.frames.count,
            "websocket ended"
        );
        exchange.carried(up.bytes, down.bytes);
        let (outcome, reason) = verdict(end);
        if let Some(reason) = reason {
            exchange.because(reason);
        }
        exchange.end(outcome);
    }
}

fn verdict(end: End) -> (Outcome, Option<Reason>) {
    match end {
        End::Closed => (Outcome::Finished, None),
        End::Stopped => (Outcome::Finished, Some(Reason::Stopping)),
        End::Idle => (Outcome::Finished, Some(Reason::Idle)),
        End::ClientFrame | End::UpstreamFrame => (Outcome::Failed, Some(Reason::BodyTooLarge)),
        End::ClientGone => (Outcome::ClientGone, None),
        End::UpstreamGone => (Outcome::Failed, Some(Reason::UpstreamReset)),
    }
}

fn is_websocket(headers: &HeaderMap) -> bool {
    headers.get(UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// Of an upstream's 101 everything passes but what belongs to its connection or frames a body.
fn keep_end_to_end(headers: &mut HeaderMap) {
    const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
    for name in [KEEP_ALIVE, TRANSFER_ENCODING, CONTENT_LENGTH] {
        headers.remove(name);
    }
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
}

/// What RFC 6455 asks of a handshake; anything else is refused before the upstream is bothered.
pub(super) fn check_handshake(cx: &RequestContext) -> Result<(), GatewayError> {
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
            Fault::Client,
            Reason::BadRequest,
            StatusCode::UPGRADE_REQUIRED,
            "only version 13 of websockets is served",
        ));
    }
    Ok(())
}
