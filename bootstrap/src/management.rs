//! Health and information, on the public port and on the management address; metrics, on the latter.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use longmen_core::body::Body;
use longmen_core::chain::Inbound;
use longmen_core::condition::canonical;
use longmen_core::layer::{Admission, Admitted};
use longmen_core::lifecycle::Lifecycle;
use longmen_core::snapshot::SnapshotStore;
use longmen_core::telemetry::metrics::{self, Metrics};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// How long a client of the management address may take for its request head.
const HEAD_LIMIT: Duration = Duration::from_secs(10);

/// Connections to the management address at a time.
const MAX_CONNECTIONS: usize = 64;

/// The endpoints of one gateway. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Endpoints(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    store: Arc<SnapshotStore>,
    prefixes: Vec<String>,
    stopping: Arc<AtomicBool>,
    metrics: Option<Metrics>,
    /// Whether the data endpoints answer on the public port too.
    all_public: bool,
}

impl Endpoints {
    /// Endpoints under the given path prefixes; without any, only the management address has them.
    #[must_use]
    pub fn new(
        store: Arc<SnapshotStore>,
        prefixes: Vec<String>,
        stopping: Arc<AtomicBool>,
        metrics: Option<Metrics>,
        all_public: bool,
    ) -> Self {
        Self(Arc::new(Shared { store, prefixes, stopping, metrics, all_public }))
    }

    /// Whether the gateway should be sent requests: it has its configuration and is not stopping.
    #[must_use]
    pub fn ready(&self) -> bool {
        self.0.store.load().ready && !self.0.stopping.load(Ordering::Relaxed)
    }

    /// The answer to a path in its canonical form on the management address; `None` for a path that is
    /// no endpoint.
    #[must_use]
    pub fn answer(&self, method: &Method, path: &str) -> Option<Response<Body>> {
        if let ("/actuator/prometheus" | "/metrics", Some(metrics)) = (path, &self.0.metrics) {
            return Some(if *method == Method::GET || *method == Method::HEAD {
                scrape(metrics)
            } else {
                not_allowed()
            });
        }
        self.answer_public(method, path)
    }

    /// The answer to a path in its canonical form on the public port.
    #[must_use]
    pub fn answer_public(&self, method: &Method, path: &str) -> Option<Response<Body>> {
        let answer = match path {
            "/actuator/health" | "/health_check" => self.health(true),
            "/actuator/health/readiness" => self.health(false),
            "/actuator/health/liveness" => (StatusCode::OK, json!({"status": "UP"})),
            "/actuator/info" => (StatusCode::OK, self.info()),
            _ => return None,
        };
        if *method != Method::GET && *method != Method::HEAD {
            return Some(not_allowed());
        }
        Some(answer_json(answer.0, &answer.1))
    }

    fn health(&self, groups: bool) -> (StatusCode, Value) {
        let ready = self.ready();
        let status = if ready { "UP" } else { "OUT_OF_SERVICE" };
        let code = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        let mut body = json!({"status": status});
        if groups {
            body["groups"] = json!(["liveness", "readiness"]);
        }
        (code, body)
    }

    fn info(&self) -> Value {
        let snapshot = self.0.store.load();
        json!({
            "app": {"name": "longmen-bootstrap", "version": env!("CARGO_PKG_VERSION")},
            "sync": {
                "ready": snapshot.ready,
                "epoch": snapshot.position.epoch,
                "version": snapshot.position.version,
            },
        })
    }
}

impl Admission for Endpoints {
    fn admit(&self, request: &mut Request<Inbound>) -> Admitted {
        let raw = request.uri().path();
        let undone = canonical(raw);
        let path = undone.as_deref().unwrap_or(raw);
        if !self.0.prefixes.iter().any(|prefix| path.starts_with(prefix.as_str())) {
            return Admitted::Pass;
        }
        let answer = if self.0.all_public {
            self.answer(request.method(), path)
        } else {
            self.answer_public(request.method(), path)
        };
        match answer {
            Some(response) => Admitted::Answer(response),
            None => Admitted::Answer(not_found(path)),
        }
    }
}

/// Opens the management address.
///
/// # Errors
/// The address cannot be bound; the error names it.
pub(crate) fn open(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    std::net::TcpListener::bind(address).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot listen on management {address}: {error}"))
    })
}

/// Serves the endpoints on the management address from when `opened` says so; stops with the
/// gateway.
///
/// # Errors
/// The socket cannot be used.
pub(crate) async fn serve(
    listener: std::net::TcpListener,
    opened: CancellationToken,
    endpoints: Endpoints,
    lifecycle: Lifecycle,
) -> io::Result<SocketAddr> {
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    let listener = TcpListener::from_std(listener)?;
    let soft = lifecycle.soft().clone();
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT);
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    lifecycle.spawn(&Handle::current(), "management", async move {
        tokio::select! {
            () = opened.cancelled() => {}
            () = soft.cancelled() => return,
        }
        loop {
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = soft.cancelled() => return,
            };
            let Ok((stream, _)) = accepted else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let (endpoints, soft, server) = (endpoints.clone(), soft.clone(), server.clone());
            tokio::spawn(async move {
                let service = service_fn(|request: Request<Incoming>| {
                    let path = request.uri().path();
                    let answer = endpoints.answer(request.method(), path);
                    let answer = answer.unwrap_or_else(|| not_found(path));
                    async move { Ok::<_, Infallible>(answer) }
                });
                tokio::select! {
                    _ = server.serve_connection(TokioIo::new(stream), service) => {}
                    () = soft.cancelled() => {}
                }
                drop(permit);
            });
        }
    });
    Ok(bound)
}

/// Nothing is served there.
///
/// Source: ShenYu 2.7.1, unknown path under a health prefix.
pub(crate) fn not_found(path: &str) -> Response<Body> {
    let name = path.trim_start_matches('/');
    let text = json!({"code": 404, "message": format!("No static resource {name}.")});
    answer_json(StatusCode::NOT_FOUND, &text)
}

fn not_allowed() -> Response<Body> {
    let text = json!({"code": 405, "message": "Method Not Allowed"});
    answer_json(StatusCode::METHOD_NOT_ALLOWED, &text)
}

fn scrape(metrics: &Metrics) -> Response<Body> {
    let text = metrics.scrape();
    let length = text.len();
    let mut response = Response::new(Body::from(text));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(metrics::CONTENT_TYPE));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    response
}

fn answer_json(status: StatusCode, body: &Value) -> Response<Body> {
    let text = body.to_string();
    let length = text.len();
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    response
}
