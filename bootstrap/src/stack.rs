//! The tower stack: the one place where layers are ordered, outermost first.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use longmen_core::body::Body;
use longmen_core::chain::{Driver, Inbound};
use longmen_core::error::{ErrorStatus, GatewayError};
use longmen_core::layer::{
    AdmitLayer, ErrorResponseLayer, Framing, HeadLimits, InFlightLimit, PanicGuardLayer, PathRules,
};
use tower::{Service, ServiceBuilder};

use crate::management::Endpoints;

/// What the layers are made of.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    pub(crate) error_status: ErrorStatus,
    pub(crate) endpoints: Endpoints,
    pub(crate) in_flight: InFlightLimit,
    pub(crate) limits: HeadLimits,
    pub(crate) driver: Driver,
}

/// Builds the stack of one worker; connections get clones.
///
/// The number of connections is limited where they are accepted.
pub(crate) fn build(
    parts: Parts,
) -> impl Service<
    Request<Inbound>,
    Response = Response<Body>,
    Error = Infallible,
    Future: Future<Output = Result<Response<Body>, Infallible>> + Send + 'static,
> + Clone
+ Send
+ 'static {
    ServiceBuilder::new()
        // A panic anywhere below ends one request and nothing else.
        .layer(PanicGuardLayer)
        // Everything below may fail; here is where failures become answers.
        .layer(ErrorResponseLayer::new(parts.error_status))
        // Nobody reads a head that two readers could read differently.
        .layer(AdmitLayer::new(Framing))
        // Nobody sees a path that is never routed, the endpoints below included.
        .layer(AdmitLayer::new(PathRules))
        // Health and information: answered also when the gateway is at its limits.
        .layer(AdmitLayer::new(parts.endpoints))
        // From here on a request counts, to the end of its answer.
        .layer(AdmitLayer::new(parts.in_flight))
        .layer(AdmitLayer::new(parts.limits))
        // Snapshot, plugins, upstream.
        .service(Chain(parts.driver))
}

/// The plugin chain and the upstream call, as a service.
#[derive(Debug, Clone)]
struct Chain(Driver);

impl Service<Request<Inbound>> for Chain {
    type Response = Response<Body>;
    type Error = GatewayError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, GatewayError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), GatewayError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Inbound>) -> Self::Future {
        let driver = self.0.clone();
        Box::pin(async move { Ok(driver.serve(request).await) })
    }
}
