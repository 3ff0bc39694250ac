//! A request body that is counted, and cut off past a limit.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};

use super::{Body, BodyError, drain};
use crate::error::{GatewayError, Reason};

/// How large a request body may be, and how a larger one is refused.
#[derive(Debug, Clone, Copy)]
pub struct BodyLimit {
    /// The most bytes.
    pub bytes: u64,
    /// The refusal, given the limit.
    pub refusal: fn(u64) -> GatewayError,
}

/// What is known of a request body while somebody else reads it.
#[derive(Debug, Default)]
pub struct Meter {
    bytes: AtomicU64,
    passed: AtomicBool,
    /// One of the constants below.
    broken: AtomicU8,
}

const WHOLE: u8 = 0;
const GONE: u8 = 1;
const STALLED: u8 = 2;

impl Meter {
    /// Bytes read so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Why the client's side of the body failed, if it did.
    #[must_use]
    pub fn fault(&self) -> Option<Reason> {
        if self.is_over() {
            return Some(Reason::BodyTooLarge);
        }
        match self.broken.load(Ordering::Acquire) {
            WHOLE => None,
            STALLED => Some(Reason::ClientBodyTimeout),
            _ => Some(Reason::ClientGone),
        }
    }

    /// Whether the body was larger than its limit.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.passed.load(Ordering::Acquire)
    }
}

impl Body {
    /// Counts the bytes of this body, and ends it with [`BodyError::TooLarge`] once they are more than
    /// `limit`; what the client sends beyond is read and thrown away for a while. Boxes it.
    #[must_use]
    pub fn metered(self, limit: Option<u64>, meter: Arc<Meter>) -> Self {
        Self::boxed(Metered { body: self, limit: limit.unwrap_or(u64::MAX), meter })
    }
}

struct Metered {
    body: Body,
    limit: u64,
    meter: Arc<Meter>,
}

impl HttpBody for Metered {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
        let broken = match &frame {
            Some(Err(BodyError::Transport(_) | BodyError::Upstream(_))) => GONE,
            Some(Err(BodyError::Stalled { .. })) => STALLED,
            _ => WHOLE,
        };
        if broken != WHOLE {
            this.meter.broken.store(broken, Ordering::Release);
        }
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            // One reader at a time: no addition is lost.
            let bytes = this.meter.bytes().saturating_add(data.len() as u64);
            this.meter.bytes.store(bytes, Ordering::Relaxed);
            if bytes > this.limit {
                this.meter.passed.store(true, Ordering::Release);
                drain(std::mem::take(&mut this.body));
                return Poll::Ready(Some(Err(BodyError::TooLarge { limit: this.limit })));
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream() && !self.meter.is_over()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use http_body_util::BodyExt;

    use super::Meter;
    use crate::body::{Body, BodyError};

    #[tokio::test]
    async fn bytes_are_counted_and_the_limit_is_a_strict_one() {
        for (limit, over) in [(None, false), (Some(5), false), (Some(4), true)] {
            let meter = Arc::new(Meter::default());
            let body = Body::from(Bytes::from_static(b"12345")).metered(limit, Arc::clone(&meter));
            let read = body.collect().await;
            assert_eq!(meter.bytes(), 5, "{limit:?}");
            assert_eq!(meter.is_over(), over, "{limit:?}");
            match read {
                Ok(read) => assert_eq!(read.to_bytes(), "12345"),
                Err(BodyError::TooLarge { limit: 4 }) => assert!(over),
                Err(other) => panic!("{other}"),
            }
        }
    }
}
