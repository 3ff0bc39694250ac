//! The limits of a client connection: of its times, and of its requests.
//!
//! One timer per connection, and it is hardly ever touched: what happens on the connection is only
//! noted, and the timer, when it fires, looks at the notes and sleeps on. The two limits that may be
//! shorter than what it sleeps for, a head that comes in pieces and a client that takes nothing,
//! wake it when they begin.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// The limits of one connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeLimits {
    /// For a request head, from its first byte or from the opening of the connection.
    pub(crate) head: Duration,
    /// Between two requests.
    pub(crate) idle: Duration,
    /// For a client that takes nothing of what is written to it.
    pub(crate) write_stall: Duration,
    /// Requests, after which the connection is told to end.
    pub(crate) requests: u64,
}

/// Which limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Late {
    Head,
    Idle,
    WriteStall,
    Requests,
}

/// What happened on a connection, noted by the socket and the service. Times are milliseconds since
/// the connection was opened, plus one; 0 is never.
#[derive(Debug)]
pub(crate) struct Watch {
    begun: Instant,
    /// Whether heads come one after the other: HTTP/1.
    sequential: bool,
    /// Requests in work.
    open: AtomicU32,
    /// Pieces of answers that the server has taken and the socket has not: HTTP/2, where the client says
    /// how much it takes.
    unsent: AtomicU32,
    /// Requests so far.
    requests: AtomicU64,
    /// Since when no request is in work; while answers are yet to be sent, since they went on.
    idle_since: AtomicU64,
    head_since: AtomicU64,
    stalled_since: AtomicU64,
    /// Bytes came since the last head was complete.
    fresh: AtomicBool,
    /// The timer may sleep for too long.
    hurry: AtomicBool,
    /// Set when the gateway stops. Read through here, so that requests count no references to what
    /// all workers share.
    closing: Arc<AtomicBool>,
    /// The request that is the last the connection may have.
    last_request: u64,
}

impl Watch {
    /// A connection opened at `begun`, whose first bytes are there.
    pub(crate) fn new(
        begun: Instant,
        sequential: bool,
        closing: Arc<AtomicBool>,
        last_request: u64,
    ) -> Self {
        Self {
            begun,
            sequential,
            open: AtomicU32::new(0),
            unsent: AtomicU32::new(0),
            requests: AtomicU64::new(0),
            idle_since: AtomicU64::new(1),
            head_since: AtomicU64::new(u64::from(sequential)),
            stalled_since: AtomicU64::new(0),
            fresh: AtomicBool::new(false),
            hurry: AtomicBool::new(false),
            closing,
            last_request,
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }

    fn at(&self, noted: u64, limit: Duration) -> Instant {
        self.begun + Duration::from_millis(noted - 1) + limit
    }

    /// Bytes came.
    pub(super) fn received(&self) {
        if self.sequential {
            self.fresh.store(true, Ordering::Relaxed);
        }
    }

    /// The server waits for bytes.
    pub(super) fn waits(&self) {
        let in_pieces = self.fresh.load(Ordering::Relaxed)
            && self.open.load(Ordering::Relaxed) == 0
            && self.head_since.load(Ordering::Relaxed) == 0;
        if in_pieces {
            self.head_since.store(self.now(), Ordering::Relaxed);
            self.hurry.store(true, Ordering::Relaxed);
        }
    }

    /// The client takes nothing.
    pub(super) fn stalls(&self) {
        if self.stalled_since.load(Ordering::Relaxed) == 0 {
            self.stalled_since.store(self.now(), Ordering::Relaxed);
            self.hurry.store(true, Ordering::Relaxed);
        }
    }

    /// The client took something.
    pub(super) fn took(&self) {
        if self.stalled_since.load(Ordering::Relaxed) != 0 {
            self.stalled_since.store(0, Ordering::Relaxed);
        }
    }

    /// A request has begun; it ends when the guard is dropped.
    pub(super) fn request(self: &Arc<Self>) -> InWork {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.fresh.store(false, Ordering::Relaxed);
        self.head_since.store(0, Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::Relaxed);
        InWork(Arc::clone(self))
    }

    /// The limit that is reached next, or was.
    fn next(&self, limits: &TimeLimits) -> (Instant, Late) {
        let note = |note: &AtomicU64| Some(note.load(Ordering::Relaxed)).filter(|at| *at != 0);
        if let Some(since) = note(&self.stalled_since) {
            return (self.at(since, limits.write_stall), Late::WriteStall);
        }
        if self.open.load(Ordering::Relaxed) > 0 {
            // Whenever it ends, the connection may wait this long at least.
            return (Instant::now() + limits.idle, Late::Idle);
        }
        if self.unsent.load(Ordering::Relaxed) > 0 {
            let since = self.idle_since.load(Ordering::Relaxed);
            return (self.at(since, limits.write_stall), Late::WriteStall);
        }
        match note(&self.head_since) {
            Some(since) => (self.at(since, limits.head), Late::Head),
            None => (self.at(self.idle_since.load(Ordering::Relaxed), limits.idle), Late::Idle),
        }
    }

    /// Pending until a limit is reached. To be called again after whatever happens on the connection.
    pub(super) fn poll(
        &self,
        cx: &mut Context<'_>,
        mut timer: Pin<&mut Sleep>,
        limits: &TimeLimits,
    ) -> Poll<Late> {
        if self.requests.load(Ordering::Relaxed) >= limits.requests {
            return Poll::Ready(Late::Requests);
        }
        loop {
            if self.hurry.load(Ordering::Relaxed) {
                self.hurry.store(false, Ordering::Relaxed);
                let (at, _) = self.next(limits);
                if at < timer.deadline() {
                    timer.as_mut().reset(at);
                }
            }
            ready!(timer.as_mut().poll(cx));
            let (at, late) = self.next(limits);
            if at <= Instant::now() {
                return Poll::Ready(late);
            }
            timer.as_mut().reset(at);
        }
    }
}

/// A request in work; over when dropped.
#[derive(Debug)]
pub(super) struct InWork(Arc<Watch>);

impl InWork {
    /// Whether the connection ends with this request: the gateway stops, or it is the last.
    pub(super) fn is_last(&self) -> bool {
        let watch = &*self.0;
        watch.closing.load(Ordering::Relaxed)
            || watch.requests.load(Ordering::Relaxed) >= watch.last_request
    }

    /// A piece of the answer that the server takes; sent when dropped.
    pub(super) fn unsent(&self) -> Unsent {
        self.0.unsent.fetch_add(1, Ordering::Relaxed);
        Unsent(Arc::clone(&self.0))
    }
}

impl Drop for InWork {
    fn drop(&mut self) {
        let watch = &*self.0;
        if watch.open.fetch_sub(1, Ordering::Relaxed) == 1 {
            // What came of its body is no head.
            watch.fresh.store(false, Ordering::Relaxed);
            watch.idle_since.store(watch.now(), Ordering::Relaxed);
            if watch.unsent.load(Ordering::Relaxed) > 0 {
                watch.hurry.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// A piece of an answer that is not yet written to the socket. Without it a connection whose last
/// answer waits for its client would be taken to be idle.
#[derive(Debug)]
pub(super) struct Unsent(Arc<Watch>);

impl Unsent {
    /// Some of it was written.
    pub(super) fn moved(&self) {
        if self.0.open.load(Ordering::Relaxed) == 0 {
            self.0.idle_since.store(self.0.now(), Ordering::Relaxed);
        }
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        let watch = &*self.0;
        let last = watch.unsent.fetch_sub(1, Ordering::Relaxed) == 1;
        if last && watch.open.load(Ordering::Relaxed) == 0 {
            watch.idle_since.store(watch.now(), Ordering::Relaxed);
            watch.hurry.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::time::Instant;

    use super::{Late, TimeLimits, Watch};

    const LIMITS: TimeLimits = TimeLimits {
        head: Duration::from_millis(50),
        idle: Duration::from_millis(200),
        write_stall: Duration::from_millis(100),
        requests: u64::MAX,
    };

    fn opened() -> Arc<Watch> {
        Arc::new(Watch::new(Instant::now(), true, Arc::default(), u64::MAX))
    }

    async fn late(watch: &Watch) -> (Late, Duration) {
        late_by(watch, &LIMITS).await
    }

    async fn late_by(watch: &Watch, limits: &TimeLimits) -> (Late, Duration) {
        let begun = Instant::now();
        let mut timer = pin!(tokio::time::sleep(LIMITS.head));
        let watched = poll_fn(|cx| watch.poll(cx, timer.as_mut(), limits));
        let late = tokio::time::timeout(Duration::from_secs(10), watched).await.unwrap();
        (late, begun.elapsed())
    }

    #[tokio::test]
    async fn each_wait_has_its_own_limit() {
        let watch = opened();
        assert_eq!(late(&watch).await.0, Late::Head, "the first head is due from the opening");

        let watch = opened();
        let in_work = watch.request();
        watch.received();
        drop(in_work);
        watch.waits();
        let (limit, took) = late(&watch).await;
        assert_eq!(limit, Late::Idle, "bytes of a body are no head");
        assert!(took >= LIMITS.idle - Duration::from_millis(2), "{took:?}");

        watch.received();
        watch.waits();
        assert_eq!(late(&watch).await.0, Late::Head, "a head that began");

        let watch = opened();
        let _in_work = watch.request();
        watch.stalls();
        assert_eq!(late(&watch).await.0, Late::WriteStall);
    }

    #[tokio::test]
    async fn work_has_no_limit_here() {
        let watch = opened();
        let in_work = watch.request();
        let other = Arc::clone(&watch);
        let waiting = tokio::spawn(async move { late(&other).await });
        tokio::time::sleep(LIMITS.idle * 2).await;
        assert!(!waiting.is_finished());
        drop(in_work);
        assert_eq!(waiting.await.unwrap().0, Late::Idle);
    }

    #[tokio::test]
    async fn an_answer_that_is_not_sent_yet_is_no_idleness() {
        let watch = Arc::new(Watch::new(Instant::now(), false, Arc::default(), u64::MAX));
        let goodbye = TimeLimits { idle: Duration::from_millis(20), ..LIMITS };
        let in_work = watch.request();
        let piece = in_work.unsent();
        drop(in_work);
        let (limit, took) = late_by(&watch, &goodbye).await;
        assert_eq!(limit, Late::WriteStall, "its client takes nothing");
        assert!(took > goodbye.idle * 2, "{took:?}");
        // What is taken begins the time anew.
        piece.moved();
        let (limit, took) = late_by(&watch, &goodbye).await;
        assert_eq!(limit, Late::WriteStall);
        assert!(took > goodbye.idle * 2, "{took:?}");
        drop(piece);
        let (limit, took) = late_by(&watch, &goodbye).await;
        assert_eq!(limit, Late::Idle);
        assert!(took < Duration::from_secs(5), "{took:?}");
    }

    #[tokio::test]
    async fn so_many_requests_and_no_more() {
        let watch = Arc::new(Watch::new(Instant::now(), false, Arc::default(), 2));
        let limits = TimeLimits { requests: 2, ..LIMITS };
        let _first = watch.request();
        let waiting = tokio::time::timeout(LIMITS.idle, late_by(&watch, &limits)).await;
        assert!(waiting.is_err(), "{waiting:?}");
        let _second = watch.request();
        assert_eq!(late_by(&watch, &limits).await.0, Late::Requests);
    }
}
