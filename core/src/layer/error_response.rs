//! The one place where errors become answers.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use tower::{Layer, Service};
use tracing::debug;

use crate::body::Body;
use crate::chain::Inbound;
use crate::error::{ErrorStatus, GatewayError, is_grpc};

/// Turns errors of the inner service into answers.
#[derive(Debug, Clone, Copy)]
pub struct ErrorResponseLayer(ErrorStatus);

impl ErrorResponseLayer {
    /// A layer that chooses statuses this way.
    #[must_use]
    pub const fn new(mode: ErrorStatus) -> Self {
        Self(mode)
    }
}

impl<S> Layer<S> for ErrorResponseLayer {
    type Service = ErrorResponse<S>;

    fn layer(&self, inner: S) -> Self::Service {
        ErrorResponse { inner, mode: self.0 }
    }
}

/// A service that always answers.
#[derive(Debug, Clone)]
pub struct ErrorResponse<S> {
    inner: S,
    mode: ErrorStatus,
}

impl<S> Service<Request<Inbound>> for ErrorResponse<S>
where
    S: Service<Request<Inbound>, Response = Response<Body>, Error = GatewayError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ErrorResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // An inner service that cannot be ready says so in its answer, not here.
        self.inner.poll_ready(cx).map(|_| Ok(()))
    }

    fn call(&mut self, request: Request<Inbound>) -> Self::Future {
        let grpc = is_grpc(request.method(), request.headers());
        ErrorResponseFuture { inner: self.inner.call(request), mode: self.mode, grpc }
    }
}

pin_project_lite::pin_project! {
    /// The answer of [`ErrorResponse`].
    #[derive(Debug)]
    pub struct ErrorResponseFuture<F> {
        #[pin]
        inner: F,
        mode: ErrorStatus,
        grpc: bool,
    }
}

impl<F: Future<Output = Result<Response<Body>, GatewayError>>> Future for ErrorResponseFuture<F> {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        Poll::Ready(Ok(match ready!(this.inner.poll(cx)) {
            Ok(response) => response,
            Err(error) => {
                debug!(reason = %error.reason(), "request refused: {error}");
                error.into_response(*this.mode, *this.grpc)
            }
        }))
    }
}
