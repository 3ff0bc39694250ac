//! The upstream call, wrapped by the plugins that asked for it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use http::{Request, Response, StatusCode};
use tokio::time::timeout;

use super::{Aside, Tunnels, tunnel};
use crate::body::Body;
use crate::chain::completion::AttemptDone;
use crate::chain::{Around, Attempt, Exchange, Hit, Hooks, RequestContext, Target, TargetKind};
use crate::error::{Fault, GatewayError, Reason, Retry};
use crate::upstream::{SHENYU_TIMEOUT, UpstreamClient, request_head_for};

type CallFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Response<Body>, GatewayError>> + Send + 'a>>;

/// Calls the upstream through the plugins, the first of the chain outermost; then tells those that
/// asked about each attempt.
pub(super) async fn run(
    cx: &mut RequestContext,
    client: &Arc<dyn UpstreamClient>,
    tunnels: &Tunnels,
) -> Result<Response<Body>, GatewayError> {
    if cx.exchange.hits.is_empty() {
        return attempt(cx, client, tunnels, false).await;
    }
    let result = {
        let mut aside = Aside::of(cx);
        let (hits, cx) = aside.parts();
        Nested { hits, client, tunnels }.call(cx).await
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
    client: &'a Arc<dyn UpstreamClient>,
    tunnels: &'a Tunnels,
}

impl Around for Nested<'_> {
    fn call<'a>(&'a mut self, cx: &'a mut RequestContext) -> CallFuture<'a> {
        let outer = self.hits.iter().position(|hit| hit.rule.parts.hooks.has(Hooks::AROUND));
        let inner = outer.and_then(|outer| self.hits[outer..].split_first_mut());
        let Some((hit, inner)) = inner else {
            return Box::pin(attempt(cx, self.client, self.tunnels, true));
        };
        let (client, tunnels) = (self.client, self.tunnels);
        Box::pin(async move {
            let plugin = hit.plugin.clone();
            let mut next = Nested { hits: inner, client, tunnels };
            plugin.around(hit, cx, &mut next).await
        })
    }
}

/// One attempt on the target that the context holds now.
///
/// With `keep` head and replayable body stay with the context, so that hooks see them and another
/// attempt may follow; otherwise they leave with the request and nothing is copied.
async fn attempt(
    cx: &mut RequestContext,
    client: &Arc<dyn UpstreamClient>,
    tunnels: &Tunnels,
    keep: bool,
) -> Result<Response<Body>, GatewayError> {
    let Some(target) = cx.target.clone() else { return Err(super::no_target(cx)) };
    cx.exchange.attempted(&target.endpoint);
    let started = Instant::now();
    let result = match target.kind {
        TargetKind::Http => exchange(cx, client, &target, keep).await,
        TargetKind::WebSocket => tunnel::open(cx, client, &target, tunnels).await,
    };
    let status = result.as_ref().ok().map(Response::status);
    if cx.exchange.is_observed() {
        cx.exchange.attempt_over(&target.endpoint, started.elapsed(), status);
    }
    if keep {
        cx.exchange.attempt_log.push(AttemptDone {
            endpoint: target.endpoint,
            elapsed: started.elapsed(),
            outcome: result.as_ref().map(Response::status).map_err(GatewayError::reason),
        });
    }
    result
}

async fn exchange(
    cx: &mut RequestContext,
    client: &Arc<dyn UpstreamClient>,
    target: &Target,
    keep: bool,
) -> Result<Response<Body>, GatewayError> {
    let request = upstream_request(cx, target, keep)?;
    match timeout(target.policy.timeout, client.send(&target.endpoint, request)).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(failure)) => {
            if let Some(unsent) = failure.request {
                cx.body = unsent.into_body();
            }
            Err(failure.error)
        }
        Err(_) => Err(too_slow(target)),
    }
}

/// The request for the upstream.
pub(super) fn upstream_request(
    cx: &mut RequestContext,
    target: &Target,
    keep: bool,
) -> Result<Request<Body>, GatewayError> {
    let path = cx.upstream_target()?;
    let (mut head, body) = if keep {
        let body = match cx.body.replay() {
            Some(bytes) => Body::from(bytes),
            None => std::mem::take(&mut cx.body),
        };
        (cx.head.clone(), body)
    } else {
        cx.take()
    };
    request_head_for(&mut head, &target.endpoint, path, false);
    Ok(Request::from_parts(head, body))
}

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
