//! HTTP/2 streams whose client takes nothing.
//!
//! A client can close the window of one stream and go on with the others, so the socket does not tell.
//! The server runs each stream as a task of its own, which is given here; while the last the body did was
//! to give data, the stream waits for its client, and past the limit it is dropped: the client is sent a
//! reset, and the upstream's answer ends.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::Executor;
use tokio::time::{Instant, Sleep};
use tracing::debug;

thread_local! {
    /// Whether the body that was polled last, in the task that runs now, gave data.
    static GAVE_DATA: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Notes what a body did that was polled by the task of its stream.
pub(super) fn note<T>(polled: &Poll<Option<T>>) {
    GAVE_DATA.set(Some(matches!(polled, Poll::Ready(Some(_)))));
}

/// Runs streams on the runtime of whoever serves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Streams {
    pub(super) write_stall: Duration,
}

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, future: F) {
        tokio::spawn(Stream {
            inner: future,
            write_stall: self.write_stall,
            waits_since: None,
            timer: None,
        });
    }
}

pin_project_lite::pin_project! {
    struct Stream<F> {
        #[pin]
        inner: F,
        write_stall: Duration,
        // Since when the client takes nothing of this stream.
        waits_since: Option<Instant>,
        // Made when it first waits.
        timer: Option<Pin<Box<Sleep>>>,
    }
}

impl<F: Future<Output = ()>> Future for Stream<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        GAVE_DATA.set(None);
        if this.inner.poll(cx).is_ready() {
            return Poll::Ready(());
        }
        match GAVE_DATA.get() {
            Some(true) => *this.waits_since = Some(Instant::now()),
            Some(false) => *this.waits_since = None,
            // The body was not asked: there is no room for more of it yet.
            None => {}
        }
        let Some(since) = *this.waits_since else { return Poll::Pending };
        let until = since + *this.write_stall;
        let timer = this.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        while timer.as_mut().poll(cx).is_ready() {
            if until <= Instant::now() {
                debug!("stream reset: its client takes nothing");
                return Poll::Ready(());
            }
            timer.as_mut().reset(until);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;
    use std::time::Duration;

    use hyper::rt::Executor as _;
    use tokio::sync::oneshot;

    use super::{Streams, note};

    const STREAMS: Streams = Streams { write_stall: Duration::from_millis(80) };

    /// Whether a stream in which the body did this last is dropped within a while.
    async fn is_dropped(last: Poll<Option<()>>) -> bool {
        let (alive, dropped) = oneshot::channel::<()>();
        STREAMS.execute(async move {
            let _alive = alive;
            let mut polled = false;
            poll_fn::<(), _>(|_| {
                if !std::mem::replace(&mut polled, true) {
                    note(&last);
                }
                Poll::Pending
            })
            .await;
        });
        tokio::time::timeout(Duration::from_millis(400), dropped).await.is_ok()
    }

    #[tokio::test]
    async fn a_stream_ends_when_its_client_takes_nothing() {
        assert!(is_dropped(Poll::Ready(Some(()))).await);
        assert!(!is_dropped(Poll::Pending).await, "it waits for the upstream");
    }
}
