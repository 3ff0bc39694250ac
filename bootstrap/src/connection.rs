//! One client connection, from its first byte to its last.

mod answer;
mod io;
mod service;
mod streams;
mod watch;

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use longmen_core::body::Body;
use longmen_core::chain::{Connection, Edge, Inbound};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::CancellationToken;
use tower::Service;
use tracing::debug;

use crate::config::GatewayConfig;
use crate::detect::{self, Protocol};
use io::WatchedIo;
use service::ConnectionService;
use streams::Streams;
use watch::{Late, TimeLimits, Watch};

/// How long an HTTP/2 connection that was told to end may take for it while nothing is in work and
/// nothing of an answer is left to send.
const GOODBYE: Duration = Duration::from_secs(5);

/// What every connection of a gateway shares.
#[derive(Debug)]
pub(crate) struct Settings {
    http1: http1::Builder,
    http2: http2::Builder<Streams>,
    serves_http2: bool,
    limits: TimeLimits,
    /// The request that is the last of a connection.
    last_request: u64,
    /// Set when the gateway stops: answers say so.
    closing: Arc<AtomicBool>,
    /// Set when the gateway stops: HTTP/2 connections are told.
    soft: CancellationToken,
}

impl Settings {
    pub(crate) fn new(
        config: &GatewayConfig,
        closing: Arc<AtomicBool>,
        soft: CancellationToken,
    ) -> Self {
        let mut http1 = http1::Builder::new();
        http1
            .timer(TokioTimer::new())
            // The watch bounds heads; the server's own limit would count idle time as part of one.
            .header_read_timeout(None)
            .half_close(config.netty.socket.allow_half_closure)
            .max_header_size(config.netty.max_initial_line_bytes + config.netty.max_header_bytes);
        let mut http2 =
            http2::Builder::new(Streams { write_stall: config.timeouts.client_write_stall });
        http2
            .timer(TokioTimer::new())
            .max_concurrent_streams(config.limits.max_concurrent_streams)
            .max_header_list_size(u32::try_from(config.netty.max_header_bytes).unwrap_or(u32::MAX))
            .keep_alive_interval(Some(config.timeouts.client_idle))
            // What is written before the ping has this long to be taken.
            .keep_alive_timeout(config.timeouts.client_head.max(config.timeouts.client_write_stall))
            .max_pending_accept_reset_streams(Some(20));
        Self {
            http1,
            http2,
            serves_http2: config.server.http2,
            limits: TimeLimits {
                head: config.timeouts.client_head,
                idle: config.timeouts.client_idle,
                write_stall: config.timeouts.client_write_stall,
                requests: u64::MAX,
            },
            last_request: config.limits.max_requests_per_connection.unwrap_or(u64::MAX),
            closing,
            soft,
        }
    }
}

/// Serves a connection until it ends.
///
/// When the gateway stops, an HTTP/1 connection goes on: each of its answers says `Connection: close`,
/// and one that is idle is kept for a request that may be on its way. Who ends the waiting ends it
/// too.
pub(crate) async fn serve<S>(
    stream: TcpStream,
    peer: SocketAddr,
    service: S,
    edge: Arc<Edge>,
    settings: Arc<Settings>,
) where
    S: Service<Request<Inbound>, Response = Response<Body>, Error = Infallible> + Send + 'static,
    S::Future: Future<Output = Result<Response<Body>, Infallible>> + Send + 'static,
{
    let begun = Instant::now();
    let Ok(local) = stream.local_addr() else { return };
    let detected = detect::detect(stream, settings.limits.head, settings.serves_http2).await;
    let (protocol, stream) = match detected {
        Ok(detected) => detected,
        Err(error) => {
            debug!(%peer, "connection closed before its first request: {error}");
            return;
        }
    };
    let closing = Arc::clone(&settings.closing);
    let sequential = protocol == Protocol::Http1;
    let watch = Arc::new(Watch::new(begun, sequential, closing, settings.last_request));
    let connection = Arc::new(Connection::new(peer, local, edge));
    let service = ConnectionService {
        stack: Arc::new(Mutex::new(service)),
        connection: Arc::clone(&connection),
        watch: Arc::clone(&watch),
    };
    let io = TokioIo::new(WatchedIo { inner: stream, watch: Arc::clone(&watch) });
    let mut timer = pin!(tokio::time::sleep_until(begun + settings.limits.head));
    let ended = match protocol {
        Protocol::Http1 => {
            let serving = settings.http1.serve_connection(io, service).with_upgrades();
            until_late(pin!(serving), &watch, timer.as_mut(), &settings.limits).await
        }
        Protocol::Http2 => {
            let mut connection = pin!(settings.http2.serve_connection(io, service));
            // An HTTP/1 connection is told in its last answer.
            let limits = TimeLimits { requests: settings.last_request, ..settings.limits };
            let ended = tokio::select! {
                ended = until_late(connection.as_mut(), &watch, timer.as_mut(), &limits) => ended,
                () = settings.soft.cancelled() => Err(End::Stops),
            };
            match ended {
                Err(End::Stops | End::Late(Late::Idle | Late::Requests)) => {
                    connection.as_mut().graceful_shutdown();
                    let limits = TimeLimits { idle: GOODBYE, ..settings.limits };
                    timer.as_mut().reset(Instant::now() + GOODBYE);
                    until_late(connection, &watch, timer, &limits).await
                }
                ended => ended,
            }
        }
    };
    if let Err(end) = ended {
        if let (Some(observer), Some(status)) = (&connection.edge.observer, refused(&end)) {
            observer.unreadable(&connection, status);
        }
        debug!(%peer, "connection ended: {end}");
    }
}

/// The status with which the server has refused what it could not read.
fn refused(end: &End) -> Option<StatusCode> {
    let End::Server(error) = end else { return None };
    match (error.is_parse_too_large(), error.is_parse()) {
        (true, _) => Some(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE),
        (false, true) => Some(StatusCode::BAD_REQUEST),
        (false, false) => None,
    }
}

/// Why a connection ended before its client ended it.
#[derive(Debug, thiserror::Error)]
enum End {
    #[error("{0}")]
    Server(#[from] hyper::Error),
    #[error("limit reached: {0:?}")]
    Late(Late),
    #[error("the gateway stops")]
    Stops,
}

/// Drives a connection until it ends or is late.
async fn until_late<C>(
    mut connection: Pin<&mut C>,
    watch: &Watch,
    mut timer: Pin<&mut Sleep>,
    limits: &TimeLimits,
) -> Result<(), End>
where
    C: Future<Output = Result<(), hyper::Error>>,
{
    poll_fn(|cx| {
        if let std::task::Poll::Ready(ended) = connection.as_mut().poll(cx) {
            return std::task::Poll::Ready(ended.map_err(End::Server));
        }
        watch.poll(cx, timer.as_mut(), limits).map(|late| Err(End::Late(late)))
    })
    .await
}
