//! From the change log to the sessions.
//!
//! One task per admin. It holds the version that each namespace's sessions have been sent, and on
//! every wake-up reads what follows. The table alone says what changed: wake-ups only say that
//! something may have, and a poll finds what a lost wake-up would have told.

use std::collections::HashMap;
use std::sync::Arc;

use longmen_db::repository::plugin;
use longmen_db::{
    ChangeSet, Error, GLOBAL, Heads, ReadTx, Since, WakeUp, heads, renew_epoch_from, since,
};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::Shared;
use super::changes::{self, Jars, RowError, Scope};
use super::hub::{Audience, Delivery, Ending, Part};
use super::refreshes::Kind;

/// Rows that are read at a time.
const ROWS: u32 = 5_000;

/// Rows from which on frames are written off the task.
const MANY_ROWS: usize = 500;

/// The task that delivers changes.
#[derive(Debug)]
pub(super) struct Dispatcher {
    shared: Arc<Shared>,
    wake_up: WakeUp,
    epoch: Arc<str>,
    positions: HashMap<String, u64>,
    failing: bool,
}

impl Dispatcher {
    /// Takes the present versions as delivered: sessions to come read the tables.
    ///
    /// # Errors
    /// The database's.
    pub(super) async fn new(shared: Arc<Shared>) -> anyhow::Result<Self> {
        // Before the first read, so that a commit in between wakes.
        let wake_up = shared.store.wake_up();
        let heads = heads(&mut *shared.store.read().await?).await?;
        let epoch: Arc<str> = heads.epoch.as_str().into();
        let mut dispatcher =
            Self { shared, wake_up, epoch, positions: HashMap::new(), failing: false };
        dispatcher.adopt(&heads);
        Ok(dispatcher)
    }

    /// Delivers until `stop`, then ends all sessions. Errors of the database are logged once, and
    /// the next wake-up or poll goes on from the same versions.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let mut poll = interval(self.shared.config.poll_interval);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                _ = self.wake_up.next() => {}
                () = self.shared.poke.notified() => {}
                _ = poll.tick() => self.shared.let_go(),
            }
            // Given up at a stop: sessions end first, whatever the database does.
            let passed = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                passed = self.pass() => passed,
            };
            match passed {
                Ok(()) if self.failing => {
                    self.failing = false;
                    tracing::info!("the change log can be read again");
                }
                Ok(()) => {}
                Err(error) if self.failing => {
                    tracing::debug!(error = format!("{error:#}"), "the change log cannot be read");
                }
                Err(error) => {
                    self.failing = true;
                    tracing::warn!(error = format!("{error:#}"), "the change log cannot be read");
                }
            }
        }
        self.shared.hub.end_all(Ending::Stopping);
    }

    /// Reads and delivers what is new.
    async fn pass(&mut self) -> anyhow::Result<()> {
        let (shared, patience) = (Arc::clone(&self.shared), self.shared.patience);
        let mut tx = patience.query("a connection", shared.store.read()).await?;
        let heads = patience.query("the versions in force", heads(&mut tx)).await?;
        if *heads.epoch != *self.epoch {
            tracing::info!(epoch = heads.epoch, "versions count anew, every gateway resyncs");
            self.adopt(&heads);
            return Ok(());
        }
        if let Some((namespace, published, stored)) = self.regress(&heads) {
            drop(tx);
            tracing::error!(
                namespace,
                published,
                stored,
                "the database is older than what gateways were sent, versions will count anew"
            );
            let renewal = renew_epoch_from(&shared.store, &self.epoch);
            patience.query("a new epoch", renewal).await?;
            // Read on the wake-up that this causes.
            return Ok(());
        }
        for (namespace, head) in &heads.versions {
            let position = self.positions.get(namespace).copied().unwrap_or_default();
            if *head > position {
                self.deliver(&mut tx, namespace, position, *head).await?;
            }
        }
        Ok(())
    }

    /// A namespace whose stored version is lower than the one published.
    fn regress(&self, heads: &Heads) -> Option<(String, u64, u64)> {
        let stored: HashMap<&str, u64> =
            heads.versions.iter().map(|(namespace, head)| (namespace.as_str(), *head)).collect();
        self.positions.iter().find_map(|(namespace, position)| {
            let head = stored.get(namespace.as_str()).copied().unwrap_or_default();
            (head < *position).then(|| (namespace.clone(), *position, head))
        })
    }

    async fn deliver(
        &mut self,
        tx: &mut ReadTx,
        namespace: &str,
        mut position: u64,
        head: u64,
    ) -> anyhow::Result<()> {
        let audience = if namespace == GLOBAL {
            Audience::default()
        } else {
            self.shared.hub.begin(namespace, head)
        };
        if audience == Audience::default() {
            self.arrive(namespace, head, false, None, None);
            return Ok(());
        }
        while position < head {
            let asked = async { Ok(since(tx, namespace, position, ROWS).await) };
            let sets = match self.shared.patience.query::<_, Error>("changes", asked).await? {
                Ok(Since::Sets(sets)) => sets,
                Ok(Since::Gap) => {
                    tracing::warn!(namespace, position, head, "changes are gone, gateways resync");
                    self.resync(namespace, head);
                    return Ok(());
                }
                // Perhaps written by a newer admin: what it changed is in the tables all the same.
                Err(error @ Error::Corrupt { .. }) => {
                    tracing::error!(namespace, position, %error, "gateways resync");
                    self.resync(namespace, head);
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            };
            for set in sets {
                position = set.version;
                self.deliver_set(tx, namespace, audience, set).await?;
            }
        }
        Ok(())
    }

    async fn deliver_set(
        &mut self,
        tx: &mut ReadTx,
        namespace: &str,
        audience: Audience,
        set: ChangeSet,
    ) -> anyhow::Result<()> {
        let (version, many) = (set.version, set.rows.len() >= MANY_ROWS);
        let (of, epoch) = (namespace.to_owned(), Arc::clone(&self.epoch));
        let plugins = if audience.stock { changes::with_jars(&set.rows) } else { Vec::new() };
        let jars = self.shared.patience.query("jars", plugin::jars(tx, &plugins)).await?;
        let write = move || Written::new(&of, &epoch, audience, &set, &jars);
        let written = if many { tokio::task::spawn_blocking(write).await? } else { write() };
        for fault in written.faults {
            tracing::error!(namespace, version, %fault, "a change cannot be sent as it is");
        }
        self.arrive(namespace, version, false, written.stock, written.ours);
        Ok(())
    }

    fn arrive(
        &mut self,
        namespace: &str,
        version: u64,
        resync: bool,
        stock: Option<Arc<Delivery>>,
        ours: Option<Arc<Delivery>>,
    ) {
        self.positions.insert(namespace.to_owned(), version);
        self.shared.hub.deliver(namespace, version, resync, stock, ours);
    }

    /// Has every session of a namespace sent everything, as of `head`.
    fn resync(&mut self, namespace: &str, head: u64) {
        let delivery = |kind| {
            let (epoch, parts) = (Arc::clone(&self.epoch), vec![Part::Refresh(kind)]);
            Some(Arc::new(Delivery { epoch, version: head, resync: true, parts }))
        };
        let (stock, ours) = (delivery(Kind::Again(Scope::Namespace)), delivery(Kind::Ours));
        self.arrive(namespace, head, true, stock, ours);
    }

    /// Begins another epoch, at the versions of `heads`.
    fn adopt(&mut self, heads: &Heads) {
        self.epoch = heads.epoch.as_str().into();
        self.shared.hub.set_epoch(Arc::clone(&self.epoch));
        // Namespaces that have sessions but no version yet are at 0.
        let listening = self.shared.hub.namespaces().into_iter().map(|namespace| (namespace, 0));
        let mut versions: HashMap<String, u64> = listening.collect();
        versions.extend(heads.versions.iter().cloned());
        self.positions.clear();
        for (namespace, head) in versions {
            self.resync(&namespace, head);
        }
    }
}

/// One change set in the dialects that have listeners.
#[derive(Debug)]
struct Written {
    stock: Option<Arc<Delivery>>,
    ours: Option<Arc<Delivery>>,
    faults: Vec<RowError>,
}

impl Written {
    fn new(
        namespace: &str,
        epoch: &Arc<str>,
        audience: Audience,
        set: &ChangeSet,
        jars: &Jars,
    ) -> Self {
        let version = set.version;
        let delivery = |parts: Vec<Part>| {
            Arc::new(Delivery { epoch: Arc::clone(epoch), version, resync: false, parts })
        };
        let mut written = Self { stock: None, ours: None, faults: Vec::new() };
        if audience.stock {
            let (parts, faults) = changes::stock(namespace, &set.rows, jars);
            (written.stock, written.faults) = (Some(delivery(parts)), faults);
        }
        if audience.ours {
            let (parts, faults) = changes::ours(namespace, epoch, version, &set.rows);
            (written.ours, written.faults) = (Some(delivery(parts)), faults);
        }
        written
    }
}
