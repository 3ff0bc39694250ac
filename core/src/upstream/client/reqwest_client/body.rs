//! Bodies on their way into reqwest and out of it.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};

use super::super::pool::Permit;
use crate::body::{Body, BodyError};

/// A request body that can be had back as long as nobody has read from it.
pub(super) struct BodySlot(Arc<Mutex<Slot>>);

struct Slot {
    body: Body,
    touched: bool,
}

fn lock(slot: &Mutex<Slot>) -> MutexGuard<'_, Slot> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

impl BodySlot {
    pub(super) fn new(body: Body) -> Self {
        Self(Arc::new(Mutex::new(Slot { body, touched: false })))
    }

    pub(super) fn is_end_stream(&self) -> bool {
        lock(&self.0).body.is_end_stream()
    }

    /// The side that is sent. One task reads it: its lock is never waited for.
    pub(super) fn outgoing(&self) -> Outgoing {
        Outgoing(Arc::clone(&self.0))
    }

    /// The body, if it is still whole.
    pub(super) fn take_back(self) -> Option<Body> {
        let mut slot = lock(&self.0);
        (!slot.touched).then(|| std::mem::take(&mut slot.body))
    }
}

/// reqwest wants bodies that may be looked at from several threads at once.
pub(super) struct Outgoing(Arc<Mutex<Slot>>);

impl HttpBody for Outgoing {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let mut slot = lock(&self.0);
        let polled = Pin::new(&mut slot.body).poll_frame(cx);
        slot.touched |= polled.is_ready();
        polled
    }

    fn is_end_stream(&self) -> bool {
        lock(&self.0).body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        lock(&self.0).body.size_hint()
    }
}

/// The body of an answer, with the right to a connection until its end.
pub(super) struct AnswerBody {
    body: reqwest::Body,
    permit: Option<Permit>,
}

impl AnswerBody {
    pub(super) fn wrap(body: reqwest::Body, permit: Permit) -> Body {
        if body.is_end_stream() {
            return Body::empty();
        }
        Body::boxed(Self { body, permit: Some(permit) })
    }
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
        if !matches!(frame, Some(Ok(_))) || this.body.is_end_stream() {
            this.permit = None;
        }
        Poll::Ready(frame.map(|frame| frame.map_err(|error| BodyError::Upstream(error.into()))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
