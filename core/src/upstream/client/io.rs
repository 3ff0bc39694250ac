//! The socket of a kept connection, which survives the upstream's having closed it.
//!
//! An upstream may close a kept connection at the very moment a request is written to it. hyper
//! has taken the request apart by then, and a copy of each request would cost every request. So
//! the socket keeps the bytes it writes, in one buffer for its whole life, until the first byte of
//! an answer. When the connection ends before that, it connects once more, writes the same bytes,
//! and nobody above notices. Whether that is allowed is decided for each request
//! ([`Replay`]): only for idempotent ones, and up to a limit of bytes.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::conn::{ConnState, Replay};
use super::connect::{Alpn, ConnectError, Connector, Transport};
use super::pool::Permit;

/// A buffer larger than this is not kept for the next request.
const KEPT_CAPACITY: usize = 16 << 10;
/// Room for a head, beside what is allowed for a body.
const HEAD_ROOM: usize = 16 << 10;

type Connecting = Pin<Box<dyn Future<Output = Result<Transport, ConnectError>> + Send>>;

/// Calls the stream, of whichever kind.
macro_rules! on {
    ($transport:expr, $call:ident($($argument:expr),*)) => {
        match &mut $transport {
            Transport::Plain(stream) => Pin::new(stream).$call($($argument),*),
            Transport::Tls(stream) => Pin::new(&mut **stream).$call($($argument),*),
        }
    };
}

enum Recovery {
    Connecting(Connecting),
    /// How many of the kept bytes are written.
    Writing(usize),
}

/// A socket, plain or TLS, with its place in the pool.
pub(super) struct UpstreamIo {
    transport: Transport,
    state: Arc<ConnState>,
    permit: Permit,
    connector: Arc<Connector>,
    /// What was written of the request under way.
    written: Vec<u8>,
    recovery: Option<Recovery>,
    closing: Option<Pin<Box<Sleep>>>,
}

impl UpstreamIo {
    pub(super) fn new(
        transport: Transport,
        state: Arc<ConnState>,
        permit: Permit,
        connector: Arc<Connector>,
    ) -> Self {
        permit.opened();
        Self {
            transport,
            state,
            permit,
            connector,
            written: Vec::new(),
            recovery: None,
            closing: None,
        }
    }

    /// The upstream answers: what was written is not needed any more.
    fn answered(&mut self) {
        self.state.allow(Replay::Never);
        self.forget();
    }

    fn forget(&mut self) {
        if self.written.capacity() > KEPT_CAPACITY {
            self.written = Vec::new();
        } else {
            self.written.clear();
        }
    }

    fn keep<'a>(&mut self, slices: impl Iterator<Item = &'a [u8]>, mut n: usize) {
        match self.state.replay() {
            Replay::Never => {}
            Replay::Unwritten => self.state.allow(Replay::Never),
            Replay::Written => {
                let limit = self.connector.options.replay_bytes + HEAD_ROOM;
                if self.written.len() + n > limit {
                    self.answered();
                    return;
                }
                for slice in slices {
                    let part = &slice[..n.min(slice.len())];
                    self.written.extend_from_slice(part);
                    n -= part.len();
                }
            }
        }
    }

    /// Begins anew on a fresh connection, if that is allowed at this point.
    fn recover(&mut self, error: Option<&io::Error>) -> bool {
        let allowed = match (self.state.replay(), error) {
            (Replay::Never, _) => false,
            // An unused connection that ends: hyper hands the request back.
            (_, None) => !self.written.is_empty(),
            (_, Some(error)) => is_dead(error),
        };
        if allowed {
            self.state.allow(Replay::Never);
            let connector = Arc::clone(&self.connector);
            let address = Arc::clone(self.permit.address());
            self.recovery = Some(Recovery::Connecting(Box::pin(async move {
                connector.connect(&address, Alpn::Http1).await
            })));
        }
        allowed
    }

    fn poll_recovered(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = ready!(self.poll_recovery(cx));
        self.recovery = None;
        self.forget();
        Poll::Ready(done)
    }

    fn poll_recovery(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            match &mut self.recovery {
                None => return Poll::Ready(Ok(())),
                Some(Recovery::Connecting(connecting)) => {
                    match ready!(connecting.as_mut().poll(cx)) {
                        Ok(transport) => {
                            self.transport = transport;
                            self.permit.replayed();
                            self.recovery = Some(Recovery::Writing(0));
                        }
                        Err(error) => {
                            self.permit.failed(error.kind());
                            return Poll::Ready(Err(io::Error::other(error)));
                        }
                    }
                }
                Some(Recovery::Writing(at)) => {
                    if *at == self.written.len() {
                        return on!(self.transport, poll_flush(cx));
                    }
                    match ready!(on!(self.transport, poll_write(cx, &self.written[*at..])))? {
                        0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                        n => *at += n,
                    }
                }
            }
        }
    }

    fn poll_write_with(
        &mut self,
        cx: &mut Context<'_>,
        mut write: impl FnMut(&mut Transport, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        loop {
            if self.recovery.is_some() {
                ready!(self.poll_recovered(cx))?;
            }
            match ready!(write(&mut self.transport, cx)) {
                Err(error) if self.recover(Some(&error)) => {}
                done => return Poll::Ready(done),
            }
        }
    }
}

/// Whether an error says that the other side is gone.
fn is_dead(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::NotConnected
            | io::ErrorKind::UnexpectedEof
    )
}

impl AsyncRead for UpstreamIo {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if this.recovery.is_some() {
                ready!(this.poll_recovered(cx))?;
            }
            let before = buf.filled().len();
            match ready!(on!(this.transport, poll_read(cx, buf))) {
                Ok(()) if buf.filled().len() > before => {
                    if this.state.replay() != Replay::Never {
                        this.answered();
                    }
                    return Poll::Ready(Ok(()));
                }
                Ok(()) if this.recover(None) => {}
                Ok(()) => return Poll::Ready(Ok(())),
                Err(error) if !this.written.is_empty() && this.recover(Some(&error)) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for UpstreamIo {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let n = ready!(this.poll_write_with(cx, |io, cx| on!(*io, poll_write(cx, buf))))?;
        this.keep(std::iter::once(buf), n);
        Poll::Ready(Ok(n))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let n = ready!(this.poll_write_with(cx, |io, cx| on!(*io, poll_write_vectored(cx, bufs))))?;
        this.keep(bufs.iter().map(|slice| &**slice), n);
        Poll::Ready(Ok(n))
    }

    fn is_write_vectored(&self) -> bool {
        match &self.transport {
            Transport::Plain(stream) => stream.is_write_vectored(),
            Transport::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if this.recovery.is_some() {
                ready!(this.poll_recovered(cx))?;
            }
            match ready!(on!(this.transport, poll_flush(cx))) {
                Err(error) if this.recover(Some(&error)) => {}
                done => return Poll::Ready(done),
            }
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Poll::Ready(done) = on!(this.transport, poll_shutdown(cx)) {
            return Poll::Ready(done);
        }
        // A peer that takes nothing must not hold the connection.
        let limit = this.connector.options.tls.close_flush_timeout;
        if limit.is_zero() {
            return Poll::Pending;
        }
        let closing = this.closing.get_or_insert_with(|| Box::pin(sleep(limit)));
        closing.as_mut().poll(cx).map(Ok)
    }
}
