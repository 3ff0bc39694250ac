//! The websockets of a gateway: their limits, how many there are, and their end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use http::StatusCode;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::{Fault, GatewayError, Reason};

/// Bounds of proxied websockets.
#[derive(Debug, Clone)]
pub struct TunnelLimits {
    /// The largest frame passed on, in bytes of payload; past it both sides are closed with 1009.
    pub max_frame_bytes: u64,
    /// How long one may carry nothing; `None`: any time.
    pub idle: Option<Duration>,
    /// How long a side may take nothing of what is sent to it.
    pub write_stall: Duration,
    /// The most open at once; past that 503.
    pub max_open: usize,
}

impl Default for TunnelLimits {
    fn default() -> Self {
        Self {
            max_frame_bytes: 10 << 20,
            idle: None,
            write_stall: Duration::from_secs(60),
            max_open: 100_000,
        }
    }
}

/// What websockets have carried; counted when one ends.
#[derive(Debug, Default)]
pub struct TunnelTotals {
    /// Websockets that were opened.
    pub opened: AtomicU64,
    /// Frames from clients.
    pub frames_from_clients: AtomicU64,
    /// Frames to clients.
    pub frames_to_clients: AtomicU64,
    /// Bytes from clients, frame headers included.
    pub bytes_from_clients: AtomicU64,
    /// Bytes to clients, frame headers included.
    pub bytes_to_clients: AtomicU64,
}

/// The websockets of one gateway, shared by all its workers. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Tunnels(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    limits: TunnelLimits,
    open: AtomicUsize,
    totals: TunnelTotals,
    tasks: TaskTracker,
    away: CancellationToken,
}

impl Tunnels {
    /// None yet.
    #[must_use]
    pub fn new(limits: TunnelLimits) -> Self {
        Self(Arc::new(Inner { limits, ..Inner::default() }))
    }

    /// Websockets that are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.0.open.load(Ordering::Relaxed)
    }

    /// What those that ended have carried.
    #[must_use]
    pub fn totals(&self) -> &TunnelTotals {
        &self.0.totals
    }

    /// Closes all with 1001, between two frames of each, and every one that opens from now on.
    pub fn go_away(&self) {
        self.0.away.cancel();
    }

    /// Waits until none is left. More may open meanwhile; they are waited for as well.
    pub async fn gone(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    pub(super) fn limits(&self) -> &TunnelLimits {
        &self.0.limits
    }

    pub(super) fn tasks(&self) -> &TaskTracker {
        &self.0.tasks
    }

    pub(super) fn away(&self) -> &CancellationToken {
        &self.0.away
    }

    /// A seat for one more.
    ///
    /// # Errors
    /// 503: all are taken.
    pub(super) fn enter(&self) -> Result<Seat, GatewayError> {
        let before = self.0.open.fetch_add(1, Ordering::Relaxed);
        let seat = Seat(self.clone());
        if before >= self.0.limits.max_open {
            return Err(GatewayError::new(
                Fault::Gateway,
                Reason::Overloaded,
                StatusCode::SERVICE_UNAVAILABLE,
                "the gateway is at its limit of websockets",
            ));
        }
        Ok(seat)
    }
}

/// One websocket among those that are open; gives its place back when dropped.
#[derive(Debug)]
pub(super) struct Seat(Tunnels);

impl Seat {
    pub(super) fn tunnels(&self) -> &Tunnels {
        &self.0
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}
