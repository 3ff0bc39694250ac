//! One HTTP/1.1 connection: the end that requests are put in, and the task that drives it.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::client::conn::http1::SendRequest;

use crate::body::{Body, BodyError};

/// What may be done when a kept connection turns out dead under a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Replay {
    /// Nothing.
    Never = 0,
    /// A fresh connection, as long as no byte was written.
    Unwritten = 1,
    /// A fresh connection, and what was written once more, as long as no byte was answered.
    Written = 2,
}

/// What the parts of a connection share: the handle, the driving task, its socket, and the body of
/// the request under way. Made once for each connection.
#[derive(Debug)]
pub(super) struct ConnState {
    pub(super) key: u64,
    pub(super) born: Instant,
    replay: AtomicU8,
    uploading: AtomicBool,
    killed: AtomicBool,
    waker: OnceLock<Waker>,
    /// When the upstream closed it, or it failed.
    ended: OnceLock<Instant>,
}

impl ConnState {
    pub(super) fn new(key: u64) -> Arc<Self> {
        Arc::new(Self {
            key,
            born: Instant::now(),
            replay: AtomicU8::new(Replay::Never as u8),
            uploading: AtomicBool::new(false),
            killed: AtomicBool::new(false),
            waker: OnceLock::new(),
            ended: OnceLock::new(),
        })
    }

    /// Says what may be done for the request that is about to be sent. It reaches the socket with
    /// the request, through a channel that orders it.
    pub(super) fn allow(&self, replay: Replay) {
        self.replay.store(replay as u8, Ordering::Relaxed);
    }

    pub(super) fn replay(&self) -> Replay {
        match self.replay.load(Ordering::Relaxed) {
            1 => Replay::Unwritten,
            2 => Replay::Written,
            _ => Replay::Never,
        }
    }

    /// Ends the connection as it stands, whatever it is doing.
    fn kill(&self) {
        self.killed.store(true, Ordering::SeqCst);
        // Either this sees the waker, or the first poll sees the flag.
        fence(Ordering::SeqCst);
        if let Some(waker) = self.waker.get() {
            waker.wake_by_ref();
        }
    }
}

/// The end of a connection that requests are put in.
///
/// Dropped while a request is under way, it ends the connection; dropped unused, it lets it close
/// in good order.
pub(super) struct Http1 {
    pub(super) sender: SendRequest<RequestBody>,
    pub(super) state: Arc<ConnState>,
    pub(super) since: Instant,
    busy: bool,
}

impl Http1 {
    pub(super) fn new(sender: SendRequest<RequestBody>, state: Arc<ConnState>) -> Self {
        Self { sender, state, since: Instant::now(), busy: false }
    }

    /// How long it was unused when its upstream closed it, if that has happened.
    pub(super) fn closed_after(&self) -> Option<Duration> {
        self.state.ended.get().map(|ended| ended.saturating_duration_since(self.since))
    }

    /// A request is under way from here on.
    pub(super) fn begin(&mut self) {
        self.busy = true;
    }

    /// The answer has ended. Says whether the connection may take another request: not while the
    /// request's body is still being sent, since the upstream answered without it.
    pub(super) fn end(&mut self) -> bool {
        let over = !self.state.uploading.load(Ordering::Acquire);
        self.busy = !over;
        over
    }

    /// The connection now lives on as a tunnel.
    pub(super) fn let_go(&mut self) {
        self.busy = false;
    }
}

impl Drop for Http1 {
    fn drop(&mut self) {
        if self.busy {
            self.state.kill();
        }
    }
}

/// The task of a connection; ends when the connection does, or at once when it is given up.
pub(super) struct Drive<C> {
    connection: C,
    state: Arc<ConnState>,
}

impl<C> Drive<C> {
    pub(super) fn new(connection: C, state: Arc<ConnState>) -> Self {
        Self { connection, state }
    }
}

impl<C: Future + Unpin> Future for Drive<C> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if this.state.waker.get().is_none() {
            // A task is woken by any of its wakers, so the first one is good for its whole life.
            this.state.waker.get_or_init(|| cx.waker().clone());
            fence(Ordering::SeqCst);
        }
        if this.state.killed.load(Ordering::Relaxed) {
            return Poll::Ready(());
        }
        // The caller of each request sees its own error; an unused connection has none to tell.
        let ended = Pin::new(&mut this.connection).poll(cx).map(drop);
        if ended.is_ready() {
            this.state.ended.get_or_init(Instant::now);
        }
        ended
    }
}

/// The body of a request, told from [`Body`] so that its end is noticed: a connection whose upload
/// is not over takes no other request.
pub(super) struct RequestBody {
    inner: Body,
    upload: Option<Arc<ConnState>>,
}

impl RequestBody {
    pub(super) fn new(inner: Body) -> Self {
        Self { inner, upload: None }
    }

    /// Ties a body with bytes to the connection that sends it.
    pub(super) fn watch(&mut self, state: &Arc<ConnState>) {
        if !self.inner.is_end_stream() {
            state.uploading.store(true, Ordering::Release);
            self.upload = Some(Arc::clone(state));
        }
    }

    pub(super) fn into_inner(mut self) -> Body {
        std::mem::take(&mut self.inner)
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        // hyper drops a body as soon as its last byte is written into the buffer, before it is
        // flushed: always before the upstream can have answered to the whole of it.
        if let Some(state) = &self.upload {
            state.uploading.store(false, Ordering::Release);
        }
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Pin::new(&mut self.get_mut().inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
