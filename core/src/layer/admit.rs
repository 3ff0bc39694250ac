//! The service for everything that decides about a request by its head alone.

use std::task::{Context, Poll};

use futures_util::future::{Either, Ready, ready};
use http::{Request, Response};
use tower::{Layer, Service};

use crate::body::Body;
use crate::chain::{Inbound, answer_early, refuse_early};
use crate::error::GatewayError;

/// What an admission decided.
#[derive(Debug)]
pub enum Admitted {
    /// Go on.
    Pass,
    /// Answer with this.
    Answer(Response<Body>),
    /// Refuse.
    Refuse(GatewayError),
}

/// Decides about a request by its head.
pub trait Admission: Clone {
    /// Lets the request pass, answers or refuses it. May put something into the request.
    fn admit(&self, request: &mut Request<Inbound>) -> Admitted;
}

/// Puts an admission before a service.
#[derive(Debug, Clone)]
pub struct AdmitLayer<A>(A);

impl<A> AdmitLayer<A> {
    /// A layer with this admission.
    #[must_use]
    pub const fn new(admission: A) -> Self {
        Self(admission)
    }
}

impl<A: Clone, S> Layer<S> for AdmitLayer<A> {
    type Service = Admit<A, S>;

    fn layer(&self, inner: S) -> Self::Service {
        Admit { admission: self.0.clone(), inner }
    }
}

/// A service behind an admission.
#[derive(Debug, Clone)]
pub struct Admit<A, S> {
    admission: A,
    inner: S,
}

impl<A, S> Service<Request<Inbound>> for Admit<A, S>
where
    A: Admission,
    S: Service<Request<Inbound>, Response = Response<Body>, Error = GatewayError>,
{
    type Response = Response<Body>;
    type Error = GatewayError;
    type Future = Either<S::Future, Ready<Result<Response<Body>, GatewayError>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), GatewayError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Inbound>) -> Self::Future {
        match self.admission.admit(&mut request) {
            Admitted::Pass => Either::Left(self.inner.call(request)),
            Admitted::Answer(response) => Either::Right(ready(Ok(answer_early(request, response)))),
            Admitted::Refuse(error) => Either::Right(ready(Err(refuse_early(request, error)))),
        }
    }
}
