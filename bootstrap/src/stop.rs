//! The stop of a gateway, step by step.

use std::time::Duration;

use longmen_core::chain::Tunnels;
use longmen_core::layer::InFlightLimit;
use longmen_core::lifecycle::Lifecycle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::worker::{ConnectionLimit, Doors};

/// How often a stop looks at what is left.
const LOOK: Duration = Duration::from_millis(20);

/// The most that is kept of the grace period for websockets to be closed in good order.
const WEBSOCKETS: Duration = Duration::from_secs(5);

/// What a gateway has to bring to an end.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) lifecycle: Lifecycle,
    pub(crate) doors: Doors,
    pub(crate) in_flight: InFlightLimit,
    pub(crate) tunnels: Tunnels,
    pub(crate) connections: ConnectionLimit,
    /// Set when the last connection has ended: until then requests may come, and changes count.
    pub(crate) served: CancellationToken,
}

impl Work {
    /// Ends everything within `grace`, and what is left then at once: no new connections; requests
    /// finish; then, or shortly before the time is over, websockets are closed; connections that wait
    /// for a request are kept to the last, since one may be on its way. Changes of the configuration are
    /// taken in as long as any connection is open. Says whether all went well; what was cut off is
    /// logged.
    pub(crate) async fn end(&self, grace: Duration) -> bool {
        let begun = Instant::now();
        let until = begun + grace;
        self.lifecycle.soft().cancel();
        self.doors.accepting.close();
        let close_websockets_at = until - WEBSOCKETS.min(grace / 4);
        tokio::select! {
            () = self.requests_done() => {}
            () = tokio::time::sleep_until(close_websockets_at) => {}
            () = self.lifecycle.hard().cancelled() => {}
        }
        self.tunnels.go_away();
        tokio::select! {
            () = self.connections_closed() => {}
            () = tokio::time::sleep_until(until) => {}
            () = self.lifecycle.hard().cancelled() => {}
        }
        self.served.cancel();
        let in_time = self.lifecycle.ended(until.saturating_duration_since(Instant::now())).await;
        let websockets = self.tunnels.open();
        let requests = self.in_flight.current().saturating_sub(websockets);
        let idle = self.connections.open().saturating_sub(requests);
        let well = !self.lifecycle.cut_off().await.failed;
        let elapsed = begun.elapsed();
        if in_time {
            info!(?elapsed, "everything came to its end");
        } else if requests == 0 && websockets == 0 {
            info!(?elapsed, idle, "closed the connections that waited for a request");
        } else {
            warn!(?elapsed, requests, websockets, idle, "cut off what was not done in time");
        }
        well
    }

    async fn connections_closed(&self) {
        self.doors.accepting.wait().await;
        while self.connections.open() > 0 {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Until no request is in work but those of websockets.
    async fn requests_done(&self) {
        self.doors.accepting.wait().await;
        while self.in_flight.current() > self.tunnels.open() {
            tokio::time::sleep(LOOK).await;
        }
    }
}
