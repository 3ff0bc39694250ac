//! The bodies an origin sends.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;

/// What goes wrong while a body is sent; hyper then ends the connection.
pub(super) type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// The body of an answer. The fixed answers cost no allocation.
pub(super) enum OriginBody {
    /// All of it is there.
    Full(Full<Bytes>),
    /// The request's own body.
    Request(Incoming),
    /// Anything else.
    Boxed(UnsyncBoxBody<Bytes, BodyError>),
}

impl OriginBody {
    pub(super) fn full(bytes: impl Into<Bytes>) -> Self {
        Self::Full(Full::new(bytes.into()))
    }

    pub(super) fn boxed<B>(body: B) -> Self
    where
        B: Body<Data = Bytes, Error = BodyError> + Send + 'static,
    {
        Self::Boxed(UnsyncBoxBody::new(body))
    }

    /// A body that announces `announced` bytes and breaks off after `sent`.
    pub(super) fn cut(sent: Bytes, announced: u64) -> Self {
        Self::boxed(CutBody { left: Some(sent), announced })
    }
}

impl Body for OriginBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            Self::Full(body) => Pin::new(body).poll_frame(cx).map_err(|never| match never {}),
            Self::Request(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
            Self::Boxed(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Full(body) => body.is_end_stream(),
            Self::Request(body) => body.is_end_stream(),
            Self::Boxed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(body) => body.size_hint(),
            Self::Request(body) => body.size_hint(),
            Self::Boxed(body) => body.size_hint(),
        }
    }
}

struct CutBody {
    left: Option<Bytes>,
    announced: u64,
}

impl Body for CutBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = self.left.take().map_or_else(
            || Err(io::Error::new(io::ErrorKind::BrokenPipe, "cut off on purpose").into()),
            |bytes| Ok(Frame::data(bytes)),
        );
        Poll::Ready(Some(frame))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.announced)
    }
}
