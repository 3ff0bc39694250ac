//! A websocket that is open: both directions, its time limits, and its end.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Sleep};

use super::direction::{Broken, Direction, Ended};
use super::frames::close_frame;
use super::registry::TunnelLimits;

/// How long both sides have to answer a close frame of ours.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// How long one direction goes on after the other has ended.
const HALF_CLOSED_LIMIT: Duration = Duration::from_secs(10);

const GOING_AWAY: u16 = 1001;
const TOO_BIG: u16 = 1009;

/// How a websocket ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Either side closed it.
    Closed,
    /// The gateway stops.
    Stopped,
    /// It carried nothing for too long.
    Idle,
    /// The client sent a frame that is too large.
    ClientFrame,
    /// The upstream did.
    UpstreamFrame,
    /// The client vanished, or takes nothing.
    ClientGone,
    /// The upstream vanished, or takes nothing.
    UpstreamGone,
}

/// Both sides and all that is known about them.
pub(super) struct Pump<N, F> {
    near: N,
    far: F,
    /// From the client.
    up: Direction,
    /// To the client.
    down: Direction,
    limits: TunnelLimits,
    last_bytes: Instant,
    counted: u64,
    /// Why we close it, and until when the sides have time to agree.
    closing: Option<(End, Instant)>,
    half_closed: Option<Instant>,
    /// What a side that vanished left behind.
    pub(super) error: Option<io::Error>,
    /// Made when a time limit first applies: a websocket at rest needs none.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<N, F> Pump<N, F>
where
    N: AsyncRead + AsyncWrite + Unpin,
    F: AsyncRead + AsyncWrite + Unpin,
{
    /// Ties the client's side, `near`, to the upstream's.
    pub(super) fn new(near: N, far: F, limits: TunnelLimits) -> Self {
        Self {
            near,
            far,
            up: Direction::new(),
            down: Direction::new(),
            limits,
            last_bytes: Instant::now(),
            counted: 0,
            closing: None,
            half_closed: None,
            error: None,
            timer: None,
        }
    }

    /// From the client, and to the client.
    pub(super) const fn directions(&self) -> (&Direction, &Direction) {
        (&self.up, &self.down)
    }

    /// Closes both sides, each between two of its frames.
    pub(super) fn go_away(&mut self) {
        self.close(End::Stopped, (GOING_AWAY, "the gateway stops"), (GOING_AWAY, ""));
    }

    fn close(&mut self, end: End, to_client: (u16, &str), to_upstream: (u16, &str)) {
        if self.closing.is_some() {
            return;
        }
        self.closing = Some((end, Instant::now() + CLOSE_LIMIT));
        self.down.say(close_frame(to_client.0, to_client.1, None));
        self.up.say(close_frame(to_upstream.0, to_upstream.1, Some(rand::random())));
    }

    fn too_large(&mut self, end: End, payload: u64) {
        let text = format!("a frame of {payload} bytes is over {}", self.limits.max_frame_bytes);
        if end == End::ClientFrame {
            self.up.refuse(close_frame(GOING_AWAY, "", Some(rand::random())));
            self.close(end, (TOO_BIG, &text), (GOING_AWAY, ""));
        } else {
            self.down.refuse(close_frame(GOING_AWAY, "", None));
            self.close(end, (GOING_AWAY, ""), (TOO_BIG, &text));
        }
    }

    /// Runs until both sides have ended, one has vanished, or a limit is reached.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        loop {
            if let Some(end) = self.pass(cx) {
                return Poll::Ready(end);
            }
            if self.limits.idle.is_some() {
                let carried = self.up.bytes + self.down.bytes;
                if std::mem::replace(&mut self.counted, carried) != carried {
                    self.last_bytes = Instant::now();
                }
            }
            let Some(deadline) = self.deadline() else { return Poll::Pending };
            let timer =
                self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
            // One that would fire too early is left: it finds out below, and costs less.
            if timer.deadline() > deadline {
                timer.as_mut().reset(deadline);
            }
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            let now = Instant::now();
            if now < deadline {
                timer.as_mut().reset(deadline);
            } else if let Some(end) = self.expired(now) {
                return Poll::Ready(end);
            }
        }
    }

    /// Lets both directions pass on what they can.
    fn pass(&mut self, cx: &mut Context<'_>) -> Option<End> {
        let limit = self.limits.max_frame_bytes;
        loop {
            let (near, far) = (Pin::new(&mut self.near), Pin::new(&mut self.far));
            match self.up.poll(cx, near, far, limit) {
                Poll::Ready(Err(Broken::From(error))) => {
                    return Some(self.broken(End::ClientGone, error));
                }
                Poll::Ready(Err(Broken::To(error))) => {
                    return Some(self.broken(End::UpstreamGone, error));
                }
                Poll::Ready(Ok(Ended::TooLarge(payload))) => {
                    self.too_large(End::ClientFrame, payload);
                    continue;
                }
                Poll::Ready(Ok(Ended::Done)) | Poll::Pending => {}
            }
            let (near, far) = (Pin::new(&mut self.near), Pin::new(&mut self.far));
            match self.down.poll(cx, far, near, limit) {
                Poll::Ready(Err(Broken::From(error))) => {
                    return Some(self.broken(End::UpstreamGone, error));
                }
                Poll::Ready(Err(Broken::To(error))) => {
                    return Some(self.broken(End::ClientGone, error));
                }
                Poll::Ready(Ok(Ended::TooLarge(payload))) => {
                    self.too_large(End::UpstreamFrame, payload);
                    continue;
                }
                Poll::Ready(Ok(Ended::Done)) | Poll::Pending => {}
            }
            break;
        }
        match (self.up.is_done(), self.down.is_done()) {
            (true, true) => return Some(self.closing.map_or(End::Closed, |(end, _)| end)),
            (false, false) => {}
            (true, false) | (false, true) => {
                self.half_closed.get_or_insert_with(|| Instant::now() + HALF_CLOSED_LIMIT);
            }
        }
        None
    }

    /// A side broke; one that was closed by us may do that.
    fn broken(&mut self, end: End, error: io::Error) -> End {
        self.error = Some(error);
        self.closing.map_or(end, |(end, _)| end)
    }

    /// When it has to be looked at again, if nothing happens before.
    fn deadline(&self) -> Option<Instant> {
        let stalled = [self.up.stalled, self.down.stalled];
        let stalled = stalled.into_iter().flatten().min().map(|at| at + self.limits.write_stall);
        let closing = self.closing.map(|(_, until)| until);
        let idle =
            self.limits.idle.filter(|_| closing.is_none()).map(|idle| self.last_bytes + idle);
        [stalled, closing, self.half_closed, idle].into_iter().flatten().min()
    }

    /// A deadline has passed.
    fn expired(&mut self, now: Instant) -> Option<End> {
        let is_over = |since: Option<Instant>| {
            since.is_some_and(|since| since + self.limits.write_stall <= now)
        };
        if let Some((end, until)) = self.closing
            && until <= now
        {
            return Some(end);
        }
        if is_over(self.up.stalled) {
            return Some(End::UpstreamGone);
        }
        if is_over(self.down.stalled) {
            return Some(End::ClientGone);
        }
        if self.half_closed.is_some_and(|until| until <= now) {
            return Some(End::Closed);
        }
        self.close(End::Idle, (GOING_AWAY, "nothing was sent for too long"), (GOING_AWAY, ""));
        None
    }
}
