//! Layers around every call.

use std::time::{Duration, Instant};

use axum::{extract::Request, middleware::Next, response::Response};
use tower_http::cors::{AllowHeaders, AllowMethods, Any, CorsLayer};

/// Any origin may call, with any method and header; pre-flights are answered for half an hour.
pub(crate) fn cors() -> CorsLayer {
    CorsLayer::new()
        .allow_origin(Any)
        .allow_methods(AllowMethods::mirror_request())
        .allow_headers(AllowHeaders::mirror_request())
        .max_age(Duration::from_secs(1800))
}

/// One line per call. The query is left out: the log-in carries its password there.
pub(crate) async fn log(request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let response = next.run(request).await;
    tracing::debug!(
        %method,
        path,
        status = response.status().as_u16(),
        elapsed_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
        "call answered"
    );
    response
}
