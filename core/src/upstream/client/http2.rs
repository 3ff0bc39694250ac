//! HTTP/2 connections to upstreams: one for many requests.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, Connection, SendRequest};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::runtime::Handle;

use super::conn::RequestBody;
use super::io::UpstreamIo;
use crate::body::{Body, BodyError};

/// Streams on one connection; past that another one is opened.
const MAX_STREAMS: usize = 100;
/// What an upstream may send ahead of its client, on one stream and on the connection.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 2 << 20;
/// A connection with requests under way is asked whether it lives.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
struct Shared {
    active: AtomicUsize,
    /// What the upstream lets us have at once.
    allowed: AtomicUsize,
    /// When the last stream ended.
    since: Mutex<Instant>,
}

/// A connection in the pool. Dropped, it ends once its streams have.
#[derive(Debug)]
pub(super) struct Http2 {
    sender: SendRequest<RequestBody>,
    shared: Arc<Shared>,
    pub(super) born: Instant,
}

/// A place on a connection, for one request until its answer has ended.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) sender: SendRequest<RequestBody>,
    shared: Arc<Shared>,
}

impl Http2 {
    /// Speaks HTTP/2 on a connection; its tasks run on `runtime`.
    pub(super) async fn open(
        io: UpstreamIo,
        runtime: &Handle,
        max_head: usize,
    ) -> hyper::Result<Self> {
        let (sender, connection) = Builder::new(Spawn(runtime.clone()))
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .max_header_list_size(u32::try_from(max_head).unwrap_or(u32::MAX))
            .handshake(TokioIo::new(io))
            .await?;
        let shared = Arc::new(Shared {
            active: AtomicUsize::new(0),
            allowed: AtomicUsize::new(connection.current_max_send_streams()),
            since: Mutex::new(Instant::now()),
        });
        runtime.spawn(Drive { connection, shared: Arc::clone(&shared) });
        Ok(Self { sender, shared, born: Instant::now() })
    }

    /// Whether it takes further requests: not after the upstream said goodbye.
    pub(super) fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Requests under way.
    pub(super) fn active(&self) -> usize {
        self.shared.active.load(Ordering::Relaxed)
    }

    /// Whether another request need not wait in it.
    pub(super) fn has_room(&self) -> bool {
        self.active() < MAX_STREAMS.min(self.shared.allowed.load(Ordering::Relaxed).max(1))
    }

    /// Whether it is to be closed: unused too long, or too old.
    pub(super) fn is_idle(&self, max_idle: Duration, max_life: Option<Duration>) -> bool {
        let since = *self.shared.since.lock().unwrap_or_else(PoisonError::into_inner);
        (self.active() == 0 && since.elapsed() > max_idle)
            || max_life.is_some_and(|life| self.born.elapsed() > life)
    }

    pub(super) fn stream(&self) -> Stream {
        self.shared.active.fetch_add(1, Ordering::Relaxed);
        Stream { sender: self.sender.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        *self.shared.since.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.shared.active.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The body of an answer, with its place on the connection. Dropped before its end, it resets the
/// stream.
pub(super) struct StreamBody {
    incoming: Incoming,
    stream: Option<Stream>,
}

impl StreamBody {
    pub(super) fn wrap(incoming: Incoming, stream: Stream) -> Body {
        if incoming.is_end_stream() {
            return Body::empty();
        }
        Body::boxed(Self { incoming, stream: Some(stream) })
    }
}

impl HttpBody for StreamBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.incoming).poll_frame(cx));
        if !matches!(frame, Some(Ok(_))) {
            this.stream = None;
        }
        Poll::Ready(frame.map(|frame| frame.map_err(BodyError::Transport)))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

/// The task of a connection.
struct Drive {
    connection: Connection<TokioIo<UpstreamIo>, RequestBody, Spawn>,
    shared: Arc<Shared>,
}

impl Future for Drive {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        // Each request sees its own error.
        let polled = Pin::new(&mut this.connection).poll(cx).map(drop);
        let allowed = this.connection.current_max_send_streams();
        this.shared.allowed.store(allowed, Ordering::Relaxed);
        polled
    }
}

/// Spawns on one runtime, whichever thread asks.
#[derive(Clone)]
struct Spawn(Handle);

impl<F> hyper::rt::Executor<F> for Spawn
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, future: F) {
        self.0.spawn(future);
    }
}
