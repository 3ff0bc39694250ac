//! A request body that can be sent again: what has gone by is kept, up to a limit.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Body as HttpBody, Frame, SizeHint};

use super::{Body, BodyError};

/// The source of the bodies of several attempts, of which only the newest may read.
///
/// An attempt first gets what earlier ones have read, then the rest as it arrives. Bytes are copied
/// as they go by, so that what is kept is what the limit says and not the buffers they came in. Past
/// the limit everything is let go: then no further attempt is possible, and the body streams on.
pub(crate) struct Replay(Arc<Mutex<Source>>);

struct Source {
    body: Body,
    kept: BytesMut,
    limit: usize,
    /// Past the limit, or broken: what went by is gone.
    lost: bool,
    /// The attempt that may read.
    attempt: u32,
    ended: bool,
}

impl Replay {
    /// Takes a body over. `None`, with the body given back, when it cannot be kept in any case:
    /// announced as longer than the limit.
    pub(crate) fn new(body: Body, limit: usize) -> Result<Self, Body> {
        if body.size_hint().lower() > limit as u64 {
            return Err(body);
        }
        let kept = BytesMut::new();
        let source = Source { body, kept, limit, lost: false, attempt: 0, ended: false };
        Ok(Self(Arc::new(Mutex::new(source))))
    }

    /// The body for a further attempt, from its first byte; the bodies of earlier ones end with an
    /// error. `None` when bytes are lost.
    pub(crate) fn attempt(&self) -> Option<Body> {
        let mut source = lock(&self.0);
        if source.lost {
            return None;
        }
        source.attempt += 1;
        if source.kept.is_empty() && source.body.is_end_stream() {
            return Some(Body::empty());
        }
        let again = Bytes::copy_from_slice(&source.kept);
        let attempt = source.attempt;
        drop(source);
        Some(Body::boxed(AttemptBody { again, attempt, source: Arc::clone(&self.0) }))
    }
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = lock(&self.0);
        f.debug_struct("Replay")
            .field("kept", &source.kept.len())
            .field("lost", &source.lost)
            .finish_non_exhaustive()
    }
}

/// Held for the moment of a poll; the body of an attempt given up may be polled once more by its
/// connection, never in turn with the next one.
fn lock(source: &Mutex<Source>) -> MutexGuard<'_, Source> {
    source.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Source {
    fn keep(&mut self, data: &Bytes) {
        if self.lost {
            return;
        }
        if self.kept.len() + data.len() > self.limit {
            self.lost = true;
            self.kept = BytesMut::new();
        } else {
            self.kept.extend_from_slice(data);
        }
    }
}

struct AttemptBody {
    again: Bytes,
    attempt: u32,
    source: Arc<Mutex<Source>>,
}

impl HttpBody for AttemptBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        let mut source = lock(&this.source);
        if source.attempt != this.attempt {
            let error = BodyError::Filter("another attempt has the body".into());
            return Poll::Ready(Some(Err(error)));
        }
        if !this.again.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.again)))));
        }
        if source.ended {
            return Poll::Ready(None);
        }
        let frame = ready!(Pin::new(&mut source.body).poll_frame(cx));
        match &frame {
            None => source.ended = true,
            Some(Err(_)) => source.lost = true,
            Some(Ok(frame)) => match frame.data_ref() {
                Some(data) => source.keep(data),
                // Trailers come once; a body that had them is not sent again.
                None => source.lost = true,
            },
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        let source = lock(&self.source);
        self.again.is_empty() && (source.ended || source.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let again = self.again.len() as u64;
        let rest = lock(&self.source).body.size_hint();
        let mut hint = SizeHint::new();
        // The upper bound first: the lower one may not exceed it.
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + again);
        }
        hint.set_lower(rest.lower() + again);
        hint
    }
}

#[cfg(test)]
mod tests;
