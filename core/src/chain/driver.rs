//! Runs the plugins of a snapshot over one request, and the upstream call after them.

mod around;
mod as_sent;
mod body;
mod deliver;
mod head;
mod response;
mod retry;
mod tunnel;

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};
use tracing::{debug, warn};

pub(crate) use as_sent::as_sent;
pub(crate) use head::{Found, find, keep_end_to_end, other_form, protocol, unavailable};
pub(super) use tunnel::Switched;
pub use tunnel::{TunnelLimits, TunnelTotals, Tunnels};

use super::{Hit, Inbound, RequestContext, forwarding};
use crate::body::{Body, BodyTimes, drain};
use crate::error::{ErrorStatus, Fault, GatewayError, Reason, is_grpc};
use crate::snapshot::SnapshotStore;
use crate::telemetry::Throttle;
use crate::upstream::UpstreamClient;

/// How requests are driven.
#[derive(Debug, Clone)]
pub struct DriverOptions {
    /// How the status of envelope answers is chosen.
    pub error_status: ErrorStatus,
    /// Whether a client may name the protocol by the header `rpc_type`.
    pub rpc_type_header: bool,
    /// Protocols that are served, for that header.
    pub rpc_types: &'static [&'static str],
    /// How upstreams are called.
    pub calls: CallOptions,
    /// The gateway's websockets.
    pub tunnels: Tunnels,
}

/// Time limits and retries of upstream calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallOptions {
    /// Per attempt to the response head, where the rule says nothing.
    pub response_timeout: Duration,
    /// Between two pieces of a request body; `None`: any time.
    pub client_body_idle: Option<Duration>,
    /// Between two pieces of a response body; `None`: any time.
    pub upstream_body_idle: Option<Duration>,
    /// For a request in all; `None`: any time.
    pub total: Option<Duration>,
    /// Whether methods that are not idempotent may be repeated.
    pub retry_non_idempotent: bool,
    /// The most bytes of a streaming request body that are kept for another attempt.
    pub replay_bytes: usize,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self {
            response_timeout: Duration::from_secs(3),
            client_body_idle: Some(Duration::from_secs(30)),
            upstream_body_idle: None,
            total: None,
            retry_non_idempotent: false,
            replay_bytes: 64 * 1024,
        }
    }
}

impl Default for DriverOptions {
    fn default() -> Self {
        Self {
            error_status: ErrorStatus::Standard,
            rpc_type_header: false,
            rpc_types: &["http", "websocket"],
            calls: CallOptions::default(),
            tunnels: Tunnels::default(),
        }
    }
}

/// Drives requests of one worker. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Driver(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    store: Arc<SnapshotStore>,
    client: Arc<dyn UpstreamClient>,
    options: DriverOptions,
    runtime: Handle,
    clock: fn() -> i64,
    /// For what requests can make a plugin fail with.
    complaints: Throttle,
}

impl Driver {
    /// A driver for one worker: `client` is the worker's own, `runtime` its runtime, `clock` the
    /// wall clock in epoch milliseconds.
    #[must_use]
    pub fn new(
        store: Arc<SnapshotStore>,
        client: Arc<dyn UpstreamClient>,
        options: DriverOptions,
        runtime: Handle,
        clock: fn() -> i64,
    ) -> Self {
        let complaints = Throttle::default();
        Self(Arc::new(Shared { store, client, options, runtime, clock, complaints }))
    }

    /// Serves one request: always with an answer.
    ///
    /// Dropping the future (the client left) drops whatever the plugins hold and completes the
    /// request once.
    pub async fn serve(&self, request: Request<Inbound>) -> Response<Body> {
        let (head, inbound) = request.into_parts();
        let shared = &*self.0;
        let grpc = is_grpc(&head.method, &head.headers);
        let mut cx = RequestContext::new(head, inbound, (shared.clock)(), shared.runtime.clone());
        cx.response_timeout = shared.options.calls.response_timeout;
        let end =
            shared.options.calls.total.map(|total| Instant::from(cx.exchange.started()) + total);
        let result = match end {
            None => self.answer(&mut cx, None).await,
            Some(end) => match timeout_at(end, self.answer(&mut cx, Some(end))).await {
                Ok(result) => result,
                Err(_) => Err(over_time()),
            },
        };
        let response = match result {
            Ok(response) => response,
            Err(error) => self.refuse(&mut cx, &error, grpc),
        };
        let (head, body) = response.into_parts();
        cx.exchange.answered(head.status);
        if let Some(switched) = cx.switched.take()
            && head.status == StatusCode::SWITCHING_PROTOCOLS
        {
            // It ends when the websocket does.
            switched.begin(cx.exchange, &shared.runtime);
            return Response::from_parts(head, body);
        }
        Response::from_parts(head, cx.exchange.watch(body))
    }

    /// Turns an error into an answer, and tells the log what the client is not told.
    fn refuse(&self, cx: &mut RequestContext, error: &GatewayError, grpc: bool) -> Response<Body> {
        cx.exchange.because(error.reason());
        // A client that still sends is to get its answer all the same.
        drain(std::mem::take(&mut cx.body));
        let path = cx.exchange.target().path();
        match error.fault() {
            Fault::Gateway if error.reason() == Reason::PluginFailed => {
                if let Some(left_out) = self.0.complaints.pass() {
                    warn!(reason = %error.reason(), path, "request failed: {error}{left_out}");
                }
            }
            Fault::Client | Fault::Gateway | Fault::Upstream => {
                debug!(reason = %error.reason(), path, "request not answered by its upstream: {error}");
            }
        }
        if grpc {
            return error.to_grpc_response();
        }
        error.to_response(self.0.options.error_status)
    }

    async fn answer(
        &self,
        cx: &mut RequestContext,
        end: Option<Instant>,
    ) -> Result<Response<Body>, GatewayError> {
        let early = {
            // The snapshot is held until the last plugin has decided about the head, not longer.
            let snapshot = self.0.store.load();
            head::protocol(cx, &snapshot, &self.0.options)?;
            head::keep_end_to_end(cx);
            head::run(cx, &snapshot).await?
        };
        let response = match early {
            Some(response) => response,
            None => {
                let result = self.proxy(cx, end).await;
                // Whatever came of the call: it was made with a body cut off past its limit.
                cx.over_limit().map_or(result, Err)?
            }
        };
        response::run(cx, response).await
    }

    /// Everything from the chosen target to the upstream's response head.
    async fn proxy(
        &self,
        cx: &mut RequestContext,
        end: Option<Instant>,
    ) -> Result<Response<Body>, GatewayError> {
        if cx.target.is_none() {
            return Err(no_target(cx));
        }
        cx.meter_body();
        let options = &self.0.options;
        let times = BodyTimes { idle: options.calls.client_body_idle, end };
        cx.body = std::mem::take(&mut cx.body).timed(times);
        if let Some(response) = body::request(cx).await? {
            return Ok(response);
        }
        forwarding::apply(cx);
        let response = around::run(cx, Calls { client: &self.0.client, options }).await?;
        let times = BodyTimes { idle: options.calls.upstream_body_idle, end };
        Ok(response.map(|body| body.timed(times)))
    }
}

/// What upstream calls need beside the request.
#[derive(Debug, Clone, Copy)]
struct Calls<'a> {
    client: &'a Arc<dyn UpstreamClient>,
    options: &'a DriverOptions,
}

fn over_time() -> GatewayError {
    GatewayError::new(
        Fault::Gateway,
        Reason::TotalTimeout,
        StatusCode::GATEWAY_TIMEOUT,
        "the time of the request is over",
    )
}

/// The hits of a request beside its context, so that a hook can have its own hit and the context.
///
/// Puts them back when dropped, also when the client leaves while a hook waits: their completion is
/// still to come.
struct Aside<'a> {
    hits: smallvec::SmallVec<[Hit; 1]>,
    cx: &'a mut RequestContext,
}

impl<'a> Aside<'a> {
    fn of(cx: &'a mut RequestContext) -> Self {
        Self { hits: std::mem::take(&mut cx.exchange.hits), cx }
    }

    fn parts(&mut self) -> (&mut [Hit], &mut RequestContext) {
        (&mut self.hits, self.cx)
    }
}

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        self.cx.exchange.hits = std::mem::take(&mut self.hits);
    }
}

/// No plugin chose a target.
///
/// Source: ShenYu 2.7.1: without a url -106, for protocols without a result -103.
fn no_target(cx: &RequestContext) -> GatewayError {
    if cx.rpc_type == super::RpcType::Http {
        GatewayError::envelope(
            Reason::NoTarget,
            StatusCode::NOT_FOUND,
            -106,
            "Can not find url, please check your configuration!",
        )
    } else {
        GatewayError::envelope(
            Reason::NoTarget,
            StatusCode::BAD_GATEWAY,
            -103,
            "Service invocation exception, or no result is returned!",
        )
    }
}
