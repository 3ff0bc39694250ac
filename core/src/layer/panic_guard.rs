//! A panic in one request ends that request, not the gateway.
//!
//! tower-http has a layer for this; it boxes every response body, which is measurable on this path.
//! The catching itself is the library's.

use std::any::Any;
use std::convert::Infallible;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response, StatusCode};
use tower::{Layer, Service};
use tracing::error;

use crate::body::Body;
use crate::chain::Inbound;
use crate::error::{ErrorStatus, Fault, GatewayError, Reason};
use crate::telemetry::{PAUSE, Throttle};

/// The log is one for the process, and so is this; a handle of its own would cost each request.
static LINES: Throttle = Throttle::new(PAUSE);

/// Answers 500 where the inner service panics.
#[derive(Debug, Clone, Copy, Default)]
pub struct PanicGuardLayer;

impl<S> Layer<S> for PanicGuardLayer {
    type Service = PanicGuard<S>;

    fn layer(&self, inner: S) -> Self::Service {
        PanicGuard { inner }
    }
}

/// A service whose panics are answered.
#[derive(Debug, Clone)]
pub struct PanicGuard<S> {
    inner: S,
}

impl<S> Service<Request<Inbound>> for PanicGuard<S>
where
    S: Service<Request<Inbound>, Response = Response<Body>, Error = Infallible>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Guarded<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Inbound>) -> Self::Future {
        let inner = &mut self.inner;
        match catch_unwind(AssertUnwindSafe(|| inner.call(request))) {
            Ok(future) => Guarded { inner: Some(future) },
            Err(panic) => {
                report(&*panic);
                Guarded { inner: None }
            }
        }
    }
}

pin_project_lite::pin_project! {
    /// The answer of [`PanicGuard`].
    #[derive(Debug)]
    pub struct Guarded<F> {
        #[pin]
        inner: Option<F>,
    }
}

impl<F: Future<Output = Result<Response<Body>, Infallible>>> Future for Guarded<F> {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let Some(inner) = this.inner.as_mut().as_pin_mut() else {
            return Poll::Ready(Ok(answer()));
        };
        match catch_unwind(AssertUnwindSafe(|| inner.poll(cx))) {
            Ok(polled) => polled,
            Err(panic) => {
                report(&*panic);
                this.inner.set(None);
                Poll::Ready(Ok(answer()))
            }
        }
    }
}

fn answer() -> Response<Body> {
    GatewayError::new(
        Fault::Gateway,
        Reason::Panic,
        StatusCode::INTERNAL_SERVER_ERROR,
        "Internal Server Error",
    )
    .to_response(ErrorStatus::Standard)
}

fn report(panic: &(dyn Any + Send)) {
    let Some(left_out) = LINES.pass() else { return };
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no text");
    error!(reason = Reason::Panic.code(), "a request panicked: {text}{left_out}");
}
