//! An end for peers that take nothing of what is sent to them.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

pin_project! {
    /// A stream whose writes fail once the peer has taken nothing for a time.
    ///
    /// Reading is not watched, and neither is a stream that nothing waits to be written to: an idle
    /// connection and a slow but steady reader both stay.
    ///
    /// On the request path: one branch per write while the peer takes what it gets. The timer is
    /// made at the first write that has to wait, and then kept.
    #[derive(Debug)]
    pub struct WriteStall<S> {
        #[pin]
        stream: S,
        timer: StallTimer,
    }
}

/// The clock of [`WriteStall`], for streams that are wrapped otherwise.
pub struct StallTimer {
    limit: Duration,
    /// What waits since the timer was set.
    waiting: Option<Waiting>,
    sleep: Option<Pin<Box<Sleep>>>,
}

/// What of a stream waits for its peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// Bytes that are to be written.
    Write,
    /// A flush or the end of the stream. Plain sockets are always done with the former, so its
    /// success says nothing about bytes that wait.
    Flush,
}

// === impl WriteStall ===

impl<S> WriteStall<S> {
    /// Watches the writes to `stream`; its peer may take nothing for `limit` at most.
    #[must_use]
    pub const fn new(stream: S, limit: Duration) -> Self {
        Self { stream, timer: StallTimer::new(limit) }
    }

    /// The stream itself.
    #[must_use]
    pub const fn get_ref(&self) -> &S {
        &self.stream
    }

    /// The stream itself.
    pub const fn get_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// The stream, watched no longer.
    #[must_use]
    pub fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: AsyncRead> AsyncRead for WriteStall<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.project().stream.poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite> AsyncWrite for WriteStall<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.project();
        let written = this.stream.poll_write(cx, bytes);
        this.timer.after_write(cx, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.project();
        let written = this.stream.poll_write_vectored(cx, slices);
        this.timer.after_write(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.project();
        let flushed = this.stream.poll_flush(cx);
        this.timer.after_flush(cx, flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.project();
        let ended = this.stream.poll_shutdown(cx);
        this.timer.after_flush(cx, ended)
    }
}

// === impl StallTimer ===

impl StallTimer {
    /// A timer that runs from the first attempt that has to wait.
    #[must_use]
    pub const fn new(limit: Duration) -> Self {
        Self { limit, waiting: None, sleep: None }
    }

    /// Passes on the outcome of an attempt to write, or fails it once the peer has taken nothing
    /// for too long.
    ///
    /// # Errors
    /// The attempt's; [`io::ErrorKind::TimedOut`] when the time is over.
    pub fn after_write(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_pending() {
            return self.wait(cx, Waiting::Write).map(Err);
        }
        self.waiting = None;
        written
    }

    /// The same of a flush, or of the attempt to end the stream.
    ///
    /// # Errors
    /// As [`StallTimer::after_write`].
    pub fn after_flush(
        &mut self,
        cx: &mut Context<'_>,
        flushed: Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        if flushed.is_pending() {
            return self.wait(cx, Waiting::Flush).map(Err);
        }
        if self.waiting == Some(Waiting::Flush) {
            self.waiting = None;
        }
        flushed
    }

    fn wait(&mut self, cx: &mut Context<'_>, waiting: Waiting) -> Poll<io::Error> {
        let limit = self.limit;
        let begins = self.waiting.is_none();
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        if begins {
            self.waiting = Some(waiting);
            sleep.as_mut().reset(Instant::now() + limit);
        }
        ready!(sleep.as_mut().poll(cx));
        Poll::Ready(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("the peer took nothing of what was sent to it for {limit:?}"),
        ))
    }
}

impl fmt::Debug for StallTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StallTimer")
            .field("limit", &self.limit)
            .field("waiting", &self.waiting)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
