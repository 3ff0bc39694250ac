//! One request to its upstream, and to others where an attempt fails and another one is safe.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::HOST;
use http::request::Parts;
use http::{Request, Response};
use smallvec::SmallVec;
use tokio::time::{sleep, timeout};

use super::around::too_slow;
use super::retry::{self, Way};
use super::{Calls, no_target, tunnel};
use crate::body::{Body, Replay};
use crate::chain::completion::AttemptDone;
use crate::chain::{NotRetried, RequestContext, Target, TargetKind};
use crate::error::{GatewayError, Retry};
use crate::upstream::{Endpoint, SendFailure, now_ms, request_head_for};

/// Sends the request to the target that the context holds, and again as the rule says.
///
/// With `keep` the head stays with the context, so that hooks see it, and attempts are logged for
/// them; otherwise it leaves with the request. It is copied only where another attempt could follow.
pub(super) async fn deliver(
    cx: &mut RequestContext,
    calls: Calls<'_>,
    keep: bool,
) -> Result<Response<Body>, GatewayError> {
    let target = if keep { cx.target.clone() } else { cx.target.take() };
    let Some(target) = target else { return Err(no_target(cx)) };
    match target.kind {
        TargetKind::Http => {
            let (mut delivery, request) = Delivery::begin(cx, calls, target, keep)?;
            delivery.run(cx, request).await
        }
        TargetKind::WebSocket => websocket(cx, calls, &target, keep).await,
    }
}

/// What can be sent again when something was sent already.
#[derive(Debug)]
enum Repeat {
    Never(NotRetried),
    Bytes(Bytes),
    Stream(Replay),
}

struct Delivery<'a> {
    calls: Calls<'a>,
    target: Target,
    keep: bool,
    left: u32,
    /// Attempts repeated on the same upstream.
    repeated: u32,
    tried: SmallVec<[Arc<Endpoint>; 2]>,
    /// The head for further attempts, where the context does not have it.
    head: Option<Parts>,
    repeat: Repeat,
}

/// What follows a failed attempt.
enum Verdict {
    Stop,
    NoneLeft,
    /// After a wait; with a body where the first one is gone.
    Again(Duration, Option<Body>),
}

impl<'a> Delivery<'a> {
    fn begin(
        cx: &mut RequestContext,
        calls: Calls<'a>,
        target: Target,
        keep: bool,
    ) -> Result<(Self, Request<Body>), GatewayError> {
        let path = cx.upstream_target()?;
        let repeat = repeat(cx, calls, target.policy.retries);
        let body = match &repeat {
            // A plugin that wraps the call may want to repeat it, whatever the rule says.
            Repeat::Never(_) => match cx.body.replay().filter(|_| keep) {
                Some(bytes) => Body::from(bytes),
                None => std::mem::take(&mut cx.body),
            },
            Repeat::Bytes(bytes) => Body::from(bytes.clone()),
            Repeat::Stream(replay) => replay.attempt().unwrap_or_default(),
        };
        let mut head = if keep { cx.head.clone() } else { cx.take_head() };
        request_head_for(&mut head, &target.endpoint, path, cx.preserve_host);
        let again = !keep && !matches!(repeat, Repeat::Never(_));
        let delivery = Self {
            calls,
            keep,
            left: target.policy.retries,
            repeated: 0,
            tried: SmallVec::new(),
            head: again.then(|| head.clone()),
            repeat,
            target,
        };
        Ok((delivery, Request::from_parts(head, body)))
    }

    async fn run(
        &mut self,
        cx: &mut RequestContext,
        first: Request<Body>,
    ) -> Result<Response<Body>, GatewayError> {
        let mut request = first;
        loop {
            let SendFailure { error, request: unsent } = match self.attempt(cx, request).await {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            let failed = Arc::clone(&self.target.endpoint);
            let (wait, body) = match self.after(cx, &error, unsent.is_some()) {
                Verdict::Again(wait, body) => (wait, body),
                Verdict::NoneLeft => return Err(retry::none_left(&error)),
                Verdict::Stop => {
                    if let Some(unsent) = unsent {
                        cx.body = unsent.into_body();
                    }
                    return Err(retry::answer(&self.target.policy, error));
                }
            };
            cx.exchange.left(&failed);
            if !wait.is_zero() {
                sleep(wait).await;
            }
            request = self.again(cx, unsent, body)?;
        }
    }

    async fn attempt(
        &self,
        cx: &mut RequestContext,
        request: Request<Body>,
    ) -> Result<Response<Body>, SendFailure> {
        let Target { endpoint, policy, .. } = &self.target;
        let Some(busy) = endpoint.enter() else {
            cx.exchange.left(endpoint);
            let error = retry::overloaded(endpoint);
            return Err(SendFailure { error, request: Some(Box::new(request)) });
        };
        cx.exchange.attempted(busy);
        let measures = policy.balance.measures();
        let started = (self.keep || measures || cx.exchange.is_observed()).then(Instant::now);
        let result = match timeout(policy.timeout, self.calls.client.send(endpoint, request)).await
        {
            Ok(result) => result,
            Err(_) => Err(SendFailure::from(too_slow(&self.target))),
        };
        note(endpoint, result.as_ref().err().map(|failure| &failure.error));
        if let Some(started) = started {
            let elapsed = started.elapsed();
            if measures {
                match &result {
                    Ok(_) => endpoint.observe(elapsed, now_ms()),
                    Err(_) => endpoint.observe_failure(elapsed, now_ms()),
                }
            }
            let status = result.as_ref().ok().map(Response::status);
            cx.exchange.attempt_over(endpoint, elapsed, status);
            if self.keep {
                let outcome = result.as_ref().map(Response::status);
                let outcome = outcome.map_err(|failure| failure.error.reason());
                let endpoint = Arc::clone(endpoint);
                cx.exchange.attempt_log.push(AttemptDone { endpoint, elapsed, outcome });
            }
        }
        result
    }

    /// Decides what follows; with [`Verdict::Again`] the target is the one of the next attempt.
    fn after(&mut self, cx: &mut RequestContext, error: &GatewayError, unsent: bool) -> Verdict {
        let policy = self.target.policy;
        let way = retry::way(policy.failover, self.calls.options.error_status, error);
        if way == Way::Stop || self.left == 0 || (!unsent && error.retry() == Retry::Never) {
            return Verdict::Stop;
        }
        let body = match (unsent, &self.repeat) {
            (true, _) => None,
            (false, Repeat::Bytes(bytes)) => Some(Body::from(bytes.clone())),
            (false, Repeat::Stream(replay)) => match replay.attempt() {
                Some(body) => Some(body),
                None => return stop(cx, NotRetried::Body),
            },
            (false, Repeat::Never(why)) => return stop(cx, *why),
        };
        let here = Arc::clone(&self.target.endpoint);
        let next = match way {
            Way::Other => {
                self.tried.push(Arc::clone(&here));
                let peer = cx.connection.peer.ip();
                match here.another(policy.balance, peer, &self.tried) {
                    Some(next) => next,
                    None if policy.failover => return Verdict::NoneLeft,
                    None => return Verdict::Stop,
                }
            }
            Way::Same | Way::Stop => here,
        };
        if !next.may_retry(now_ms()) {
            return stop(cx, NotRetried::Budget);
        }
        self.left -= 1;
        self.target.endpoint = next;
        if way == Way::Other {
            return Verdict::Again(Duration::ZERO, body);
        }
        let wait = retry::wait(self.repeated);
        self.repeated += 1;
        Verdict::Again(wait, body)
    }

    /// The request of a further attempt: the one that was not sent, or a copy.
    fn again(
        &self,
        cx: &RequestContext,
        unsent: Option<Box<Request<Body>>>,
        body: Option<Body>,
    ) -> Result<Request<Body>, GatewayError> {
        let endpoint = &self.target.endpoint;
        if let Some(mut request) = unsent {
            if !cx.preserve_host {
                request.headers_mut().insert(HOST, endpoint.host.clone());
            }
            return Ok(*request);
        }
        let head = match &self.head {
            Some(head) => {
                let mut head = head.clone();
                if !cx.preserve_host {
                    head.headers.insert(HOST, endpoint.host.clone());
                }
                head
            }
            None => {
                let mut head = cx.head.clone();
                request_head_for(&mut head, endpoint, cx.upstream_target()?, cx.preserve_host);
                head
            }
        };
        Ok(Request::from_parts(head, body.unwrap_or_default()))
    }
}

/// What of the request could be sent again. Takes the body over only where it has to be kept.
fn repeat(cx: &mut RequestContext, calls: Calls<'_>, retries: u32) -> Repeat {
    let options = &calls.options.calls;
    if retries == 0 || !(options.retry_non_idempotent || cx.head.method.is_idempotent()) {
        return Repeat::Never(NotRetried::Method);
    }
    if let Some(bytes) = cx.body.replay() {
        return Repeat::Bytes(bytes);
    }
    if options.replay_bytes == 0 {
        return Repeat::Never(NotRetried::Body);
    }
    match Replay::new(std::mem::take(&mut cx.body), options.replay_bytes) {
        Ok(replay) => Repeat::Stream(replay),
        Err(body) => {
            cx.body = body;
            Repeat::Never(NotRetried::Body)
        }
    }
}

fn stop(cx: &mut RequestContext, why: NotRetried) -> Verdict {
    cx.exchange.not_retried(why);
    Verdict::Stop
}

/// Tells the endpoint how an attempt went, and the log of a failure. The only upstream of a selector is never ejected.
fn note(endpoint: &Endpoint, error: Option<&GatewayError>) {
    match error {
        None => endpoint.succeeded(),
        Some(error) => {
            let Some(failure) = retry::failure(error) else { return };
            endpoint.complain(error);
            if !endpoint.is_alone() {
                endpoint.failed(failure, now_ms());
            }
        }
    }
}

/// One attempt at a handshake; never repeated.
async fn websocket(
    cx: &mut RequestContext,
    calls: Calls<'_>,
    target: &Target,
    keep: bool,
) -> Result<Response<Body>, GatewayError> {
    let endpoint = &target.endpoint;
    let Some(busy) = endpoint.enter() else {
        cx.exchange.left(endpoint);
        return Err(retry::overloaded(endpoint));
    };
    cx.exchange.attempted(busy);
    let started = Instant::now();
    let result = tunnel::open(cx, calls.client, target, &calls.options.tunnels).await;
    note(endpoint, result.as_ref().err());
    let elapsed = started.elapsed();
    let status = result.as_ref().ok().map(Response::status);
    cx.exchange.attempt_over(endpoint, elapsed, status);
    if keep {
        cx.exchange.attempt_log.push(AttemptDone {
            endpoint: Arc::clone(endpoint),
            elapsed,
            outcome: result.as_ref().map(Response::status).map_err(GatewayError::reason),
        });
    }
    result
}
