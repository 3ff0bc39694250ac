//! The upstream call, wrapped by the plugins that asked for it.

use std::future::Future;
use std::pin::Pin;

use http::{Request, Response, StatusCode};

use super::deliver::deliver;
use super::{Aside, Calls};
use crate::body::Body;
use crate::chain::{Around, Attempt, Exchange, Hit, Hooks, RequestContext, Target};
use crate::error::{Fault, GatewayError, Reason, Retry};
use crate::upstream::{SHENYU_TIMEOUT, request_head_for};

type CallFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Response<Body>, GatewayError>> + Send + 'a>>;

/// Calls the upstream through the plugins, the first of the chain outermost; then tells those that
/// asked about each attempt.
pub(super) async fn run(
    cx: &mut RequestContext,
    calls: Calls<'_>,
) -> Result<Response<Body>, GatewayError> {
    if cx.exchange.hits.is_empty() {
        return deliver(cx, calls, false).await;
    }
    let result = {
        let mut aside = Aside::of(cx);
        let (hits, cx) = aside.parts();
        Nested { hits, calls }.call(cx).await
    };
    let Exchange { hits, attempt_log, .. } = &mut cx.exchange;
    for (number, done) in (1..).zip(attempt_log.drain(..)) {
        let told = Attempt {
            number,
            endpoint: &done.endpoint,
            elapsed: done.elapsed,
            outcome: done.outcome,
        };
        for hit in hits.iter_mut().filter(|hit| hit.rule.parts.hooks.has(Hooks::ATTEMPT)) {
            hit.plugin.clone().attempt(hit, &told);
        }
    }
    result
}

struct Nested<'a> {
    hits: &'a mut [Hit],
    calls: Calls<'a>,
}

impl Around for Nested<'_> {
    fn call<'a>(&'a mut self, cx: &'a mut RequestContext) -> CallFuture<'a> {
        let outer = self.hits.iter().position(|hit| hit.rule.parts.hooks.has(Hooks::AROUND));
        let inner = outer.and_then(|outer| self.hits[outer..].split_first_mut());
        let Some((hit, inner)) = inner else {
            return Box::pin(deliver(cx, self.calls, true));
        };
        let calls = self.calls;
        Box::pin(async move {
            let plugin = hit.plugin.clone();
            let mut next = Nested { hits: inner, calls };
            plugin.around(hit, cx, &mut next).await
        })
    }
}

/// The request of a websocket handshake; the head stays with the context.
pub(super) fn upstream_request(
    cx: &mut RequestContext,
    target: &Target,
) -> Result<Request<Body>, GatewayError> {
    let path = cx.upstream_target()?;
    let mut head = cx.head.clone();
    request_head_for(&mut head, &target.endpoint, path, cx.preserve_host);
    Ok(Request::from_parts(head, std::mem::take(&mut cx.body)))
}

/// The upstream has not answered within the time of an attempt.
pub(super) fn too_slow(target: &Target) -> GatewayError {
    GatewayError::new(
        Fault::Upstream,
        Reason::UpstreamTimeout,
        StatusCode::GATEWAY_TIMEOUT,
        "the upstream took too long to answer",
    )
    .shenyu(StatusCode::REQUEST_TIMEOUT, SHENYU_TIMEOUT)
    .retry_when(Retry::IfIdempotent)
    .detail(format_args!("{} after {:?}", target.endpoint, target.policy.timeout))
}
