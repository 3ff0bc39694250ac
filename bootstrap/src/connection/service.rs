//! The stack of one connection, as the server calls it.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use longmen_core::body::Body;
use longmen_core::chain::{Connection, Inbound};
use tower::Service;

use super::answer::Answer;
use super::watch::{InWork, Watch};

/// A stack behind a connection.
#[derive(Debug)]
pub(super) struct ConnectionService<S> {
    /// Locked for the moment of a call only; requests of one connection come one after the other, or
    /// with HTTP/2 from one task.
    pub(super) stack: Arc<Mutex<S>>,
    pub(super) connection: Arc<Connection>,
    pub(super) watch: Arc<Watch>,
}

impl<S> hyper::service::Service<Request<Incoming>> for ConnectionService<S>
where
    S: Service<Request<Inbound>, Response = Response<Body>, Error = Infallible>,
    S::Future: Future<Output = Result<Response<Body>, Infallible>>,
{
    type Response = Response<Answer>;
    type Error = Infallible;
    type Future = Answering<S::Future>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let in_work = self.watch.request();
        let sequential = request.version() <= Version::HTTP_11;
        let request = request.map(|incoming| {
            Inbound::new(Body::from(incoming), Arc::clone(&self.connection), Instant::now())
        });
        let inner = self.stack.lock().unwrap_or_else(PoisonError::into_inner).call(request);
        Answering { inner, in_work: Some(in_work), sequential }
    }
}

pin_project_lite::pin_project! {
    /// An answer that says `Connection: close` once the gateway stops, or where it is the last that
    /// the connection may have.
    #[derive(Debug)]
    pub(super) struct Answering<F> {
        #[pin]
        inner: F,
        in_work: Option<InWork>,
        sequential: bool,
    }
}

impl<F: Future<Output = Result<Response<Body>, Infallible>>> Future for Answering<F> {
    type Output = Result<Response<Answer>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut response = ready!(this.inner.poll(cx))?;
        let in_work = this.in_work.take();
        let is_last = *this.sequential && in_work.as_ref().is_some_and(InWork::is_last);
        if is_last && response.status() != StatusCode::SWITCHING_PROTOCOLS {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let sequential = *this.sequential;
        Poll::Ready(Ok(response.map(|body| Answer::new(body, sequential, in_work))))
    }
}
