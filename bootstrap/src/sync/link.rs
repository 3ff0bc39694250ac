//! Links: one per configured url, each opening sessions for as long as the gateway lives.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use longmen_core::lifecycle::Lifecycle;
use longmen_core::upstream::TlsConnector;
use rand::Rng;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::master::{self, Peer};
use super::session::{Session, SessionError};
use super::{Applier, ours, stock};

/// The first wait after a failed attempt; doubled up to the reconnect interval.
pub(super) const FIRST_WAIT: Duration = Duration::from_millis(100);

/// A session that lasted this long was a good one: the next wait begins small again.
pub(super) const GOOD: Duration = Duration::from_secs(5);

/// How long a link that takes over waits at most: gateways that lost the same admin do not all come to the
/// next one in the same moment, and yet well within a second.
const TAKE_OVER_WITHIN: Duration = Duration::from_millis(250);

/// Who this gateway is to admins of ours: a name made up at its start, and a count of its sessions, by
/// which admins tell an old session from the one that followed it.
#[derive(Debug)]
pub(crate) struct Identity {
    name: String,
    sessions: AtomicU64,
}

impl Default for Identity {
    fn default() -> Self {
        let name = format!("{:032x}", rand::random::<u128>());
        Self { name, sessions: AtomicU64::new(0) }
    }
}

impl Identity {
    /// The header of the next session.
    pub(super) fn next(&self) -> String {
        format!("{}.{}", self.name, self.sessions.fetch_add(1, Ordering::Relaxed))
    }
}

/// What links are made of.
#[derive(Debug, Clone)]
pub(crate) struct LinkOptions {
    pub(crate) urls: Vec<String>,
    pub(crate) namespace: String,
    pub(crate) identity: Arc<Identity>,
    /// The port the gateway serves on.
    pub(crate) port: u16,
    pub(crate) origin: String,
    pub(crate) token: Option<String>,
    pub(crate) connect_timeout: Duration,
    /// How long an admin of ours may leave a request unanswered, or a change set unfinished.
    pub(crate) answer_timeout: Duration,
    pub(crate) ping_interval: Duration,
    /// The longest wait between two attempts.
    pub(crate) reconnect_interval: Duration,
    pub(crate) master_check_interval: Duration,
    pub(crate) max_message_bytes: usize,
    /// For addresses with `wss`.
    pub(crate) tls: TlsConnector,
    /// Sessions that are open, counted for the metrics.
    pub(crate) sessions: Arc<AtomicUsize>,
}

/// A session that is open.
pub(super) struct Open<'a>(&'a AtomicUsize);

impl<'a> Open<'a> {
    pub(super) fn count(sessions: &'a AtomicUsize) -> Self {
        sessions.fetch_add(1, Ordering::Relaxed);
        Self(sessions)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Starts all links and the master check on the control runtime. They go on until `served` is set, so
/// that a gateway that comes to its end answers its last request by what is configured then.
pub(crate) fn start(
    options: LinkOptions,
    applier: &Applier,
    runtime: &Handle,
    lifecycle: &Lifecycle,
    served: &CancellationToken,
) {
    let options = Arc::new(options);
    // One session with an admin of ours at a time, whatever the number of links.
    let turn = Arc::new(Semaphore::new(1));
    let mut peers = Vec::new();
    for url in options.urls.clone() {
        let peer = Peer::default();
        peers.push(peer.clone());
        let link = Link {
            url,
            options: Arc::clone(&options),
            applier: applier.clone(),
            turn: Arc::clone(&turn),
            peer,
        };
        let served = served.clone();
        lifecycle.spawn(runtime, "sync link", async move {
            tokio::select! {
                () = link.run() => {}
                () = served.cancelled() => {}
            }
        });
    }
    let (interval, served) = (options.master_check_interval, served.clone());
    lifecycle.spawn(runtime, "master check", async move {
        tokio::select! {
            () = master::check(peers, interval) => {}
            () = served.cancelled() => {}
        }
    });
}

struct Link {
    url: String,
    options: Arc<LinkOptions>,
    applier: Applier,
    turn: Arc<Semaphore>,
    peer: Peer,
}

impl Link {
    async fn run(self) {
        let mut wait = FIRST_WAIT;
        let mut complained = false;
        loop {
            self.peer.let_in().await;
            let begun = Instant::now();
            let reason = match Session::open(&self.url, &self.options).await {
                Err(error) => error,
                Ok(session) if session.ours => self.with_ours(session, complained).await,
                Ok(session) => self.with_stock(session).await,
            };
            if begun.elapsed() >= GOOD {
                (wait, complained) = (FIRST_WAIT, false);
            }
            if complained {
                debug!(url = self.url, "no session: {reason}");
            } else {
                warn!(url = self.url, "no session: {reason}; trying again, what is in force stays");
                complained = true;
            }
            tokio::time::sleep(jittered(wait)).await;
            wait = (wait * 2).min(self.options.reconnect_interval);
        }
    }

    /// With an admin of ours one link serves; another one that finds it taken waits, and connects
    /// anew when the turn is free, since its own connection would be stale by then. The turn is taken with
    /// a session in hand, so an admin that accepts and says nothing holds up no other link. `again`: the
    /// session before did not last, so that another success is no news.
    async fn with_ours(&self, session: Session, again: bool) -> SessionError {
        let mut session = session;
        let _turn = loop {
            if let Ok(turn) = self.turn.try_acquire() {
                break turn;
            }
            session.close().await;
            match self.turn.acquire().await {
                Ok(free) => drop(free),
                Err(_) => return SessionError::Closed,
            }
            tokio::time::sleep(jittered(TAKE_OVER_WITHIN)).await;
            session = match Session::open(&self.url, &self.options).await {
                Ok(session) if session.ours => session,
                Ok(session) => {
                    session.close().await;
                    return SessionError::Protocol("the admin changed its kind".into());
                }
                Err(error) => return error,
            };
        };
        let _open = Open::count(&self.options.sessions);
        if again {
            debug!(url = self.url, "connected");
        } else {
            info!(url = self.url, "connected");
        }
        let limit = self.options.answer_timeout;
        let reason = ours::run(&mut session, &self.applier, limit).await;
        session.close().await;
        reason
    }

    async fn with_stock(&self, mut session: Session) -> SessionError {
        info!(url = self.url, "connected to a stock admin");
        let _open = Open::count(&self.options.sessions);
        self.peer.opened();
        let reason = stock::run(&mut session, &self.applier, &self.peer).await;
        self.peer.closed();
        session.close().await;
        reason
    }
}

/// Spread over the upper half, so that gateways that lost the same admin do not return at once.
pub(super) fn jittered(wait: Duration) -> Duration {
    wait.mul_f64(rand::rng().random_range(0.5..=1.0))
}
