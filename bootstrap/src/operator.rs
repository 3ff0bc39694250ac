//! What operators ask a gateway itself: the data in force (`/actuator/…`), and the local admin API
//! (`/shenyu/…`), which changes it without an admin, and explains what a request comes to.
//!
//! Source: ShenYu 2.7.1, local API and data endpoints.

mod data;
pub(crate) mod explain;
mod local;

use std::fmt;
use std::future::Future;
use std::net::IpAddr;
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
use longmen_core::explain::Options;
use serde_json::json;
use sha2::{Digest as _, Sha512};
use tower::{Layer, Service};

use crate::config::{GatewayConfig, LocalConfig};
use crate::sync::Applier;

/// The header with the key of the local API.
const LOCAL_KEY: &str = "localKey";

/// The path of the local API.
const LOCAL: &str = "/shenyu/";

const JSON: &str = "application/json";
const TEXT: &str = "text/plain;charset=UTF-8";

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
    /// How requests are served, for those that are explained.
    asking: Arc<Options>,
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
        config: &GatewayConfig,
        asking: Options,
    ) -> Self {
        let entries = registry.iter().map(|plugin| plugin.entry());
        let plugins = entries.map(|entry| (entry.name, entry.order));
        Self(Arc::new(Shared {
            applier,
            plugins: plugins.chain(data::built_in(config.http_client.strategy)).collect(),
            namespace: config.namespace.clone(),
            local: config.local.clone(),
            all_public: config.management.on_public_port,
            asking: Arc::new(asking),
        }))
    }

    /// The answer to a path of data; `None` for another path.
    pub(crate) async fn data(&self, method: &Method, path: &str) -> Option<Response<Body>> {
        let what = data::What::of(path)?;
        if *method != Method::GET && *method != Method::HEAD {
            let text = json!({"code": 405, "message": "Method Not Allowed"}).to_string();
            return Some(answer(StatusCode::METHOD_NOT_ALLOWED, JSON, text));
        }
        let shared = Arc::clone(&self.0);
        let text = self.0.applier.look(move |state| data::show(what, state, &shared.plugins)).await;
        Some(answer(StatusCode::OK, JSON, text))
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
        let key = headers.get(LOCAL_KEY).map(HeaderValue::as_bytes);
        counts(&self.0.local, inbound.connection.peer.ip(), key)
    }

    async fn serve(
        self,
        path: String,
        request: Request<Inbound>,
    ) -> Result<Response<Body>, GatewayError> {
        if let Some(answer) = self.data(request.method(), &path).await {
            return Ok(answer_early(request, answer));
        }
        if !self.may(request.headers(), request.body()) {
            let text = json!({"code": 403, "message": "The key is not correct."}).to_string();
            return Ok(answer_early(request, answer(StatusCode::FORBIDDEN, JSON, text)));
        }
        let (head, mut inbound) = request.into_parts();
        let body = std::mem::replace(&mut inbound.body, Body::empty());
        let called = path.strip_prefix(LOCAL).unwrap_or_default().to_owned();
        // Those about plugins, selectors and rules say so even of bare words.
        let of_words = match called.split('/').next() {
            Some("auth" | "meta") => TEXT,
            _ => JSON,
        };
        let body = collect(body, MAX_BODY);
        let body = body.await.map_err(|error| GatewayError::of_request_body(&error))?;
        if called == explain::CALL && head.method == Method::POST {
            let peer = inbound.connection.peer.ip();
            let answered = explain::answer(&self.0.applier, &self.0.asking, body, peer).await;
            return Ok(answer_early(Request::from_parts(head, inbound), answered));
        }
        let call = local::Call {
            method: head.method.clone(),
            path: called,
            query: head.uri.query().unwrap_or_default().to_owned(),
            body,
        };
        let response = match local::call(&self.0.applier, &self.0.namespace, call).await {
            Ok(local::Said::Word(word)) => answer(StatusCode::OK, of_words, word),
            Ok(local::Said::Json(text)) => answer(StatusCode::OK, JSON, text),
            Ok(local::Said::Nothing) => crate::management::not_found(&path),
            Err(text) => {
                let text = json!({"code": 400, "message": text}).to_string();
                answer(StatusCode::BAD_REQUEST, JSON, text)
            }
        };
        Ok(answer_early(Request::from_parts(head, inbound), response))
    }
}

/// Whether a key counts that comes from this peer.
fn counts(local: &LocalConfig, peer: IpAddr, key: Option<&[u8]>) -> bool {
    let (Some(expected), Some(key)) = (&local.key_hash, key) else { return false };
    if !local.enabled || local.is_shipped_key && !peer.to_canonical().is_loopback() {
        return false;
    }
    let found: String = Sha512::digest(key).iter().map(|byte| format!("{byte:02x}")).collect();
    // Of hashes: how long it takes tells nothing of the key.
    found.eq_ignore_ascii_case(expected)
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
            return Either::Right(Box::pin(operators.serve(path, request)));
        }
        Either::Left(self.inner.call(request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(enabled: bool, key: Option<&str>, is_shipped_key: bool) -> LocalConfig {
        let hash = |key: &str| -> String {
            Sha512::digest(key).iter().map(|byte| format!("{byte:02x}")).collect()
        };
        LocalConfig { enabled, key_hash: key.map(hash), is_shipped_key }
    }

    #[test]
    fn the_shipped_key_counts_from_loopback_peers_only() {
        let shipped = local(true, Some("123456"), true);
        for peer in ["127.0.0.1", "127.8.0.1", "::1", "::ffff:127.0.0.1"] {
            assert!(counts(&shipped, peer.parse().unwrap(), Some(b"123456")), "{peer}");
            assert!(!counts(&shipped, peer.parse().unwrap(), Some(b"1234567")), "{peer}");
        }
        for peer in ["10.0.0.1", "192.168.1.1", "::ffff:10.0.0.1", "2001:db8::1", "0.0.0.0"] {
            assert!(!counts(&shipped, peer.parse().unwrap(), Some(b"123456")), "{peer}");
        }
    }

    #[test]
    fn a_key_of_ones_own_counts_from_anywhere_while_the_api_is_on() {
        let far = "10.0.0.1".parse().unwrap();
        assert!(counts(&local(true, Some("own"), false), far, Some(b"own")));
        assert!(!counts(&local(true, Some("own"), false), far, None));
        assert!(!counts(&local(true, Some("own"), false), far, Some(b"")));
        assert!(!counts(&local(false, Some("own"), false), far, Some(b"own")));
        assert!(!counts(&local(true, None, false), far, Some(b"")));
    }
}
