//! The answer on its way back: response hooks, ascending by their place.

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderValue, Response, StatusCode, response};

use super::Aside;
use crate::body::{Body, BodyError};
use crate::chain::body_hooks::{collect, filtered};
use crate::chain::{BodyMode, Flow, Hit, Hooks, RequestContext};
use crate::error::{Fault, GatewayError, Reason};
use crate::upstream::{is_event_stream, strip_hop_by_hop};

/// Runs the response hooks and returns the answer for the client.
pub(super) async fn run(
    cx: &mut RequestContext,
    response: Response<Body>,
) -> Result<Response<Body>, GatewayError> {
    let (mut head, mut body) = response.into_parts();
    if head.status != StatusCode::SWITCHING_PROTOCOLS {
        strip_hop_by_hop(&mut head.headers);
    }
    if cx.exchange.hits.is_empty() {
        return Ok(Response::from_parts(head, body));
    }
    let mut aside = Aside::of(cx);
    let (hits, cx) = aside.parts();
    let mut order: smallvec::SmallVec<[usize; 4]> = (0..hits.len()).collect();
    order.sort_by_key(|at| (hits[*at].plugin.entry().response_order, *at));
    for at in order {
        one(cx, &mut hits[at], &mut head, &mut body).await?;
    }
    Ok(Response::from_parts(head, body))
}

async fn one(
    cx: &mut RequestContext,
    hit: &mut Hit,
    head: &mut response::Parts,
    body: &mut Body,
) -> Result<(), GatewayError> {
    let plugin = hit.plugin.clone();
    if hit.rule.parts.hooks.has(Hooks::RESPONSE_HEAD)
        && let Flow::Respond(instead) = plugin.response_head(hit, cx, head).get().await?
    {
        (*head, *body) = instead.into_parts();
    }
    match hit.rule.parts.response_body {
        BodyMode::Untouched => {}
        BodyMode::Filter => {
            if let Some(filter) = plugin.response_body_filter(hit, head)? {
                head.headers.remove(CONTENT_LENGTH);
                *body = filtered(std::mem::take(body), filter);
            }
        }
        // A stream of events never ends: it is not collected, it passes.
        BodyMode::Whole { .. } if is_event_stream(&head.headers) => {}
        BodyMode::Whole { limit } => {
            let bytes = collect(std::mem::take(body), limit).await.map_err(|error| {
                cx.exchange.broke_off(&error);
                unreadable(error)
            })?;
            let bytes = plugin.response_body(hit, head, bytes).get().await?;
            head.headers.remove(TRANSFER_ENCODING);
            head.headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes.len()));
            *body = Body::from(bytes);
        }
    }
    Ok(())
}

fn unreadable(error: BodyError) -> GatewayError {
    let message = match error {
        BodyError::TooLarge { .. } => "the upstream's answer is larger than a plugin can take",
        BodyError::Transport(_)
        | BodyError::Upstream(_)
        | BodyError::Filter(_)
        | BodyError::Stalled { .. }
        | BodyError::OverTime => "the upstream's answer broke off",
    };
    let reason = match error {
        BodyError::Stalled { .. } => Reason::UpstreamBodyTimeout,
        _ => Reason::UpstreamProtocol,
    };
    GatewayError::new(Fault::Upstream, reason, StatusCode::BAD_GATEWAY, message).detail(error)
}
