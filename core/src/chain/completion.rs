//! The end of a request: exactly once, wherever it ends.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, StatusCode, Uri};
use http_body::{Body as HttpBody, Frame, SizeHint};
use smallvec::SmallVec;

use super::{Hit, Observed};
use crate::body::{Body, BodyError, Meter};
use crate::error::Reason;
use crate::layer::Permit;
use crate::upstream::{Endpoint, InFlight};

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The client was given a whole answer, the upstream's or ours.
    Finished,
    /// The answer was begun and could not be finished.
    Failed,
    /// The client left before the end of the answer.
    ClientGone,
}

/// Why a failed attempt was not repeated although the rule has retries left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NotRetried {
    /// The upstream has had its share of retries.
    Budget,
    /// The request may have been processed, and its method is not one to be repeated.
    Method,
    /// The request may have been processed, and its body is not there any more.
    Body,
}

impl NotRetried {
    /// The stable code, in snake case.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Budget => "retry_budget",
            Self::Method => "method_not_idempotent",
            Self::Body => "body_not_kept",
        }
    }
}

/// Everything known about a request once it is over.
#[derive(Debug)]
pub struct Completion {
    /// How it ended.
    pub outcome: Outcome,
    /// Why the answer was not the upstream's, if it was not.
    pub reason: Option<Reason>,
    /// The method.
    pub method: Method,
    /// The target as the client sent it.
    pub target: Uri,
    /// The status of the answer; `None` when the client left before there was one.
    pub status: Option<StatusCode>,
    /// The upstream that was tried last.
    pub upstream: Option<Arc<Endpoint>>,
    /// Attempts on upstreams.
    pub attempts: u32,
    /// Why a failed attempt was not repeated although the rule has retries left.
    pub not_retried: Option<NotRetried>,
    /// Body bytes sent to the client.
    pub response_bytes: u64,
    /// From the request head to the response head.
    pub head_elapsed: Option<Duration>,
    /// From the request head to the end.
    pub elapsed: Duration,
    /// From sending to the response head or the failure, over all attempts; `None` without one, and
    /// where nobody watches.
    pub upstream_elapsed: Option<Duration>,
    /// Body bytes received from the client; 0 where nobody watches.
    pub request_bytes: u64,
    /// Whether the connection became a websocket.
    pub websocket: bool,
    /// Whether the server could read the head at all; if not, method and target say nothing.
    pub readable: bool,
}

impl Completion {
    pub(crate) fn empty() -> Self {
        Self { readable: false, ..Self::begin(Method::GET, Uri::default()) }
    }

    fn begin(method: Method, target: Uri) -> Self {
        Self {
            outcome: Outcome::ClientGone,
            reason: None,
            method,
            target,
            status: None,
            upstream: None,
            attempts: 0,
            not_retried: None,
            response_bytes: 0,
            head_elapsed: None,
            elapsed: Duration::ZERO,
            upstream_elapsed: None,
            request_bytes: 0,
            websocket: false,
            readable: true,
        }
    }
}

/// One attempt that ended, for the plugins that asked.
pub(super) struct AttemptDone {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) elapsed: Duration,
    pub(super) outcome: Result<StatusCode, Reason>,
}

/// The part of a request that lives to its end: the hits with later hooks, and the figures.
///
/// Dropping it completes the request: as [`Outcome::ClientGone`] unless an outcome was recorded.
/// Whoever holds the request at the moment holds this, so no path can miss the completion and none
/// can run it twice.
pub struct Exchange {
    pub(super) hits: SmallVec<[Hit; 1]>,
    pub(super) attempt_log: Vec<AttemptDone>,
    completion: Completion,
    started: Instant,
    ended: bool,
    /// The place on the upstream that is tried now, or that answers.
    busy: Option<InFlight>,
    /// The place among the requests under way; released after the completion.
    pub(super) permit: Option<Permit>,
    /// Guards of plugins without later hooks; released after the completion.
    guards: SmallVec<[Box<dyn Send>; 1]>,
    /// What the observer is told besides; `None` when nobody watches.
    observed: Option<Observed>,
    /// Whether it was counted as under way.
    begun: bool,
    /// Counts the request body.
    meter: Option<Arc<Meter>>,
}

impl Exchange {
    /// Begins a request.
    #[must_use]
    pub fn begin(method: Method, target: Uri, started: Instant) -> Self {
        Self {
            hits: SmallVec::new(),
            attempt_log: Vec::new(),
            completion: Completion::begin(method, target),
            started,
            ended: false,
            busy: None,
            permit: None,
            guards: SmallVec::new(),
            observed: None,
            begun: false,
            meter: None,
        }
    }

    /// When the request head was there.
    #[must_use]
    pub const fn started(&self) -> Instant {
        self.started
    }

    /// Holds something until the request is over.
    pub fn hold(&mut self, guard: Box<dyn Send>) {
        self.guards.push(guard);
    }

    /// The target as the client sent it.
    #[must_use]
    pub const fn target(&self) -> &Uri {
        &self.completion.target
    }

    /// Whether anybody wants to know about the end.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        !self.hits.is_empty()
            || !self.guards.is_empty()
            || self.permit.is_some()
            || self.busy.is_some()
            || self.observed.is_some()
    }

    /// Whether the gateway's observer watches.
    #[must_use]
    pub const fn is_observed(&self) -> bool {
        self.observed.is_some()
    }

    /// Tells the observer of the end.
    pub(super) fn observe(&mut self, observed: Observed) {
        self.observed = Some(observed);
    }

    /// Counts the request as under way until its end.
    pub(super) fn count(&mut self) {
        if let Some(observer) = self.observed.as_ref().and_then(Observed::observer) {
            observer.begun();
            self.begun = true;
        }
    }

    /// Counts the request body.
    pub(super) fn metered(&mut self, meter: &Arc<Meter>) {
        self.meter = Some(Arc::clone(meter));
    }

    /// Why an answer broke off. Where the client's body did, the upstream's end is only what follows.
    fn broken_off(&self, error: &BodyError) -> Reason {
        let clients = self.meter.as_ref().and_then(|meter| meter.fault());
        clients.unwrap_or_else(|| broken_off(error))
    }

    /// Records an attempt; the place is held to the end of the request or the next attempt.
    pub fn attempted(&mut self, busy: InFlight) {
        self.completion.attempts += 1;
        self.busy = Some(busy);
    }

    /// Records an upstream that is not tried, or not any more.
    pub fn left(&mut self, endpoint: &Arc<Endpoint>) {
        self.busy = None;
        self.completion.upstream = Some(Arc::clone(endpoint));
    }

    /// Records why a failed attempt is not repeated.
    pub fn not_retried(&mut self, why: NotRetried) {
        self.completion.not_retried = Some(why);
    }

    /// Records how the attempt that was recorded last went. Costs nothing when nobody watches.
    pub fn attempt_over(
        &mut self,
        endpoint: &Arc<Endpoint>,
        elapsed: Duration,
        status: Option<StatusCode>,
    ) {
        let Some(observed) = &self.observed else { return };
        let total = self.completion.upstream_elapsed.unwrap_or_default() + elapsed;
        self.completion.upstream_elapsed = Some(total);
        if let Some(observer) = observed.observer() {
            observer.attempted(endpoint, elapsed, status);
        }
    }

    /// Attempts so far.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.completion.attempts
    }

    /// Records why the answer is not the upstream's.
    pub fn because(&mut self, reason: Reason) {
        self.completion.reason = Some(reason);
    }

    /// Tells the log that the upstream did not bring its answer to the end.
    pub(super) fn broke_off(&self, error: &BodyError) {
        let reason = self.broken_off(error);
        if let Some(busy) = &self.busy
            && matches!(reason, Reason::UpstreamBodyReset | Reason::UpstreamBodyTimeout)
        {
            busy.endpoint().complain(format_args!("{reason}: {error}"));
        }
    }

    /// Whether the client left in the middle of its body.
    fn client_is_gone(&self) -> bool {
        self.meter.as_ref().is_some_and(|meter| meter.fault() == Some(Reason::ClientGone))
    }

    /// Records the response head.
    pub fn answered(&mut self, status: StatusCode) {
        self.completion.status = Some(status);
        self.completion.head_elapsed = Some(self.started.elapsed());
    }

    /// Records what a websocket has carried, in bytes.
    pub(super) fn carried(&mut self, from_client: u64, to_client: u64) {
        self.completion.request_bytes = from_client;
        self.completion.response_bytes = to_client;
    }

    /// Ends the request with an outcome.
    pub fn end(mut self, outcome: Outcome) {
        self.finish(outcome);
    }

    fn finish(&mut self, outcome: Outcome) {
        if std::mem::replace(&mut self.ended, true)
            || (self.hits.is_empty() && self.observed.is_none())
        {
            return;
        }
        let completion = &mut self.completion;
        completion.outcome = outcome;
        completion.elapsed = self.started.elapsed();
        if let Some(busy) = &self.busy {
            completion.upstream = Some(Arc::clone(busy.endpoint()));
        }
        if let Some(meter) = &self.meter {
            completion.request_bytes = meter.bytes();
        }
        completion.websocket = completion.status == Some(StatusCode::SWITCHING_PROTOCOLS);
        if completion.status.is_none() && std::thread::panicking() {
            // What the panic guard is about to answer.
            completion.outcome = Outcome::Finished;
            completion.status = Some(StatusCode::INTERNAL_SERVER_ERROR);
            completion.reason = Some(Reason::Panic);
        }
        if completion.outcome == Outcome::ClientGone && completion.reason.is_none() {
            completion.reason = Some(Reason::ClientGone);
        }
        if let Some(observed) = self.observed.take()
            && let Some(observer) = observed.observer()
        {
            observer.over(&self.completion, &observed, self.begun);
        }
        for mut hit in std::mem::take(&mut self.hits) {
            if hit.rule.parts.hooks.has(super::Hooks::COMPLETION) {
                let plugin = Arc::clone(&hit.plugin);
                plugin.completion(&mut hit, &self.completion);
            }
        }
    }

    /// Ties the request to the body of its answer: it is over when the body is.
    ///
    /// A body nobody watches is returned as it is; an empty one ends the request now, and so does one
    /// that is never sent: the server drops it unread after a `HEAD`, and with 204 and 304.
    #[must_use]
    pub fn watch(mut self, body: Body) -> Body {
        let unsent = self.completion.method == Method::HEAD
            || matches!(
                self.completion.status,
                Some(StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
            );
        if unsent || body.is_end_stream() {
            self.finish(Outcome::Finished);
            // Guards are held until the answer is written, which for an empty body is now.
            return body;
        }
        if !self.is_watched() {
            self.ended = true;
            return body;
        }
        Body::boxed(Watched { body, exchange: Some(self) })
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("completion", &self.completion)
            .field("hits", &self.hits.len())
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.finish(Outcome::ClientGone);
    }
}

/// Why a response body did not come to its end.
const fn broken_off(error: &BodyError) -> Reason {
    match error {
        BodyError::Transport(_) | BodyError::Upstream(_) => Reason::UpstreamBodyReset,
        BodyError::Stalled { .. } => Reason::UpstreamBodyTimeout,
        BodyError::OverTime => Reason::TotalTimeout,
        BodyError::Filter(_) | BodyError::TooLarge { .. } => Reason::PluginFailed,
    }
}

/// A response body that carries the request to its end.
struct Watched {
    body: Body,
    exchange: Option<Exchange>,
}

impl Watched {
    fn end(&mut self, outcome: Outcome) {
        if let Some(exchange) = self.exchange.take() {
            exchange.end(outcome);
        }
    }
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
        match &frame {
            None => this.end(Outcome::Finished),
            Some(Err(error)) => {
                if let Some(exchange) = &mut this.exchange {
                    exchange.broke_off(error);
                    exchange.because(exchange.broken_off(error));
                }
                let gone = this.exchange.as_ref().is_some_and(Exchange::client_is_gone);
                this.end(if gone { Outcome::ClientGone } else { Outcome::Failed });
            }
            Some(Ok(frame)) => {
                let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
                if let Some(exchange) = &mut this.exchange {
                    exchange.completion.response_bytes += bytes;
                }
                // With a known length the server does not poll again after the last byte.
                if this.body.is_end_stream() {
                    this.end(Outcome::Finished);
                }
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
