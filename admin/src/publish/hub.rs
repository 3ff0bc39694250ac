//! Sessions by namespace, and the queues that lead to them.
//!
//! The dispatcher puts each delivery into the queue of every session of the namespace and never
//! waits for one: a session whose queue is full is told to end, and its gateway resyncs.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::ws::Utf8Bytes;
use tokio::sync::{mpsc, watch};

use super::refreshes::Kind;

/// Most bytes that wait for one session, unless a single delivery is larger. The texts are shared,
/// so this bounds what one slow session can keep alive.
const QUEUE_BYTES: usize = 32 * 1024 * 1024;

/// What a peer understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Dialect {
    /// The reference's frames.
    Stock,
    /// The same with our marks.
    Ours,
}

/// One thing to send, in order.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    /// Frames as they are.
    Frames(Vec<Utf8Bytes>),
    /// Frames to be read from the tables, at the delivery's version or a later one.
    Refresh(Kind),
}

/// One change set (or resync) in one dialect, shared by all sessions that get it.
#[derive(Debug)]
pub(super) struct Delivery {
    /// The epoch of the version.
    pub(super) epoch: Arc<str>,
    /// The version that is in force once it is applied.
    pub(super) version: u64,
    /// Whether it begins a new line of versions, so that no earlier version compares.
    pub(super) resync: bool,
    /// What to send.
    pub(super) parts: Vec<Part>,
}

impl Delivery {
    fn bytes(&self) -> usize {
        let frames = self.parts.iter().filter_map(|part| match part {
            Part::Frames(frames) => Some(frames),
            Part::Refresh(_) => None,
        });
        frames.flatten().map(|frame| frame.len()).sum()
    }
}

/// Why admin ends a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The peer went; nothing to say.
    Gone,
    /// More waits for the peer than may.
    TooSlow,
    /// The peer sent more in one message than may.
    TooBig,
    /// The peer has been silent.
    Silent,
    /// Admin could not read what the peer needs.
    Failed,
    /// Admin stops.
    Stopping,
}

/// The hub's end of a session's queue.
#[derive(Debug)]
struct Outbox {
    dialect: Dialect,
    queue: mpsc::Sender<(Arc<Delivery>, usize)>,
    waiting_bytes: Arc<AtomicUsize>,
    ending: watch::Sender<Option<Ending>>,
}

/// The session's end of its queue. Dropping it takes the session out of the hub.
#[derive(Debug)]
pub(super) struct Inbox {
    /// Number of the session.
    pub(super) id: u64,
    hub: Arc<Hub>,
    namespace: String,
    queue: mpsc::Receiver<(Arc<Delivery>, usize)>,
    waiting_bytes: Arc<AtomicUsize>,
    ending: watch::Receiver<Option<Ending>>,
}

#[derive(Debug)]
struct Namespace {
    /// Up to which version everything is in the queues.
    position: watch::Sender<u64>,
    /// Up to which version is being put there; see [`Hub::begin`].
    floor: u64,
    sessions: BTreeMap<u64, Outbox>,
}

/// Which dialects have sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Audience {
    /// Stock gateways listen.
    pub(super) stock: bool,
    /// Our gateways listen.
    pub(super) ours: bool,
}

/// All sessions of this admin.
#[derive(Debug)]
pub(super) struct Hub {
    /// Most sessions at a time, over all namespaces.
    max_sessions: usize,
    /// Most deliveries that wait for one session.
    queue_size: usize,
    namespaces: Mutex<HashMap<String, Namespace>>,
    epoch: Mutex<Arc<str>>,
    sessions: AtomicUsize,
    last_id: AtomicU64,
}

// === impl Hub ===

impl Hub {
    /// A hub without sessions, with these limits.
    pub(super) fn new(max_sessions: usize, queue_size: usize) -> Self {
        Self {
            max_sessions,
            queue_size,
            namespaces: Mutex::default(),
            epoch: Mutex::new("".into()),
            sessions: AtomicUsize::new(0),
            last_id: AtomicU64::new(0),
        }
    }

    /// Adds a session; `None` when there are as many as may be.
    pub(super) fn open(self: &Arc<Self>, namespace: &str, dialect: Dialect) -> Option<Inbox> {
        let admitted = self.sessions.fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| {
            (count < self.max_sessions).then_some(count + 1)
        });
        admitted.ok()?;
        let id = self.number();
        let (sender, queue) = mpsc::channel(self.queue_size);
        let (end, ending) = watch::channel(None);
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let outbox = Outbox {
            dialect,
            queue: sender,
            waiting_bytes: Arc::clone(&waiting_bytes),
            ending: end,
        };
        let mut namespaces = self.lock();
        namespaces.entry(namespace.to_owned()).or_default().sessions.insert(id, outbox);
        drop(namespaces);
        let (hub, namespace) = (Arc::clone(self), namespace.to_owned());
        Some(Inbox { id, hub, namespace, queue, waiting_bytes, ending })
    }

    /// Announces that everything up to `upto` is about to be delivered, and says to whom.
    ///
    /// A session that comes later reads the tables at `upto` or beyond, so it needs no delivery up
    /// to there; whoever is in the audience gets each of them.
    pub(super) fn begin(&self, namespace: &str, upto: u64) -> Audience {
        let mut namespaces = self.lock();
        let entry = namespaces.entry(namespace.to_owned()).or_default();
        entry.floor = entry.floor.max(upto);
        let has = |dialect| entry.sessions.values().any(|session| session.dialect == dialect);
        Audience { stock: has(Dialect::Stock), ours: has(Dialect::Ours) }
    }

    /// Puts one delivery into the queues of its dialect and moves the position to `version`; with
    /// `resync` also backwards.
    pub(super) fn deliver(
        &self,
        namespace: &str,
        version: u64,
        resync: bool,
        stock: Option<Arc<Delivery>>,
        ours: Option<Arc<Delivery>>,
    ) {
        let sized = |delivery: Option<Arc<Delivery>>| delivery.map(|d| (d.bytes(), d));
        let (stock, ours) = (sized(stock), sized(ours));
        let mut namespaces = self.lock();
        let entry = namespaces.entry(namespace.to_owned()).or_default();
        entry.sessions.retain(|id, session| {
            let delivery = match session.dialect {
                Dialect::Stock => stock.as_ref(),
                Dialect::Ours => ours.as_ref(),
            };
            let Some((bytes, delivery)) = delivery else { return true };
            let taken = session.offer(delivery, *bytes);
            if !taken {
                tracing::warn!(
                    session = id,
                    namespace,
                    "a gateway reads too slowly, it will resync"
                );
                session.ending.send_replace(Some(Ending::TooSlow));
            }
            taken
        });
        entry.floor = if resync { version } else { entry.floor.max(version) };
        entry.position.send_replace(version);
    }

    /// The least version at which a state read for a session must be.
    pub(super) fn floor(&self, namespace: &str) -> u64 {
        self.lock().get(namespace).map_or(0, |entry| entry.floor)
    }

    /// Waits until everything up to `version` is in the queues of the sessions of `namespace`.
    pub(super) async fn reached(&self, namespace: &str, version: u64) {
        let Some(mut position) = self.lock().get(namespace).map(|entry| entry.position.subscribe())
        else {
            return;
        };
        // An error means that the namespace is gone, and then nobody waits for its deliveries.
        drop(position.wait_for(|position| *position >= version).await);
    }

    /// The position of a namespace, to be watched; it is closed when the namespace is forgotten.
    pub(super) fn moves(&self, namespace: &str) -> watch::Receiver<u64> {
        self.lock().entry(namespace.to_owned()).or_default().position.subscribe()
    }

    /// The number of a new connection.
    pub(super) fn number(&self) -> u64 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The namespaces that have sessions.
    pub(super) fn namespaces(&self) -> Vec<String> {
        let namespaces = self.lock();
        let listening = namespaces.iter().filter(|(_, entry)| !entry.sessions.is_empty());
        listening.map(|(namespace, _)| namespace.clone()).collect()
    }

    /// The epoch that deliveries are in.
    pub(super) fn epoch(&self) -> Arc<str> {
        Arc::clone(&self.epoch.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Begins another epoch.
    pub(super) fn set_epoch(&self, epoch: Arc<str>) {
        *self.epoch.lock().unwrap_or_else(PoisonError::into_inner) = epoch;
    }

    /// How many sessions there are.
    #[cfg(test)]
    pub(super) fn sessions(&self) -> usize {
        self.sessions.load(Ordering::Acquire)
    }

    /// Tells every session to end.
    pub(super) fn end_all(&self, ending: Ending) {
        let namespaces = self.lock();
        for session in namespaces.values().flat_map(|entry| entry.sessions.values()) {
            session.ending.send_replace(Some(ending));
        }
    }

    fn close(&self, namespace: &str, id: u64) {
        let mut namespaces = self.lock();
        if let Some(entry) = namespaces.get_mut(namespace) {
            entry.sessions.remove(&id);
            // Names of namespaces come from outside: those without changes are not remembered.
            let watched = entry.position.receiver_count() > 0;
            if entry.sessions.is_empty() && entry.floor == 0 && !watched {
                namespaces.remove(namespace);
            }
        }
        self.sessions.fetch_sub(1, Ordering::AcqRel);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Namespace>> {
        // Nothing inside the lock can leave an entry half changed.
        self.namespaces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Namespace {
    fn default() -> Self {
        Self { position: watch::Sender::new(0), floor: 0, sessions: BTreeMap::new() }
    }
}

// === impl Outbox ===

impl Outbox {
    fn offer(&self, delivery: &Arc<Delivery>, bytes: usize) -> bool {
        let before = self.waiting_bytes.fetch_add(bytes, Ordering::AcqRel);
        if before > 0 && before.saturating_add(bytes) > QUEUE_BYTES {
            return false;
        }
        match self.queue.try_send((Arc::clone(delivery), bytes)) {
            Err(mpsc::error::TrySendError::Full(_)) => false,
            // A session that has ended is about to leave by itself.
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => true,
        }
    }
}

// === impl Inbox ===

impl Inbox {
    /// The next delivery. Never returns once the hub has let go of the session.
    ///
    /// Cancel safe.
    pub(super) async fn next(&mut self) -> Arc<Delivery> {
        match self.queue.recv().await {
            Some(taken) => self.take(taken),
            None => std::future::pending().await,
        }
    }

    /// The next delivery, if one waits.
    pub(super) fn try_next(&mut self) -> Option<Arc<Delivery>> {
        self.queue.try_recv().ok().map(|taken| self.take(taken))
    }

    /// How many deliveries wait.
    pub(super) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Resolves when admin wants the session to end.
    pub(super) fn ending(&self) -> impl Future<Output = Ending> + Send + use<> {
        let mut ending = self.ending.clone();
        async move {
            match ending.wait_for(Option::is_some).await {
                Ok(ending) => ending.unwrap_or(Ending::Gone),
                // Let go after an overflow: the reason was sent before.
                Err(_) => Ending::TooSlow,
            }
        }
    }

    fn take(&self, (delivery, bytes): (Arc<Delivery>, usize)) -> Arc<Delivery> {
        self.waiting_bytes.fetch_sub(bytes, Ordering::AcqRel);
        delivery
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.hub.close(&self.namespace, self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(version: u64, bytes: usize) -> Arc<Delivery> {
        let parts = vec![Part::Frames(vec!["x".repeat(bytes).into()])];
        Arc::new(Delivery { epoch: "e".into(), version, resync: false, parts })
    }

    const MAX_SESSIONS: usize = 40;
    const QUEUE: usize = 16;

    fn hub() -> Arc<Hub> {
        Arc::new(Hub::new(MAX_SESSIONS, QUEUE))
    }

    #[tokio::test]
    async fn deliveries_reach_the_sessions_of_their_namespace_and_dialect_in_order() {
        let hub = hub();
        let mut stock = hub.open("a", Dialect::Stock).unwrap();
        let mut ours = hub.open("a", Dialect::Ours).unwrap();
        let mut other = hub.open("b", Dialect::Stock).unwrap();
        assert_eq!(hub.begin("a", 2), Audience { stock: true, ours: true });
        for version in 1..=2 {
            hub.deliver("a", version, false, Some(delivery(version, 1)), None);
        }
        assert_eq!(stock.next().await.version, 1);
        assert_eq!(stock.next().await.version, 2);
        assert!(ours.try_next().is_none() && other.try_next().is_none());
        assert_eq!(hub.floor("a"), 2);
    }

    #[tokio::test]
    async fn a_session_that_does_not_read_is_ended_and_the_others_go_on() {
        let hub = hub();
        let slow = hub.open("a", Dialect::Stock).unwrap();
        let mut quick = hub.open("a", Dialect::Stock).unwrap();
        for version in 1..=QUEUE as u64 + 1 {
            hub.deliver("a", version, false, Some(delivery(version, 1)), None);
            assert_eq!(quick.next().await.version, version);
        }
        assert_eq!(slow.ending().await, Ending::TooSlow);
        hub.deliver("a", 20_000, false, Some(delivery(20_000, 1)), None);
        assert_eq!(quick.next().await.version, 20_000);
    }

    #[tokio::test]
    async fn bytes_are_bounded_too_but_one_large_delivery_passes() {
        let hub = hub();
        let mut session = hub.open("a", Dialect::Stock).unwrap();
        hub.deliver("a", 1, false, Some(delivery(1, QUEUE_BYTES * 2)), None);
        assert_eq!(session.next().await.version, 1);
        hub.deliver("a", 2, false, Some(delivery(2, QUEUE_BYTES)), None);
        hub.deliver("a", 3, false, Some(delivery(3, 1)), None);
        assert_eq!(session.ending().await, Ending::TooSlow);
    }

    #[tokio::test]
    async fn positions_are_waited_for_and_idle_names_are_forgotten() {
        let hub = hub();
        let session = hub.open("a", Dialect::Ours).unwrap();
        hub.reached("a", 0).await;
        let waiting = tokio::spawn({
            let hub = Arc::clone(&hub);
            async move { hub.reached("a", 3).await }
        });
        hub.deliver("a", 3, false, None, None);
        waiting.await.unwrap();
        drop(session);
        assert_eq!((hub.sessions(), hub.floor("a")), (0, 3));
        drop(hub.open("made up", Dialect::Ours));
        assert_eq!(hub.lock().len(), 1);
    }

    #[tokio::test]
    async fn sessions_are_bounded_and_end_together() {
        let hub = hub();
        let sessions: Vec<Inbox> =
            (0..MAX_SESSIONS).map(|_| hub.open("a", Dialect::Ours).unwrap()).collect();
        assert!(hub.open("a", Dialect::Ours).is_none());
        hub.end_all(Ending::Stopping);
        assert_eq!(sessions[17].ending().await, Ending::Stopping);
        drop(sessions);
        assert!(hub.open("a", Dialect::Ours).is_some());
    }
}
