//! The body of an answer, as the server takes it.

use std::io::IoSlice;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http_body::{Body as HttpBody, Frame, SizeHint};
use longmen_core::body::{Body, BodyError};

use super::streams;
use super::watch::{InWork, Unsent};

/// The most that an HTTP/2 stream is given at once: a client that takes so much within the limit of
/// stalls is none that takes nothing. Two frames of the usual size.
const PIECE: usize = 32 << 10;

/// The body of an answer; the request is in work until it is dropped.
#[derive(Debug)]
pub(super) struct Answer {
    body: Body,
    /// What an HTTP/2 stream was not given yet of the data that came last.
    rest: Bytes,
    sequential: bool,
    in_work: Option<InWork>,
}

impl Answer {
    pub(super) fn new(body: Body, sequential: bool, in_work: Option<InWork>) -> Self {
        Self { body, rest: Bytes::new(), sequential, in_work }
    }

    fn piece(&mut self) -> Frame<Piece> {
        let bytes = self.rest.split_to(self.rest.len().min(PIECE));
        Frame::data(Piece { bytes, unsent: self.in_work.as_ref().map(InWork::unsent) })
    }

    fn poll_stream(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, BodyError>>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.piece())));
        }
        Pin::new(&mut self.body).poll_frame(cx).map_ok(|frame| match frame.into_data() {
            Ok(data) => {
                self.rest = data;
                self.piece()
            }
            Err(trailers) => trailers.map_data(Piece::of_a_message),
        })
    }
}

impl HttpBody for Answer {
    type Data = Piece;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, BodyError>>> {
        if self.sequential {
            let polled = Pin::new(&mut self.body).poll_frame(cx);
            return polled.map_ok(|frame| frame.map_data(Piece::of_a_message));
        }
        let polled = self.poll_stream(cx);
        streams::note(&polled);
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let hint = self.body.size_hint();
        if self.rest.is_empty() {
            return hint;
        }
        let rest = self.rest.len() as u64;
        let mut whole = SizeHint::new();
        whole.set_lower(hint.lower().saturating_add(rest));
        if let Some(upper) = hint.upper() {
            whole.set_upper(upper.saturating_add(rest));
        }
        whole
    }
}

/// Bytes of an answer. With HTTP/2 it is kept by the server until it is written, and tells the watch.
#[derive(Debug)]
pub(super) struct Piece {
    bytes: Bytes,
    unsent: Option<Unsent>,
}

impl Piece {
    /// HTTP/1: the socket tells what the client takes.
    const fn of_a_message(bytes: Bytes) -> Self {
        Self { bytes, unsent: None }
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn chunks_vectored<'a>(&'a self, into: &mut [IoSlice<'a>]) -> usize {
        self.bytes.chunks_vectored(into)
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        if let Some(unsent) = &self.unsent {
            unsent.moved();
        }
    }

    fn copy_to_bytes(&mut self, count: usize) -> Bytes {
        let bytes = self.bytes.copy_to_bytes(count);
        if let Some(unsent) = &self.unsent {
            unsent.moved();
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::{Buf, Bytes};
    use http_body::Body as _;
    use http_body_util::BodyExt;
    use longmen_core::body::Body;
    use tokio::time::Instant;

    use super::super::watch::Watch;
    use super::{Answer, PIECE};

    fn answer(sequential: bool, bytes: &Bytes) -> Answer {
        let watch = Arc::new(Watch::new(Instant::now(), sequential, Arc::default(), u64::MAX));
        Answer::new(Body::from(bytes.clone()), sequential, Some(watch.request()))
    }

    #[tokio::test]
    async fn a_stream_is_given_pieces_and_a_message_all_there_is() {
        let bytes: Bytes = (0..PIECE * 2 + 7).map(|index| (index % 251) as u8).collect();
        for (sequential, expected) in [(false, vec![PIECE, PIECE, 7]), (true, vec![bytes.len()])] {
            let mut answer = answer(sequential, &bytes);
            let (mut sizes, mut whole) = (Vec::new(), Vec::new());
            while !answer.is_end_stream() {
                let left = (bytes.len() - whole.len()) as u64;
                assert_eq!(answer.size_hint().exact(), Some(left));
                let mut piece = answer.frame().await.unwrap().unwrap().into_data().unwrap();
                sizes.push(piece.remaining());
                whole.extend_from_slice(&piece.copy_to_bytes(piece.remaining()));
            }
            assert_eq!(sizes, expected);
            assert!(whole == bytes);
            assert!(answer.frame().await.is_none());
        }
    }
}
