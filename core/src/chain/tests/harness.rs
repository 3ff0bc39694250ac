//! A driver over a scripted upstream, without sockets.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::{Body as _, Frame as BodyFrame};
use http_body_util::BodyExt;
use tokio::sync::mpsc;

use super::plugins::{self, Watch};
use crate::body::{Body, BodyError};
use crate::chain::{Connection, Driver, DriverOptions, Edge, Inbound};
use crate::error::{Fault, GatewayError, Reason, Retry};
use crate::model::{Condition, Plugin, Rule, Selector, Upstream, UpstreamList};
use crate::snapshot::{Position, Publisher, PublisherOptions, SnapshotStore};
use crate::sync::{Event, Frame, Payload};
use crate::upstream::{Endpoint, SendFailure, SendFuture, Tunnel, UpstreamClient};

/// What the scripted upstream does with the next request.
pub(super) enum Answer {
    Response(Response<Body>),
    Refused,
}

/// An upstream that answers 200 `hello` unless told otherwise, and yields once before it does.
#[derive(Default)]
pub(super) struct Scripted {
    seen: Mutex<Vec<(Parts, Bytes)>>,
    answers: Mutex<VecDeque<Answer>>,
}

impl std::fmt::Debug for Scripted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scripted")
    }
}

impl Scripted {
    pub(super) fn answers(&self, answer: Answer) {
        self.answers.lock().unwrap().push_back(answer);
    }

    pub(super) fn heads(&self) -> Vec<Parts> {
        self.seen.lock().unwrap().iter().map(|(head, _)| head.clone()).collect()
    }

    /// Forgets what was sent so far.
    pub(super) fn forget(&self) {
        self.seen.lock().unwrap().clear();
    }

    pub(super) fn bodies(&self) -> Vec<Bytes> {
        self.seen.lock().unwrap().iter().map(|(_, body)| body.clone()).collect()
    }
}

impl UpstreamClient for Scripted {
    fn send<'a>(
        &'a self,
        _endpoint: &'a Arc<Endpoint>,
        request: Request<Body>,
    ) -> SendFuture<'a, Response<Body>> {
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            self.seen.lock().unwrap().push((head, body));
            tokio::task::yield_now().await;
            match self.answers.lock().unwrap().pop_front() {
                None => Ok(Response::new(Body::from("hello"))),
                Some(Answer::Response(response)) => Ok(response),
                Some(Answer::Refused) => Err(SendFailure::from(
                    GatewayError::new(
                        Fault::Upstream,
                        Reason::UpstreamConnect,
                        StatusCode::BAD_GATEWAY,
                        "refused",
                    )
                    .retry_when(Retry::Safe),
                )),
            }
        })
    }

    fn upgrade<'a>(
        &'a self,
        _endpoint: &'a Arc<Endpoint>,
        _request: Request<Body>,
    ) -> SendFuture<'a, Result<Tunnel, Response<Body>>> {
        Box::pin(async { Ok(Err(Response::new(Body::from("no websocket here")))) })
    }

    fn sweep(&self) {}
}

/// A driver with the given plugins matching `/**` but `/unmatched/**`, and a proxy behind them.
pub(super) struct Harness {
    pub(super) driver: Driver,
    pub(super) upstream: Arc<Scripted>,
    pub(super) watch: Watch,
    pub(super) publisher: Publisher,
}

impl Harness {
    pub(super) fn new(plugin: &'static str, handle: &'static str) -> Self {
        Self::with(&[(plugin, handle)])
    }

    pub(super) fn with(plugins: &[(&'static str, &'static str)]) -> Self {
        let watch = Watch::default();
        let store = Arc::new(SnapshotStore::new());
        let registry = plugins::registry(&watch);
        let mut publisher =
            Publisher::new(Arc::clone(&store), registry, PublisherOptions::default());
        let mut frames = Vec::new();
        for (name, handle) in plugins.iter().copied().chain([("proxy", "{}")]) {
            frames.extend(objects(name, handle));
        }
        publisher.apply(&frames, Position::default());
        let upstream = Arc::new(Scripted::default());
        let driver = Driver::new(
            store,
            Arc::clone(&upstream) as Arc<dyn UpstreamClient>,
            DriverOptions::default(),
            tokio::runtime::Handle::current(),
            || 0,
        );
        Self { driver, upstream, watch, publisher }
    }

    pub(super) fn request(method: &str, path: &str, body: Bytes) -> Request<Inbound> {
        let length = body.len();
        let mut request = Self::streaming(method, path, Body::from(body));
        request.headers_mut().insert("content-length", length.into());
        request
    }

    /// A request whose length is not announced.
    pub(super) fn streaming(method: &str, path: &str, body: Body) -> Request<Inbound> {
        let any: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let connection = Arc::new(Connection::new(any, any, Arc::new(Edge::default())));
        let inbound = Inbound::new(body, connection, Instant::now());
        Request::builder().method(method).uri(path).header("host", "h").body(inbound).unwrap()
    }

    pub(super) async fn serve(&self, method: &str, path: &str, body: Bytes) -> Response<Body> {
        let served = self.driver.serve(Self::request(method, path, body));
        tokio::time::timeout(Duration::from_secs(10), served).await.unwrap()
    }

    async fn whole(&self, method: &str, path: &str, body: Bytes) -> (StatusCode, HeaderMap, Bytes) {
        let (head, body) = self.serve(method, path, body).await.into_parts();
        (head.status, head.headers, body.collect().await.unwrap().to_bytes())
    }

    pub(super) async fn get(&self, path: &str) -> (StatusCode, HeaderMap, Bytes) {
        self.whole("GET", path, Bytes::new()).await
    }

    pub(super) async fn post(&self, path: &str, body: Bytes) -> (StatusCode, HeaderMap, Bytes) {
        self.whole("POST", path, body).await
    }
}

/// Plugin, selector, rule and upstream of one name, matching everything but `/unmatched/**`; the
/// proxy matches that too.
fn objects(name: &str, handle: &str) -> Vec<Frame> {
    let upstream = Upstream { url: "127.0.0.1:9".into(), weight: 1, ..Upstream::default() };
    objects_with(name, handle, vec![upstream])
}

/// The same with these upstreams.
pub(super) fn objects_with(name: &str, handle: &str, upstreams: Vec<Upstream>) -> Vec<Frame> {
    let path = |operator: &str, value: &str| Condition {
        param_type: "uri".into(),
        operator: operator.into(),
        param_name: Some("/".into()),
        param_value: Some(value.into()),
    };
    let conditions = match name {
        "proxy" => vec![path("startsWith", "/")],
        "guard" => vec![path("match", "/internal/**")],
        _ => vec![path("startsWith", "/"), path("exclude", "/unmatched/**")],
    };
    let plugin = Plugin { name: name.into(), enabled: true, ..Plugin::default() };
    let selector = Selector {
        id: format!("s-{name}"),
        plugin_name: name.into(),
        selector_type: 1,
        enabled: true,
        condition_list: Some(conditions.clone()),
        ..Selector::default()
    };
    let rule = Rule {
        id: format!("r-{name}"),
        plugin_name: name.into(),
        selector_id: selector.id.clone(),
        enabled: true,
        handle: Some(handle.into()),
        condition_list: Some(conditions),
        ..Rule::default()
    };
    let list = UpstreamList {
        selector_id: selector.id.clone(),
        plugin_name: name.into(),
        upstream_data_list: Some(upstreams),
        ..UpstreamList::default()
    };
    [
        Payload::Plugin(vec![plugin]),
        Payload::Selector(vec![selector]),
        Payload::Rule(vec![rule]),
        Payload::DiscoverUpstream(vec![list]),
    ]
    .map(|payload| Frame { event: Event::Update, payload, mark: None })
    .into()
}

/// An event stream that is fed from outside.
pub(super) fn sse() -> (mpsc::Sender<Bytes>, Response<Body>) {
    struct Events(mpsc::Receiver<Bytes>);
    impl http_body::Body for Events {
        type Data = Bytes;
        type Error = BodyError;
        fn poll_frame(
            mut self: std::pin::Pin<&mut Self>,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<BodyFrame<Bytes>, BodyError>>> {
            self.0.poll_recv(cx).map(|chunk| chunk.map(|chunk| Ok(BodyFrame::data(chunk))))
        }
    }
    let (sender, receiver) = mpsc::channel(1);
    let mut response = Response::new(Body::boxed(Events(receiver)));
    response.headers_mut().insert("content-type", "text/event-stream".parse().unwrap());
    (sender, response)
}

pub(super) async fn next_chunk(body: &mut Body) -> String {
    assert!(!body.is_end_stream());
    let frame = tokio::time::timeout(Duration::from_secs(5), body.frame()).await.unwrap();
    String::from_utf8(frame.unwrap().unwrap().into_data().unwrap().to_vec()).unwrap()
}
