//! Bodies under the eyes of plugins: filtered as they flow, or collected whole up to a limit.

use std::error::Error as StdError;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Body as HttpBody, Frame};
use http_body_util::BodyExt;

use crate::body::{Body, BodyError};

/// Changes bytes as they flow. What comes in leaves at once: an event stream is never held back.
pub trait BodyFilter: Send {
    /// Takes one chunk and returns what to send for it; empty sends nothing now.
    ///
    /// # Errors
    /// Ends the body: the peer sees it cut short.
    fn chunk(&mut self, data: Bytes) -> Result<Bytes, Box<dyn StdError + Send + Sync>>;

    /// What to send after the last chunk; empty for nothing.
    ///
    /// # Errors
    /// Ends the body: the peer sees it cut short.
    fn end(&mut self) -> Result<Bytes, Box<dyn StdError + Send + Sync>> {
        Ok(Bytes::new())
    }
}

/// Puts a filter on a body. The length is not known any more: the caller drops `Content-Length`.
pub(super) fn filtered(body: Body, filter: Box<dyn BodyFilter>) -> Body {
    Body::boxed(Filtered { body, filter, ended: false })
}

struct Filtered {
    body: Body,
    filter: Box<dyn BodyFilter>,
    ended: bool,
}

impl fmt::Debug for Filtered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filtered").field("body", &self.body).finish_non_exhaustive()
    }
}

impl HttpBody for Filtered {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        while !this.ended {
            let frame = match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                None => {
                    this.ended = true;
                    let rest = this.filter.end().map_err(BodyError::Filter)?;
                    return Poll::Ready((!rest.is_empty()).then(|| Ok(Frame::data(rest))));
                }
                Some(frame) => frame?,
            };
            let data = match frame.into_data() {
                Ok(data) => this.filter.chunk(data).map_err(BodyError::Filter)?,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            };
            if !data.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }
}

/// Collects a body of at most `limit` bytes. Trailers are dropped.
///
/// # Errors
/// [`BodyError::TooLarge`] as soon as the limit is passed, at once when the length is announced;
/// whatever the body itself fails with.
pub async fn collect(mut body: Body, limit: u64) -> Result<Bytes, BodyError> {
    if let Some(bytes) = body.replay() {
        return within(bytes, limit);
    }
    if body.size_hint().lower() > limit {
        return Err(BodyError::TooLarge { limit });
    }
    let mut first: Option<Bytes> = None;
    let mut joined = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        let so_far = first.as_ref().map_or(joined.len(), Bytes::len) + data.len();
        if so_far as u64 > limit {
            return Err(BodyError::TooLarge { limit });
        }
        match first.take() {
            None if joined.is_empty() => first = Some(data),
            None => joined.extend_from_slice(&data),
            Some(before) => {
                joined.extend_from_slice(&before);
                joined.extend_from_slice(&data);
            }
        }
    }
    Ok(first.unwrap_or_else(|| joined.freeze()))
}

fn within(bytes: Bytes, limit: u64) -> Result<Bytes, BodyError> {
    if bytes.len() as u64 > limit { Err(BodyError::TooLarge { limit }) } else { Ok(bytes) }
}
