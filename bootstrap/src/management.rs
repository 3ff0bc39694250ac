//! Health and information, on the public port and on the management address; metrics, on the latter.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
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
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::gateway::wall_clock;
use crate::operator::Operators;
use crate::sync::Applier;

/// How long a client of the management address may take for its request head.
const HEAD_LIMIT: Duration = Duration::from_secs(10);

/// How long a client of the management address may take for its answer once the gateway stops.
const GOODBYE: Duration = Duration::from_secs(2);

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
    /// Knows where what is in force comes from; absent in tests.
    applier: Option<Applier>,
    /// Whether the data endpoints answer on the public port too.
    all_public: bool,
}

impl Endpoints {
    /// Endpoints under the given path prefixes; without any, only the management address has them.
    #[must_use]
    pub(crate) fn new(
        store: Arc<SnapshotStore>,
        prefixes: Vec<String>,
        stopping: Arc<AtomicBool>,
        metrics: Option<Metrics>,
        applier: Option<Applier>,
        all_public: bool,
    ) -> Self {
        Self(Arc::new(Shared { store, prefixes, stopping, metrics, applier, all_public }))
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
        if path == "/v1/sync" {
            return Some(match *method {
                Method::GET | Method::HEAD => answer_json(StatusCode::OK, &self.sync()),
                _ => not_allowed(),
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
            // It serves, by what may be old.
            if let Some((_, age)) = self.snapshot() {
                let details = json!({"source": "snapshot", "ageSeconds": age});
                body["components"] = json!({"sync": {"status": "UP", "details": details}});
            }
        }
        (code, body)
    }

    fn info(&self) -> Value {
        let snapshot = self.0.store.load();
        let mut sync = json!({
            "ready": snapshot.ready,
            "epoch": snapshot.position.epoch,
            "version": snapshot.position.version,
        });
        if let Some((saved_ms, age)) = self.snapshot() {
            sync["snapshotOf"] = saved_ms.into();
            sync["snapshotAgeSeconds"] = age.into();
        }
        json!({
            "app": {"name": "longmen-bootstrap", "version": env!("CARGO_PKG_VERSION")},
            "sync": sync,
        })
    }

    /// When the file was written that is in force, in milliseconds since 1970-01-01 UTC, and its age in
    /// seconds; `None` once an admin has confirmed what is in force.
    fn snapshot(&self) -> Option<(i64, u64)> {
        let saved_ms = self.0.applier.as_ref()?.restored_ms()?;
        Some((saved_ms, age_seconds(saved_ms)))
    }

    /// What is in force, where it comes from, and what of it is not as configured.
    fn sync(&self) -> Value {
        let snapshot = self.0.store.load();
        let applier = self.0.applier.as_ref();
        let local_changes = applier.map_or(0, Applier::local_changes);
        let kept = self.snapshot();
        let source = match kept {
            Some(_) => "snapshot",
            None if !applier.is_some_and(Applier::is_confirmed) => {
                if local_changes > 0 {
                    "local"
                } else {
                    "none"
                }
            }
            None if snapshot.position.epoch.is_empty() => "stockAdmin",
            None => "admin",
        };
        json!({
            "ready": snapshot.ready,
            "source": source,
            "epoch": snapshot.position.epoch,
            "version": snapshot.position.version,
            "snapshot": kept.map(|(saved_ms, age)| json!({"savedMs": saved_ms, "ageSeconds": age})),
            "localChanges": local_changes,
            "faults": applier.map_or(0, Applier::faults),
            "firstFaults": applier.map(Applier::first_faults).unwrap_or_default(),
        })
    }
}

/// The age of a kept configuration; 0 where the clock was set back.
pub(crate) fn age_seconds(saved_ms: i64) -> u64 {
    u64::try_from(wall_clock() - saved_ms).unwrap_or_default() / 1_000
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

/// Serves the endpoints on the management address from when `opened` says so; stops with the gateway:
/// what has connected until then is answered.
///
/// # Errors
/// The socket cannot be used.
pub(crate) async fn serve(
    listener: std::net::TcpListener,
    opened: CancellationToken,
    endpoints: Endpoints,
    operators: Operators,
    lifecycle: Lifecycle,
) -> io::Result<SocketAddr> {
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    let listener = TcpListener::from_std(listener)?;
    let soft = lifecycle.soft().clone();
    lifecycle.spawn(&Handle::current(), "management", async move {
        tokio::select! {
            () = opened.cancelled() => {}
            () = soft.cancelled() => return,
        }
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let connections = TaskTracker::new();
        loop {
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { break };
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = soft.cancelled() => break,
            };
            let Ok((stream, _)) = accepted else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let served = connection(stream, endpoints.clone(), operators.clone(), soft.clone());
            connections.spawn(async move {
                served.await;
                drop(permit);
            });
        }
        // What waits has connected while somebody listened.
        for stream in waiting(listener) {
            connections.spawn(connection(
                stream,
                endpoints.clone(),
                operators.clone(),
                soft.clone(),
            ));
        }
        connections.close();
        connections.wait().await;
    });
    Ok(bound)
}

/// What waits in the queue of a listener, which is closed.
fn waiting(listener: TcpListener) -> Vec<TcpStream> {
    let Ok(listener) = listener.into_std() else { return Vec::new() };
    let accepted = (0..MAX_CONNECTIONS).map_while(|_| listener.accept().ok());
    let streams = accepted.filter_map(|(stream, _)| {
        stream.set_nonblocking(true).ok()?;
        TcpStream::from_std(stream).ok()
    });
    streams.collect()
}

/// One connection to the management address. When the gateway stops, it ends after the answer that is
/// asked for.
async fn connection(
    stream: TcpStream,
    endpoints: Endpoints,
    operators: Operators,
    soft: CancellationToken,
) {
    let service = service_fn(|request: Request<Incoming>| {
        let (endpoints, operators) = (&endpoints, &operators);
        async move {
            let (method, path) = (request.method(), request.uri().path());
            let answer = match endpoints.answer(method, path) {
                Some(answer) => answer,
                None => operators.data(method, path).await.unwrap_or_else(|| not_found(path)),
            };
            Ok::<_, Infallible>(answer)
        }
    });
    let stops = soft.is_cancelled();
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT).keep_alive(!stops);
    let mut serving = pin!(server.serve_connection(TokioIo::new(stream), service));
    // One that was taken late is let ask; an older one that has not asked ends at once.
    if !stops {
        tokio::select! {
            // What is there already is read first.
            biased;
            _ = serving.as_mut() => return,
            () = soft.cancelled() => serving.as_mut().graceful_shutdown(),
        }
    }
    let _ = timeout(GOODBYE, serving).await;
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

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;
    use std::time::Duration;

    use longmen_core::explain::Options;
    use longmen_core::lifecycle::Lifecycle;
    use longmen_core::snapshot::{Publisher, PublisherOptions, SnapshotStore};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio_util::sync::CancellationToken;

    use super::{Endpoints, open, serve};
    use crate::config::GatewayConfig;
    use crate::gateway::wall_clock;
    use crate::operator::Operators;
    use crate::sync::Applier;

    const HEAD: &[u8] = b"GET /actuator/health/liveness HTTP/1.1\r\nHost: h\r\n";

    fn operators() -> Operators {
        let registry = longmen_plugins::registry();
        let store = Arc::new(SnapshotStore::new());
        let publisher = Publisher::new(store, registry.clone(), PublisherOptions::default());
        let config = GatewayConfig::default();
        let asking = Options::new(wall_clock, tokio::runtime::Handle::current());
        Operators::new(Applier::new(publisher, None), &registry, &config, asking)
    }

    async fn rest(stream: &mut TcpStream) -> String {
        let mut rest = String::new();
        let reading = stream.read_to_string(&mut rest);
        tokio::time::timeout(Duration::from_secs(20), reading).await.unwrap().unwrap();
        rest
    }

    #[tokio::test]
    async fn who_has_connected_before_a_stop_is_answered() {
        let endpoints = Endpoints::new(
            Arc::new(SnapshotStore::new()),
            Vec::new(),
            Arc::default(),
            None,
            None,
            false,
        );
        let (lifecycle, opened) = (Lifecycle::new(), CancellationToken::new());
        opened.cancel();
        let listener = open("127.0.0.1:0".parse().unwrap()).unwrap();
        let operators = operators();
        let served = serve(listener, opened, endpoints, operators, lifecycle.clone()).await;
        let address = served.unwrap();
        let mut half = TcpStream::connect(address).await.unwrap();
        half.write_all(HEAD).await.unwrap();
        let mut idle = TcpStream::connect(address).await.unwrap();
        idle.write_all(HEAD).await.unwrap();
        idle.write_all(b"\r\n").await.unwrap();
        let mut some = [0; 9];
        idle.read_exact(&mut some).await.unwrap();
        // The runtime has one thread: what the sockets have is read before this goes on.
        tokio::time::sleep(Duration::from_millis(50)).await;
        // In the queue: nothing else runs from here to the stop.
        let mut waiting = std::net::TcpStream::connect(address).unwrap();
        waiting.write_all(HEAD).unwrap();
        waiting.write_all(b"\r\n").unwrap();
        waiting.set_nonblocking(true).unwrap();
        lifecycle.soft().cancel();
        let mut waiting = TcpStream::from_std(waiting).unwrap();
        let answer = rest(&mut waiting).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "in the queue: {answer:?}");
        half.write_all(b"\r\n").await.unwrap();
        let answer = rest(&mut half).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "half a head: {answer:?}");
        rest(&mut idle).await;
        assert!(lifecycle.stop(Duration::from_secs(20)).await.well());
    }
}
