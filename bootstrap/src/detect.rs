//! HTTP/1.1 or h2c: told by the first bytes, within a deadline.
//!
//! The library's own detection waits for ever for a peer that sends nothing, or half a preface; this
//! one closes both.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::time::timeout;

/// What a client begins with when it speaks HTTP/2 without being asked.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The protocol of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.0 or 1.1.
    Http1,
    /// HTTP/2 with prior knowledge.
    Http2,
}

/// Reads the first bytes and tells the protocol, always HTTP/1 unless HTTP/2 is served. The bytes
/// are read again by the returned stream.
///
/// # Errors
/// The peer closed or sent too little within `deadline` ([`io::ErrorKind::TimedOut`]).
pub async fn detect<S: AsyncRead + Unpin>(
    mut stream: S,
    deadline: Duration,
    serves_http2: bool,
) -> io::Result<(Protocol, Rewind<S>)> {
    let mut head = [0_u8; PREFACE.len()];
    let mut filled = 0;
    let reading = async {
        loop {
            let read = stream.read(&mut head[filled..]).await?;
            if read == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
            }
            filled += read;
            if !serves_http2 || head[..filled] != PREFACE[..filled] {
                return Ok(Protocol::Http1);
            }
            if filled == PREFACE.len() {
                return Ok(Protocol::Http2);
            }
        }
    };
    let protocol = timeout(deadline, reading).await.map_err(|_| io::ErrorKind::TimedOut)??;
    Ok((protocol, Rewind { inner: stream, head, at: 0, filled }))
}

/// A stream whose first bytes were read already and are read again.
#[derive(Debug)]
pub struct Rewind<S> {
    inner: S,
    head: [u8; PREFACE.len()],
    at: usize,
    filled: usize,
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewind<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.at < this.filled {
            let count = (this.filled - this.at).min(buf.remaining());
            buf.put_slice(&this.head[this.at..this.at + count]);
            this.at += count;
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut this.inner).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewind<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::{PREFACE, Protocol, detect};

    const LIMIT: Duration = Duration::from_secs(10);

    #[tokio::test]
    async fn the_first_bytes_decide_and_are_read_again() {
        for (sent, expected) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], Protocol::Http1),
            (b"POST / HTTP/1.1\r\n\r\n", Protocol::Http1),
            (b"PRI / HTTP/1.1\r\n\r\n", Protocol::Http1),
            (PREFACE, Protocol::Http2),
        ] {
            let (mut client, server) = duplex(64);
            client.write_all(sent).await.unwrap();
            drop(client);
            let (protocol, mut stream) = detect(server, LIMIT, true).await.unwrap();
            assert_eq!(protocol, expected);
            let mut seen = Vec::new();
            stream.read_to_end(&mut seen).await.unwrap();
            assert_eq!(seen, sent);
        }
    }

    #[tokio::test]
    async fn silence_and_half_a_preface_end_at_the_deadline() {
        for sent in [&b""[..], &PREFACE[..10]] {
            let (mut client, server) = duplex(64);
            client.write_all(sent).await.unwrap();
            let error = detect(server, Duration::from_millis(50), true).await.unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        }
    }
}
