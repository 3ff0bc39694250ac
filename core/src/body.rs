//! The one body type of requests and responses on the path.

mod drain;
mod metered;
mod replay;
mod timed;

use std::error::Error as StdError;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;

pub use drain::drain;
pub use metered::{BodyLimit, Meter};
pub(crate) use replay::Replay;
pub use timed::BodyTimes;

/// Why a body ended early.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The connection failed, or the peer broke the framing.
    #[error("body cut short: {0}")]
    Transport(#[source] hyper::Error),
    /// The same, told by a client that is not hyper itself.
    #[error("body cut short: {0}")]
    Upstream(#[source] Box<dyn StdError + Send + Sync>),
    /// A filter refused to go on.
    #[error("body filter: {0}")]
    Filter(#[source] Box<dyn StdError + Send + Sync>),
    /// More bytes than the limit allows.
    #[error("body is larger than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: u64,
    },
    /// The other side sent nothing for too long.
    #[error("body stalled for {millis} ms")]
    Stalled {
        /// How long, in milliseconds.
        millis: u64,
    },
    /// The time of the whole request is over.
    #[error("the time of the request is over")]
    OverTime,
}

type BoxedBody = Pin<Box<dyn HttpBody<Data = Bytes, Error = BodyError> + Send>>;

enum Kind {
    Empty,
    Full(Option<Bytes>),
    Incoming(Incoming),
    Boxed(BoxedBody),
}

/// A body: nothing, bytes in memory, a stream from a connection, or anything else boxed.
///
/// The common cases are not boxed; a boxed one is boxed once. Frames pass through one by one: data
/// is never joined, trailers are kept.
pub struct Body(Kind);

impl Body {
    /// A body without bytes.
    #[must_use]
    pub const fn empty() -> Self {
        Self(Kind::Empty)
    }

    /// Any other body. Boxes it.
    pub fn boxed<B>(body: B) -> Self
    where
        B: HttpBody<Data = Bytes, Error = BodyError> + Send + 'static,
    {
        Self(Kind::Boxed(Box::pin(body)))
    }

    /// Bounds the body in time; one that is in memory or ended is returned as it is.
    #[must_use]
    pub fn timed(self, times: BodyTimes) -> Self {
        match &self.0 {
            Kind::Empty | Kind::Full(_) => self,
            Kind::Incoming(incoming) if incoming.is_end_stream() => self,
            Kind::Incoming(_) | Kind::Boxed(_) => timed::bound(self, times),
        }
    }

    /// The bytes, when the body is in memory and unread: such a body can be sent again.
    #[must_use]
    pub fn replay(&self) -> Option<Bytes> {
        match &self.0 {
            Kind::Empty => Some(Bytes::new()),
            Kind::Full(bytes) => bytes.clone(),
            Kind::Incoming(incoming) if incoming.is_end_stream() => Some(Bytes::new()),
            Kind::Incoming(_) | Kind::Boxed(_) => None,
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.0 {
            Kind::Empty => "Empty",
            Kind::Full(_) => "Full",
            Kind::Incoming(_) => "Incoming",
            Kind::Boxed(_) => "Boxed",
        };
        write!(f, "Body({kind})")
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::empty()
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        if bytes.is_empty() { Self::empty() } else { Self(Kind::Full(Some(bytes))) }
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Self {
        Self::from(Bytes::from_static(text.as_bytes()))
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Self::from(Bytes::from(text))
    }
}

impl From<Incoming> for Body {
    fn from(incoming: Incoming) -> Self {
        Self(Kind::Incoming(incoming))
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.get_mut().0 {
            Kind::Empty => Poll::Ready(None),
            Kind::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Incoming(incoming) => {
                Pin::new(incoming).poll_frame(cx).map_err(BodyError::Transport)
            }
            Kind::Boxed(body) => body.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Empty => true,
            Kind::Full(bytes) => bytes.is_none(),
            Kind::Incoming(incoming) => incoming.is_end_stream(),
            Kind::Boxed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Full(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Kind::Incoming(incoming) => incoming.size_hint(),
            Kind::Boxed(body) => body.size_hint(),
        }
    }
}
