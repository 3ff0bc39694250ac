//! The tower stack: the one place where layers are ordered, outermost first.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use longmen_core::body::Body;
use longmen_core::chain::{Driver, Inbound};
use longmen_core::error::{ErrorStatus, GatewayError};
use longmen_core::explain::Stage;
use longmen_core::layer::{
    AdmitLayer, CollapseSlashes, CrossLayer, CrossRules, ErrorResponseLayer, FileSize, FixedPaths,
    Framing, HeadLimits, InFlightLimit, PanicGuardLayer, PathRules, Preflight, RequestIdLayer,
};
use tower::{Service, ServiceBuilder};

use crate::management::Endpoints;
use crate::operator::{OperatorLayer, Operators};

/// What the layers are made of.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    pub(crate) error_status: ErrorStatus,
    pub(crate) endpoints: Endpoints,
    pub(crate) operators: Option<Operators>,
    pub(crate) in_flight: InFlightLimit,
    pub(crate) limits: HeadLimits,
    pub(crate) filters: Filters,
    pub(crate) driver: Driver,
}

/// The filters of the reference. Each does nothing while it is switched off.
#[derive(Debug, Clone)]
pub(crate) struct Filters {
    pub(crate) collapse_slashes: CollapseSlashes,
    pub(crate) cross: Option<Arc<CrossRules>>,
    pub(crate) file_size: FileSize,
    pub(crate) fixed_paths: FixedPaths,
}

/// Builds the stack of one worker; connections get clones.
///
/// The number of connections is limited where they are accepted. Access log and metrics have no layer:
/// a layer would hold what only the chain knows (upstream, attempts, reason) twice, and would end with
/// the head. They watch the exchange, which lives to the end of the request, and layers that answer or
/// refuse begin and end one themselves.
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
    let Filters { collapse_slashes, cross, file_size, fixed_paths } = parts.filters;
    ServiceBuilder::new()
        // Every request has its id, refused ones too, and every answer tells it.
        .layer(RequestIdLayer)
        // A panic anywhere below ends one request and nothing else.
        .layer(PanicGuardLayer)
        // Everything below may fail; here is where failures become answers.
        .layer(ErrorResponseLayer::new(parts.error_status))
        // Nobody reads a head that two readers could read differently.
        .layer(AdmitLayer::new(Framing))
        // Nobody sees a path that is never routed, the endpoints below included.
        .layer(AdmitLayer::new(PathRules))
        // The path that everything below sees.
        .layer(AdmitLayer::new(collapse_slashes))
        // The local admin API, and data where the public port has them.
        .layer(OperatorLayer(parts.operators))
        // Health and information: answered also when the gateway is at its limits.
        .layer(AdmitLayer::new(parts.endpoints))
        // Pages of other origins may read whatever comes from below, refusals included.
        .layer(CrossLayer::new(cross, parts.error_status))
        // From here on a request counts, to the end of its answer.
        .layer(AdmitLayer::new(parts.in_flight))
        .layer(AdmitLayer::new(parts.limits))
        .layer(AdmitLayer::new(file_size))
        // Paths with fixed answers never reach a plugin.
        .layer(AdmitLayer::new(fixed_paths))
        // Snapshot, plugins, upstream.
        .service(Chain(parts.driver))
}

/// The same up to the plugins, for who asks what a request would come to: all that answer or refuse
/// by the head alone. Limits of what is under way are left out, and so are the operators' own paths.
pub(crate) fn stages(filters: &Filters, endpoints: &Endpoints, limits: HeadLimits) -> Vec<Stage> {
    vec![
        Stage::new("framing", Framing),
        Stage::new("pathRules", PathRules),
        Stage::new("slashes", filters.collapse_slashes),
        Stage::new("health", endpoints.clone()),
        Stage::new("cross", Preflight(filters.cross.clone())),
        Stage::new("limits", limits),
        Stage::new("file", filters.file_size),
        Stage::new("fixedPaths", filters.fixed_paths.clone()),
    ]
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
