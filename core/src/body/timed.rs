//! A body that may not stand still for longer than allowed, nor go on past the end of the request.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};

use super::{Body, BodyError};

/// How a body is bounded in time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BodyTimes {
    /// Between two frames; `None`: any time. Counts while the sender is waited for, not while the
    /// receiver takes its time.
    pub idle: Option<Duration>,
    /// When it must be over; `None`: any time.
    pub end: Option<Instant>,
}

pub(super) fn bound(body: Body, times: BodyTimes) -> Body {
    if times == BodyTimes::default() {
        return body;
    }
    Body::boxed(Timed { body, times, waiting_since: None, armed: None, sleep: None })
}

pin_project! {
    /// One timer for the whole stream, started when the body first keeps its reader waiting and put
    /// off only when it fires: a body that flows touches no timer and no clock.
    struct Timed {
        body: Body,
        times: BodyTimes,
        waiting_since: Option<Instant>,
        armed: Option<Instant>,
        #[pin]
        sleep: Option<Sleep>,
    }
}

impl Timed {
    /// When waiting any longer is too long, and what that is.
    fn due(times: BodyTimes, waiting_since: Instant) -> Option<(Instant, BodyError)> {
        let stalled = times.idle.map(|idle| {
            let millis = u64::try_from(idle.as_millis()).unwrap_or(u64::MAX);
            (waiting_since + idle, BodyError::Stalled { millis })
        });
        match (stalled, times.end) {
            (Some((at, _)), Some(end)) if end < at => Some((end, BodyError::OverTime)),
            (None, Some(end)) => Some((end, BodyError::OverTime)),
            (stalled, _) => stalled,
        }
    }
}

impl HttpBody for Timed {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let mut this = self.project();
        if let Poll::Ready(frame) = Pin::new(&mut *this.body).poll_frame(cx) {
            *this.waiting_since = None;
            // Only a bound on the whole asks for the clock on every frame.
            if let (Some(end), Some(Ok(_))) = (this.times.end, &frame)
                && Instant::now() >= end
            {
                return Poll::Ready(Some(Err(BodyError::OverTime)));
            }
            return Poll::Ready(frame);
        }
        let since = *this.waiting_since.get_or_insert_with(Instant::now);
        let Some((due, error)) = Self::due(*this.times, since) else { return Poll::Pending };
        loop {
            if this.sleep.is_none() {
                this.sleep.set(Some(sleep_until(due)));
                *this.armed = Some(due);
            }
            if let Some(sleep) = this.sleep.as_mut().as_pin_mut() {
                ready!(sleep.poll(cx));
            }
            if this.armed.is_some_and(|armed| armed >= due) {
                return Poll::Ready(Some(Err(error)));
            }
            // It fired for an earlier wait: the body has moved since.
            if let Some(sleep) = this.sleep.as_mut().as_pin_mut() {
                sleep.reset(due);
            }
            *this.armed = Some(due);
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
