//! The request body, where a matched rule wants it.

use http::header::CONTENT_LENGTH;
use http::{HeaderValue, Response};

use super::Aside;
use crate::body::Body;
use crate::chain::body_hooks::{collect, filtered};
use crate::chain::{BodyFlow, BodyMode, RequestContext};
use crate::error::GatewayError;

/// Runs the body hooks in the order of the chain; an answer ends the request.
pub(super) async fn request(
    cx: &mut RequestContext,
) -> Result<Option<Response<Body>>, GatewayError> {
    if cx.exchange.hits.is_empty() {
        return Ok(None);
    }
    let mut aside = Aside::of(cx);
    let (hits, cx) = aside.parts();
    for hit in hits {
        let plugin = hit.plugin.clone();
        match hit.rule.parts.request_body {
            BodyMode::Untouched => {}
            BodyMode::Filter => {
                if let Some(filter) = plugin.request_body_filter(hit, cx)? {
                    cx.head.headers.remove(CONTENT_LENGTH);
                    cx.body = filtered(std::mem::take(&mut cx.body), filter);
                }
            }
            BodyMode::Whole { limit } => {
                let bytes = whole(cx, limit).await?;
                match plugin.request_body(hit, cx, bytes).get().await? {
                    BodyFlow::Continue(bytes) => {
                        set_length(cx, bytes.len());
                        cx.body = Body::from(bytes);
                    }
                    BodyFlow::Respond(response) => return Ok(Some(response)),
                }
            }
        }
    }
    Ok(None)
}

async fn whole(cx: &mut RequestContext, limit: u64) -> Result<bytes::Bytes, GatewayError> {
    let collected = collect(std::mem::take(&mut cx.body), limit).await;
    collected.map_err(|error| GatewayError::of_request_body(&error))
}

fn set_length(cx: &mut RequestContext, length: usize) {
    cx.head.headers.remove(http::header::TRANSFER_ENCODING);
    if length > 0 || cx.head.headers.contains_key(CONTENT_LENGTH) {
        cx.head.headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
}
