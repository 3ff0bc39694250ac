//! The two sides of a case.

pub(crate) mod origin;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use longmen_core::body::{Body, BodyError};
use longmen_core::error::GatewayError;
use longmen_core::model::Upstream;
use longmen_core::upstream::{
    ClientFactory, ClientOptions, ConnectionStats, Endpoint, EndpointRegistry, LookUp, SendFailure,
    UpstreamClient,
};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// Runs each case once for each strategy.
macro_rules! conformance {
    ($($case:ident),* $(,)?) => {
        mod hyper {
            $(#[tokio::test]
            async fn $case() {
                super::$case($crate::support::Strategy::Hyper).await;
            })*
        }

        mod reqwest {
            $(#[tokio::test]
            async fn $case() {
                super::$case($crate::support::Strategy::Reqwest).await;
            })*
        }
    };
}

/// Which client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strategy {
    Hyper,
    Reqwest,
}

/// Longer than anything takes, on any machine.
const LIMIT: Duration = Duration::from_secs(20);

/// Waits for something that is sure to happen.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(LIMIT, future).await.expect("not done within the limit")
}

/// Waits until something is true that no event tells of.
pub(crate) async fn until(what: &str, mut is_true: impl FnMut() -> bool) {
    let waiting = async {
        while !is_true() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    assert!(tokio::time::timeout(LIMIT, waiting).await.is_ok(), "never: {what}");
}

/// A client of one strategy, as one worker has it, and upstreams for it.
pub(crate) struct Rig {
    pub(crate) strategy: Strategy,
    pub(crate) client: Arc<dyn UpstreamClient>,
    pub(crate) factory: ClientFactory,
    registry: EndpointRegistry,
}

impl Rig {
    pub(crate) fn new(strategy: Strategy) -> Self {
        Self::with(strategy, ClientOptions::default())
    }

    pub(crate) fn with(strategy: Strategy, options: ClientOptions) -> Self {
        Self::of(strategy, ClientFactory::new(options, &Handle::current()).unwrap())
    }

    pub(crate) fn with_names(
        strategy: Strategy,
        options: ClientOptions,
        names: Arc<dyn LookUp>,
    ) -> Self {
        let factory = ClientFactory::with_look_up(options, &Handle::current(), names);
        Self::of(strategy, factory.unwrap())
    }

    fn of(strategy: Strategy, factory: ClientFactory) -> Self {
        let client = worker(strategy, &factory);
        Self { strategy, client, factory, registry: EndpointRegistry::default() }
    }

    /// The client of another worker of the same gateway.
    pub(crate) fn another_worker(&self) -> Arc<dyn UpstreamClient> {
        worker(self.strategy, &self.factory)
    }

    pub(crate) fn endpoint(&self, url: &str) -> Arc<Endpoint> {
        let upstream = Upstream { url: url.to_owned(), ..Upstream::default() };
        self.registry.endpoint("selector", &upstream, &Arc::default()).unwrap()
    }

    pub(crate) async fn send(
        &self,
        endpoint: &Arc<Endpoint>,
        request: Request<Body>,
    ) -> Result<Response<Body>, SendFailure> {
        within(self.client.send(endpoint, request)).await
    }

    /// The counters of the only host there is.
    pub(crate) fn stats(&self) -> ConnectionStats {
        let mut all = self.factory.stats();
        assert_eq!(all.len(), 1, "one host");
        all.remove(0)
    }

    /// Waits until no connection (with reqwest: no request) is in use.
    pub(crate) async fn until_unused(&self) {
        until("nothing is in use", || self.factory.stats().iter().all(|host| host.in_use == 0))
            .await;
    }

    pub(crate) fn is_hyper(&self) -> bool {
        self.strategy == Strategy::Hyper
    }
}

fn worker(strategy: Strategy, factory: &ClientFactory) -> Arc<dyn UpstreamClient> {
    match strategy {
        Strategy::Hyper => Arc::new(factory.hyper(&Handle::current())),
        Strategy::Reqwest => Arc::new(factory.reqwest(&Handle::current())),
    }
}

/// A request as the chain makes them; with an `Accept`, so that reqwest is really used.
pub(crate) fn request(endpoint: &Endpoint, method: &str, path: &str, body: Body) -> Request<Body> {
    Request::builder()
        .method(Method::from_bytes(method.as_bytes()).unwrap())
        .uri(path)
        .header("host", endpoint.host.clone())
        .header("accept", "*/*")
        .body(body)
        .unwrap()
}

pub(crate) fn get(endpoint: &Endpoint, path: &str) -> Request<Body> {
    request(endpoint, "GET", path, Body::empty())
}

/// A POST with a body whose length is told.
pub(crate) fn post(endpoint: &Endpoint, path: &str, body: impl Into<Bytes>) -> Request<Body> {
    request(endpoint, "POST", path, Body::from(body.into()))
}

/// The whole body of an answer.
pub(crate) async fn read(response: Response<Body>) -> Result<Bytes, BodyError> {
    Ok(within(response.into_body().collect()).await?.to_bytes())
}

/// Reads the whole body as text.
pub(crate) async fn text(response: Response<Body>) -> String {
    String::from_utf8(read(response).await.unwrap().to_vec()).unwrap()
}

pub(crate) fn error(result: Result<Response<Body>, SendFailure>) -> GatewayError {
    match result {
        Ok(response) => panic!("expected a failure, got {}", response.status()),
        Err(failure) => failure.error,
    }
}

/// A body whose frames the test sends, one ahead of what is read.
pub(crate) fn streamed() -> (mpsc::Sender<Result<Frame<Bytes>, BodyError>>, Body) {
    let (send, receive) = mpsc::channel(1);
    (send, Body::boxed(StreamBody::new(Frames(receive))))
}

struct Frames(mpsc::Receiver<Result<Frame<Bytes>, BodyError>>);

impl futures_util::Stream for Frames {
    type Item = Result<Frame<Bytes>, BodyError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx)
    }
}

/// Bytes that are not the same everywhere.
pub(crate) fn pattern(length: usize) -> Bytes {
    (0..length).map(|i| u8::try_from(i * 7 % 251).unwrap()).collect::<Vec<_>>().into()
}
