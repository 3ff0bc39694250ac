//! One direction of a websocket: reads from one side, follows the frames, writes to the other.
//!
//! At rest a direction holds no buffer. It reads into a buffer on the stack and writes from there; only
//! what the other side does not take at once is kept, at most [`CHUNK`] bytes, and until that is
//! gone nothing more is read.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::frames::{Frames, HEADER_MAX, TooLarge};

/// The most bytes read at a time, and held for a side that does not take them.
pub(super) const CHUNK: usize = 16 * 1024;

/// Which side an error belongs to.
#[derive(Debug)]
pub(super) enum Broken {
    /// The one that is read from.
    From(io::Error),
    /// The one that is written to.
    To(io::Error),
}

/// What ended a poll of [`Direction::poll`].
#[derive(Debug)]
pub(super) enum Ended {
    /// Nothing more will come this way, and the other side was told.
    Done,
    /// A frame is too large; it was not passed on.
    TooLarge(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Bytes are passed on.
    Passing,
    /// The other side was sent a close frame of ours: nothing may follow it.
    Discarding,
    /// The end is passed on as soon as everything before it is.
    Ending,
    Done,
}

/// One direction.
#[derive(Debug)]
pub(super) struct Direction {
    pub(super) frames: Frames,
    state: State,
    /// The beginning of a header that is incomplete.
    held: [u8; HEADER_MAX],
    held_len: u8,
    /// Bytes that the other side has yet to take, from `taken` on.
    pending: Box<[u8]>,
    taken: usize,
    /// Since when the other side takes nothing.
    pub(super) stalled: Option<Instant>,
    /// A close frame of ours for the next gap between two frames.
    close: Option<Box<[u8]>>,
    /// Bytes passed on.
    pub(super) bytes: u64,
    unflushed: bool,
}

impl Direction {
    pub(super) fn new() -> Self {
        Self {
            frames: Frames::default(),
            state: State::Passing,
            held: [0; HEADER_MAX],
            held_len: 0,
            pending: Box::default(),
            taken: 0,
            stalled: None,
            close: None,
            bytes: 0,
            unflushed: false,
        }
    }

    /// Says goodbye to the side that is written to, between two frames; nothing follows. Does nothing
    /// where a close frame passed already.
    pub(super) fn say(&mut self, close: Box<[u8]>) {
        if self.state == State::Passing && !self.frames.closed() {
            self.close = Some(close);
        }
    }

    /// Whether this direction is over.
    pub(super) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Passes on what can be; pending while it waits for either side.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        mut from: Pin<&mut (impl AsyncRead + ?Sized)>,
        mut to: Pin<&mut (impl AsyncWrite + ?Sized)>,
        limit: u64,
    ) -> Poll<Result<Ended, Broken>> {
        loop {
            ready!(self.write_pending(cx, to.as_mut()).map_err(Broken::To))?;
            if self.close.is_some() && self.frames.between() && self.state == State::Passing {
                let close = self.close.take();
                if !self.frames.closed() {
                    self.pending = close.unwrap_or_default();
                    self.state = State::Discarding;
                }
                continue;
            }
            match self.state {
                State::Done => return Poll::Ready(Ok(Ended::Done)),
                State::Ending => {
                    ready!(to.as_mut().poll_shutdown(cx).map_err(Broken::To))?;
                    self.state = State::Done;
                }
                State::Passing | State::Discarding => {
                    let read = self.read(cx, from.as_mut(), to.as_mut(), limit);
                    if read.is_pending() && self.unflushed {
                        ready!(to.as_mut().poll_flush(cx).map_err(Broken::To))?;
                        self.unflushed = false;
                    }
                    if let Some(payload) = ready!(read)? {
                        return Poll::Ready(Ok(Ended::TooLarge(payload)));
                    }
                }
            }
        }
    }

    /// Reads once and passes on. Returns the payload of a frame that is too large.
    fn read(
        &mut self,
        cx: &mut Context<'_>,
        from: Pin<&mut (impl AsyncRead + ?Sized)>,
        to: Pin<&mut (impl AsyncWrite + ?Sized)>,
        limit: u64,
    ) -> Poll<Result<Option<u64>, Broken>> {
        let mut chunk = [const { MaybeUninit::uninit() }; CHUNK];
        let mut buffer = ReadBuf::uninit(&mut chunk);
        buffer.put_slice(&self.held[..usize::from(self.held_len)]);
        let before = buffer.filled().len();
        ready!(from.poll_read(cx, &mut buffer).map_err(Broken::From))?;
        if buffer.filled().len() == before {
            self.state = State::Ending;
            return Poll::Ready(Ok(None));
        }
        let bytes = buffer.filled();
        if self.state == State::Discarding {
            let past = self.frames.skip(bytes);
            self.hold(&bytes[past..]);
            if self.frames.closed() {
                // The close frame that answers ours.
                self.state = State::Ending;
            }
            return Poll::Ready(Ok(None));
        }
        let (pass, too_large) = match self.frames.advance(bytes, limit) {
            Ok(pass) => (pass, None),
            Err(TooLarge { before, payload }) => (before, Some(payload)),
        };
        self.write_now(cx, to, &bytes[..pass]).map_err(Broken::To)?;
        if too_large.is_some() {
            // From its header on it is skipped; the caller tells both sides.
            let past = pass + self.frames.skip(&bytes[pass..]);
            self.hold(&bytes[past..]);
            self.state = State::Discarding;
        } else {
            self.hold(&bytes[pass..]);
        }
        Poll::Ready(Ok(too_large))
    }

    fn hold(&mut self, rest: &[u8]) {
        self.held[..rest.len()].copy_from_slice(rest);
        self.held_len = u8::try_from(rest.len()).expect("less than a header");
    }

    /// Sends a close frame of ours to the side whose frames are skipped from now on, because one was
    /// too large.
    pub(super) fn refuse(&mut self, close: Box<[u8]>) {
        if self.pending.is_empty() {
            self.pending = close;
        } else {
            let mut both = self.pending[self.taken..].to_vec();
            both.extend_from_slice(&close);
            (self.pending, self.taken) = (both.into(), 0);
        }
    }

    /// Writes what the other side takes at once, and keeps the rest.
    fn write_now(
        &mut self,
        cx: &mut Context<'_>,
        mut to: Pin<&mut (impl AsyncWrite + ?Sized)>,
        mut bytes: &[u8],
    ) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            match to.as_mut().poll_write(cx, bytes)? {
                Poll::Ready(0) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(written) => {
                    bytes = &bytes[written..];
                    self.unflushed = true;
                }
                Poll::Pending => {
                    (self.pending, self.taken) = (bytes.into(), 0);
                    self.stalled = Some(Instant::now());
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn write_pending(
        &mut self,
        cx: &mut Context<'_>,
        mut to: Pin<&mut (impl AsyncWrite + ?Sized)>,
    ) -> Poll<io::Result<()>> {
        while self.taken < self.pending.len() {
            match to.as_mut().poll_write(cx, &self.pending[self.taken..])? {
                Poll::Ready(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(written) => {
                    self.taken += written;
                    self.stalled = None;
                    self.unflushed = true;
                }
                Poll::Pending => {
                    self.stalled.get_or_insert_with(Instant::now);
                    return Poll::Pending;
                }
            }
        }
        self.stalled = None;
        if !self.pending.is_empty() {
            (self.pending, self.taken) = (Box::default(), 0);
        }
        Poll::Ready(Ok(()))
    }
}
