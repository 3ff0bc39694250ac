//! What operators ask a gateway itself: the data in force (`/actuator/…`), and the local admin API
//! (`/shenyu/…`), which changes it without an admin.
//!
//! Source: ShenYu 2.7.1, local API and data endpoints.

mod data;
mod local;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::Either;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use longmen_core::body::Body;
use longmen_core::chain::{Inbound, Registry, answer_early, collect};
use longmen_core::condition::canonical;
use longmen_core::error::GatewayError;
use serde_json::json;
use sha2::{Digest as _, Sha512};
use tower::{Layer, Service};

use crate::config::{LocalConfig, ManagementConfig};
use crate::sync::Applier;

/// The header with the key of the local API.
const LOCAL_KEY: &str = "localKey";

/// The path of the local API.
const LOCAL: &str = "/shenyu/";

/// The largest body that the local API takes, in bytes.
const MAX_BODY: u64 = 8 * 1024 * 1024;

/// What operators may ask of one gateway. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Operators(Arc<Shared>);

struct Shared {
    applier: Applier,
    /// Names of the plugins of this gateway, each with its place.
    plugins: Vec<(&'static str, i32)>,
    namespace: String,
    local: LocalConfig,
    /// Whether everybody may read on the public port.
    all_public: bool,
}

impl fmt::Debug for Operators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Operators")
    }
}

impl Operators {
    pub(crate) fn new(
        applier: Applier,
        registry: &Registry,
        namespace: &str,
        local: &LocalConfig,
        management: &ManagementConfig,
    ) -> Self {
        let entries = registry.iter().map(|plugin| plugin.entry());
        Self(Arc::new(Shared {
            applier,
            plugins: entries.map(|entry| (entry.name, entry.order)).collect(),
            namespace: namespace.to_owned(),
            local: local.clone(),
            all_public: management.on_public_port,
        }))
    }

    /// The answer to a path of data; `None` for another path.
    pub(crate) async fn data(&self, method: &Method, path: &str) -> Option<Response<Body>> {
        let what = data::What::of(path)?;
        if *method != Method::GET && *method != Method::HEAD {
            let text = json!({"code": 405, "message": "Method Not Allowed"}).to_string();
            return Some(answer(StatusCode::METHOD_NOT_ALLOWED, "application/json", text));
        }
        let (state, _) = self.0.applier.copy_to_show().await;
        let plugins = self.0.plugins.clone();
        // Large, perhaps, and nothing that a runtime should wait for.
        let made = tokio::task::spawn_blocking(move || data::show(what, &state, &plugins)).await;
        let text = made.unwrap_or_default();
        Some(answer(StatusCode::OK, "application/json", text))
    }

    /// Whether a request on the public port is for here.
    fn takes(&self, request: &Request<Inbound>) -> Option<String> {
        let raw = request.uri().path();
        let undone = canonical(raw);
        let path = undone.as_deref().unwrap_or(raw);
        let here = self.0.local.enabled && path.starts_with(LOCAL)
            || data::What::of(path).is_some()
                && (self.0.all_public || self.may(request.headers(), request.body()));
        here.then(|| path.to_owned())
    }

    /// Whether the local key is right, and may be used from there.
    fn may(&self, headers: &HeaderMap, inbound: &Inbound) -> bool {
        let local = &self.0.local;
        let Some(expected) = local.key_hash.as_deref().filter(|_| local.enabled) else {
            return false;
        };
        if local.is_shipped_key && !inbound.connection.peer.ip().to_canonical().is_loopback() {
            return false;
        }
        let Some(key) = headers.get(LOCAL_KEY) else { return false };
        let found: String =
            Sha512::digest(key.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        // Of hashes: how long it takes tells nothing of the key.
        found.eq_ignore_ascii_case(expected)
    }

    async fn serve(self, path: String, request: Request<Inbound>) -> Response<Body> {
        if let Some(answer) = self.data(request.method(), &path).await {
            return answer_early(request, answer);
        }
        if !self.may(request.headers(), request.body()) {
            let text = json!({"code": 403, "message": "The key is not correct."}).to_string();
            return answer_early(request, answer(StatusCode::FORBIDDEN, "application/json", text));
        }
        let (head, mut inbound) = request.into_parts();
        let body = std::mem::replace(&mut inbound.body, Body::empty());
        let said = match collect(body, MAX_BODY).await {
            Err(error) => Err(error.to_string()),
            Ok(body) => {
                let path = path.strip_prefix(LOCAL).unwrap_or_default();
                let query = head.uri.query().unwrap_or_default();
                let call = local::Call { method: &head.method, path, query, body: &body };
                local::call(&self.0.applier, &self.0.namespace, &call).await
            }
        };
        let response = match said {
            Ok(local::Said::Word(word)) => answer(StatusCode::OK, "text/plain;charset=UTF-8", word),
            Ok(local::Said::Json(text)) => answer(StatusCode::OK, "application/json", text),
            Ok(local::Said::Nothing) => crate::management::not_found(&path),
            Err(text) => answer(StatusCode::BAD_REQUEST, "text/plain;charset=UTF-8", text),
        };
        answer_early(Request::from_parts(head, inbound), response)
    }
}

fn answer(status: StatusCode, content_type: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Puts what operators ask before a service.
#[derive(Debug, Clone)]
pub(crate) struct OperatorLayer(pub(crate) Option<Operators>);

impl<S> Layer<S> for OperatorLayer {
    type Service = Operated<S>;

    fn layer(&self, inner: S) -> Operated<S> {
        Operated { operators: self.0.clone(), inner }
    }
}

/// A service behind what operators ask.
#[derive(Debug, Clone)]
pub(crate) struct Operated<S> {
    operators: Option<Operators>,
    inner: S,
}

type Served = Pin<Box<dyn Future<Output = Result<Response<Body>, GatewayError>> + Send>>;

impl<S> Service<Request<Inbound>> for Operated<S>
where
    S: Service<Request<Inbound>, Response = Response<Body>, Error = GatewayError>,
{
    type Response = Response<Body>;
    type Error = GatewayError;
    type Future = Either<S::Future, Served>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), GatewayError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Inbound>) -> Self::Future {
        if let Some(operators) = &self.operators
            && let Some(path) = operators.takes(&request)
        {
            let operators = operators.clone();
            return Either::Right(Box::pin(
                async move { Ok(operators.serve(path, request).await) },
            ));
        }
        Either::Left(self.inner.call(request))
    }
}
