//! Requests of other origins (CORS).
//!
//! tower-http has a CORS layer. It differs from the reference in what clients see: it answers only
//! true preflights, and lets `OPTIONS` of origins that are not allowed pass; it adds its headers to
//! those of the upstream; it does not know the request's own origin; it adds `Vary`.

mod rules;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::future::Either;
use http::header::{CONTENT_LENGTH, ORIGIN};
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use tower::{Layer, Service};

pub use rules::{CrossFault, CrossOptions, CrossRules};

use super::{Admission, Admitted};
use crate::body::Body;
use crate::chain::{Inbound, answer_early};
use crate::error::{ErrorStatus, GatewayError, is_grpc};

/// Answers `OPTIONS` of other origins, and puts the headers on the answers to their other requests.
/// Without rules, and for requests without an `Origin` of another one, it does nothing.
///
/// Source: executed on ShenYu 2.7.1.
#[derive(Debug, Clone)]
pub struct CrossLayer {
    rules: Option<Arc<CrossRules>>,
    mode: ErrorStatus,
}

impl CrossLayer {
    /// A layer with these rules; `mode` is how refusals further in become answers.
    #[must_use]
    pub const fn new(rules: Option<Arc<CrossRules>>, mode: ErrorStatus) -> Self {
        Self { rules, mode }
    }
}

impl<S> Layer<S> for CrossLayer {
    type Service = Cross<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Cross { inner, rules: self.rules.clone(), mode: self.mode }
    }
}

/// A service that knows about other origins.
#[derive(Debug, Clone)]
pub struct Cross<S> {
    inner: S,
    rules: Option<Arc<CrossRules>>,
    mode: ErrorStatus,
}

/// What a request from elsewhere is about.
enum Foreign {
    No,
    /// Its origin, if it is allowed.
    Yes(Option<HeaderValue>),
}

impl Foreign {
    fn of(rules: Option<&CrossRules>, request: &Request<Inbound>) -> Self {
        let (Some(rules), Some(origin)) = (rules, request.headers().get(ORIGIN)) else {
            return Self::No;
        };
        if rules::is_own(origin, request) {
            return Self::No;
        }
        Self::Yes(rules.allows(origin, request).then(|| origin.clone()))
    }
}

/// The part of [`CrossLayer`] that answers requests, for who only asks what would be answered.
#[derive(Debug, Clone)]
pub struct Preflight(pub Option<Arc<CrossRules>>);

impl Admission for Preflight {
    fn admit(&self, request: &mut Request<Inbound>) -> Admitted {
        match Foreign::of(self.0.as_deref(), request) {
            Foreign::Yes(allowed) if *request.method() == Method::OPTIONS => {
                Admitted::Answer(preflight(self.0.as_deref().zip(allowed)))
            }
            Foreign::No | Foreign::Yes(_) => Admitted::Pass,
        }
    }
}

impl<S> Service<Request<Inbound>> for Cross<S>
where
    S: Service<Request<Inbound>, Response = Response<Body>, Error = GatewayError>,
{
    type Response = Response<Body>;
    type Error = GatewayError;
    type Future =
        Either<CrossFuture<S::Future>, std::future::Ready<Result<Response<Body>, GatewayError>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), GatewayError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Inbound>) -> Self::Future {
        let allowed = match Foreign::of(self.rules.as_deref(), &request) {
            Foreign::No => None,
            Foreign::Yes(allowed) if *request.method() == Method::OPTIONS => {
                let answer = preflight(self.rules.as_deref().zip(allowed));
                return Either::Right(std::future::ready(Ok(answer_early(request, answer))));
            }
            Foreign::Yes(allowed) => self.rules.clone().zip(allowed),
        };
        let grpc = is_grpc(request.method(), request.headers());
        let inner = self.inner.call(request);
        Either::Left(CrossFuture { inner, allowed, mode: self.mode, grpc })
    }
}

/// 200 without a body, whether the origin is allowed or not; the headers only if it is.
fn preflight(allowed: Option<(&CrossRules, HeaderValue)>) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    if let Some((rules, origin)) = allowed {
        *response.headers_mut() = rules.headers(origin);
    }
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    response
}

pin_project_lite::pin_project! {
    /// The answer of [`Cross`].
    #[derive(Debug)]
    pub struct CrossFuture<F> {
        #[pin]
        inner: F,
        allowed: Option<(Arc<CrossRules>, HeaderValue)>,
        mode: ErrorStatus,
        grpc: bool,
    }
}

impl<F: Future<Output = Result<Response<Body>, GatewayError>>> Future for CrossFuture<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = ready!(this.inner.poll(cx));
        let Some((rules, origin)) = this.allowed.take() else { return Poll::Ready(answer) };
        // A page may read refusals too.
        let mut response =
            answer.unwrap_or_else(|error| error.into_response(*this.mode, *this.grpc));
        put_in_front(&rules, origin, response.headers_mut());
        Poll::Ready(Ok(response))
    }
}

/// Puts headers before those of the answer; of names that both have, the answer's stay.
fn put_in_front(rules: &CrossRules, origin: HeaderValue, headers: &mut HeaderMap) {
    let mut all = HeaderMap::with_capacity(headers.len() + 8);
    for (name, value) in rules.headers(origin) {
        if let Some(name) = name.filter(|name| !headers.contains_key(name)) {
            all.insert(name, value);
        }
    }
    let mut last = None;
    for (name, value) in std::mem::take(headers) {
        // A repeated name comes without its name.
        last = name.or(last);
        if let Some(name) = &last {
            all.append(name.clone(), value);
        }
    }
    *headers = all;
}

#[cfg(test)]
mod tests;
