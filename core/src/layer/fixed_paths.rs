//! Paths with an answer of their own: excluded ones and the fallback endpoints.

use std::sync::Arc;

use http::header::CONTENT_LENGTH;
use http::{HeaderValue, Request, Response, StatusCode};

use super::{Admission, Admitted};
use crate::body::Body;
use crate::chain::Inbound;
use crate::error::{ErrorStatus, GatewayError, Reason};

/// Answers excluded paths 200 without a body, and fallback paths by the built-in endpoints. Raw paths
/// are compared, whole. Lists are short and looked through one by one; empty ones cost nothing.
///
/// Source: ShenYu 2.7.1, exclude and fallback filters.
#[derive(Debug, Clone)]
pub struct FixedPaths {
    exclude: Arc<[String]>,
    fallback: Arc<[String]>,
}

impl FixedPaths {
    /// Fixed answers for these paths.
    #[must_use]
    pub fn new(exclude: &[String], fallback: &[String]) -> Self {
        Self { exclude: exclude.into(), fallback: fallback.into() }
    }
}

impl Admission for FixedPaths {
    fn admit(&self, request: &mut Request<Inbound>) -> Admitted {
        let path = request.uri().path();
        if self.exclude.iter().any(|excluded| excluded == path) {
            let mut response = Response::new(Body::empty());
            response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
            return Admitted::Answer(response);
        }
        if self.fallback.iter().any(|fallback| fallback == path) {
            return Admitted::Answer(fallback(path));
        }
        Admitted::Pass
    }
}

fn fallback(path: &str) -> Response<Body> {
    let plugin = match path {
        "/fallback/hystrix" => "HystrixPlugin",
        "/fallback/resilience4j" => "Resilience4JPlugin",
        "/fallback/sentinel" => "SentinelPlugin",
        _ => {
            let text = format!("No static resource {}.", path.trim_start_matches('/'));
            return envelope(StatusCode::NOT_FOUND, 404, text);
        }
    };
    let text = format!("{plugin} fallback success, please check your service status!");
    envelope(StatusCode::OK, 429, text)
}

fn envelope(status: StatusCode, code: i32, text: String) -> Response<Body> {
    GatewayError::envelope(Reason::PluginRefused, status, code, text)
        .to_response(ErrorStatus::Standard)
}
