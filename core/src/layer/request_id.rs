//! Gives each request its id.
//!
//! tower-http has layers for this; they believe any id that a client sends, whatever its length, and
//! keep it in the extensions of request and response, an allocation each.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{HeaderValue, Request, Response};
use tower::{Layer, Service};

use crate::body::Body;
use crate::chain::{Inbound, X_REQUEST_ID, request_id};

/// Chooses the id of each request, and puts it on the answer where that is configured. Where nobody
/// wants ids it costs nothing; else one allocation of 32 bytes, none where the client's id is taken.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestIdLayer;

impl<S> Layer<S> for RequestIdLayer {
    type Service = RequestId<S>;

    fn layer(&self, inner: S) -> Self::Service {
        RequestId { inner }
    }
}

/// A service whose requests have ids.
#[derive(Debug, Clone)]
pub struct RequestId<S> {
    inner: S,
}

impl<S> Service<Request<Inbound>> for RequestId<S>
where
    S: Service<Request<Inbound>, Response = Response<Body>>,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = RequestIdFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Inbound>) -> Self::Future {
        let edge = &request.body().connection.edge;
        let mut told = None;
        if edge.wants_ids() {
            let id = request_id(request.headers());
            told = edge.id_response.then(|| id.clone());
            request.body_mut().request_id = Some(id);
        }
        RequestIdFuture { inner: self.inner.call(request), told }
    }
}

pin_project_lite::pin_project! {
    /// The answer of [`RequestId`].
    #[derive(Debug)]
    pub struct RequestIdFuture<F> {
        #[pin]
        inner: F,
        told: Option<HeaderValue>,
    }
}

impl<F, E> Future for RequestIdFuture<F>
where
    F: Future<Output = Result<Response<Body>, E>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut answer = ready!(this.inner.poll(cx));
        if let (Ok(response), Some(id)) = (&mut answer, this.told.take()) {
            // In place of one that the upstream sent: it was told this one, or makes up its own.
            response.headers_mut().insert(&X_REQUEST_ID, id);
        }
        Poll::Ready(answer)
    }
}
