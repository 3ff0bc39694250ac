//! One client connection, from its first byte to its last.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::header::{CONNECTION, HeaderValue};
use http::{Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use longmen_core::body::Body;
use longmen_core::chain::{Connection, Edge, Inbound};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tower::Service;
use tracing::debug;

use crate::config::GatewayConfig;
use crate::detect::{self, Protocol};

/// How long a kept connection may stay unused once the gateway stops: a request that is on its way
/// already is still served.
const LINGER: Duration = Duration::from_millis(500);

/// What every connection of a worker shares.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) http1: http1::Builder,
    pub(crate) http2: http2::Builder<TokioExecutor>,
    pub(crate) first_bytes: Duration,
    pub(crate) no_delay: bool,
    /// Set when the gateway stops: answers say so.
    pub(crate) closing: Arc<AtomicBool>,
}

impl Settings {
    pub(crate) fn new(config: &GatewayConfig, closing: Arc<AtomicBool>) -> Self {
        let mut http1 = http1::Builder::new();
        http1
            .timer(TokioTimer::new())
            .header_read_timeout(config.timeouts.client_head)
            .max_header_size(config.netty.max_initial_line_bytes + config.netty.max_header_bytes);
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        http2
            .timer(TokioTimer::new())
            .max_concurrent_streams(config.limits.max_concurrent_streams)
            .max_header_list_size(u32::try_from(config.netty.max_header_bytes).unwrap_or(u32::MAX))
            .keep_alive_interval(Some(config.timeouts.client_idle))
            .max_pending_accept_reset_streams(Some(20));
        Self {
            http1,
            http2,
            first_bytes: config.timeouts.client_head,
            no_delay: config.netty.socket.no_delay,
            closing,
        }
    }
}

/// Serves a connection until it ends, or until the gateway stops and it is done.
pub(crate) async fn serve<S>(
    stream: TcpStream,
    peer: SocketAddr,
    service: S,
    edge: Arc<Edge>,
    settings: Arc<Settings>,
    soft: CancellationToken,
) where
    S: Service<Request<Inbound>, Response = Response<Body>, Error = Infallible> + Send + 'static,
    S::Future: Future<Output = Result<Response<Body>, Infallible>> + Send + 'static,
{
    let _ = stream.set_nodelay(settings.no_delay);
    let Ok(local) = stream.local_addr() else { return };
    let (protocol, stream) = tokio::select! {
        detected = detect::detect(stream, settings.first_bytes) => match detected {
            Ok(detected) => detected,
            Err(error) => {
                debug!(%peer, "connection closed before its first request: {error}");
                return;
            }
        },
        () = soft.cancelled() => return,
    };
    let connection = Arc::new(Connection::new(peer, local, edge));
    let service = ConnectionService {
        stack: Arc::new(Mutex::new(service)),
        connection: Arc::clone(&connection),
        closing: Arc::clone(&settings.closing),
    };
    let io = TokioIo::new(stream);
    let ended = match protocol {
        Protocol::Http1 => {
            let serving = settings.http1.serve_connection(io, service).with_upgrades();
            let mut serving = pin!(serving);
            tokio::select! {
                ended = serving.as_mut() => ended,
                () = stopped(&soft) => {
                    serving.as_mut().graceful_shutdown();
                    serving.await
                }
            }
        }
        Protocol::Http2 => {
            let mut connection = pin!(settings.http2.serve_connection(io, service));
            tokio::select! {
                ended = connection.as_mut() => ended,
                () = soft.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            }
        }
    };
    if let Err(error) = ended {
        if let (Some(observer), Some(status)) = (&connection.edge.observer, refused(&error)) {
            observer.unreadable(&connection, status);
        }
        debug!(%peer, "connection ended: {error}");
    }
}

/// The status with which the server has refused what it could not read.
fn refused(error: &hyper::Error) -> Option<StatusCode> {
    match (error.is_parse_too_large(), error.is_parse()) {
        (true, _) => Some(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE),
        (false, true) => Some(StatusCode::BAD_REQUEST),
        (false, false) => None,
    }
}

async fn stopped(soft: &CancellationToken) {
    soft.cancelled().await;
    tokio::time::sleep(LINGER).await;
}

/// The stack of one connection, as the server calls it.
#[derive(Debug)]
struct ConnectionService<S> {
    /// Locked for the moment of a call only; requests of one connection come one after the other, or
    /// with HTTP/2 from one task.
    stack: Arc<Mutex<S>>,
    connection: Arc<Connection>,
    closing: Arc<AtomicBool>,
}

impl<S> hyper::service::Service<Request<Incoming>> for ConnectionService<S>
where
    S: Service<Request<Inbound>, Response = Response<Body>, Error = Infallible>,
    S::Future: Future<Output = Result<Response<Body>, Infallible>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Closing<S::Future>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let version = request.version();
        let request = request.map(|incoming| {
            Inbound::new(Body::from(incoming), Arc::clone(&self.connection), Instant::now())
        });
        let inner = self.stack.lock().unwrap_or_else(PoisonError::into_inner).call(request);
        let says_close = version <= Version::HTTP_11 && self.closing.load(Ordering::Relaxed);
        Closing { inner, says_close }
    }
}

pin_project_lite::pin_project! {
    /// An answer that says `Connection: close` once the gateway stops.
    #[derive(Debug)]
    struct Closing<F> {
        #[pin]
        inner: F,
        says_close: bool,
    }
}

impl<F: Future<Output = Result<Response<Body>, Infallible>>> Future for Closing<F> {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(
        self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Self::Output> {
        let this = self.project();
        let says_close = *this.says_close;
        this.inner.poll(cx).map(|answer| {
            answer.map(|mut response| {
                if says_close && response.status() != http::StatusCode::SWITCHING_PROTOCOLS {
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                response
            })
        })
    }
}
