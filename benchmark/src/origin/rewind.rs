//! Tells HTTP/2 from HTTP/1 by the first bytes, and gives them back to whoever reads next.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// What every HTTP/2 connection starts with, as far as is needed: no method is called `PRI`.
const PREFACE: &[u8; 4] = b"PRI ";

/// What a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// HTTP/1.0 or 1.1.
    Http1,
    /// HTTP/2 with prior knowledge.
    Http2,
}

/// A stream whose first bytes were read already and are read again.
#[derive(Debug)]
pub(super) struct Rewind {
    head: [u8; PREFACE.len()],
    /// Bytes of `head` that are filled, and how many of them were given back.
    filled: usize,
    given: usize,
    stream: TcpStream,
}

/// Reads until the protocol is certain. A client that closes before is taken for HTTP/1.
pub(super) async fn detect(mut stream: TcpStream) -> io::Result<(Rewind, Protocol)> {
    let mut head = [0; PREFACE.len()];
    let mut filled = 0;
    let mut protocol = Protocol::Http1;
    while head[..filled] == PREFACE[..filled] {
        if filled == head.len() {
            protocol = Protocol::Http2;
            break;
        }
        let read = stream.read(&mut head[filled..]).await?;
        if read == 0 {
            break;
        }
        filled += read;
    }
    Ok((Rewind { head, filled, given: 0, stream }, protocol))
}

impl AsyncRead for Rewind {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.given < this.filled {
            let left = &this.head[this.given..this.filled];
            let count = left.len().min(buf.remaining());
            buf.put_slice(&left[..count]);
            this.given += count;
            // On with the stream, if it has more: the head of a request should come as one piece.
            if buf.remaining() > 0
                && count > 0
                && let Poll::Ready(Err(error)) = Pin::new(&mut this.stream).poll_read(cx, buf)
            {
                return Poll::Ready(Err(error));
            }
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut this.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Rewind {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
