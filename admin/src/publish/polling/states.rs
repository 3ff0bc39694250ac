//! The groups of each namespace as they are handed out, with their digests and times.
//!
//! A stock gateway takes a group over only if its time is later than that of what it has, so the
//! time of a group grows whenever its digest changes: also when the clock is set back, and beyond
//! what a gateway was told by another admin whose clock is ahead. The latter is learned from the
//! gateways themselves: their questions carry the times they have.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use longmen_core::sync::Group;
use longmen_db::{Store, full_state};
use tokio::time::{Instant, sleep_until};

use super::super::patience::Patience;
use super::super::sequence::State as Objects;
use super::request::Known;
use super::text::Objectified;

/// How long a state is kept that nobody asks for. Longer than gateways pause.
const KEEP: Duration = Duration::from_secs(180);

/// How far ahead of this clock a gateway's time is believed, in milliseconds: a year.
const MAX_AHEAD_MS: i64 = 366 * 24 * 60 * 60 * 1000;

/// The least time from one reading of a namespace to the next; and never less than a reading takes.
const PAUSE: Duration = Duration::from_millis(100);

/// How many groups there are.
const GROUPS: usize = Group::ALL.len();

/// A version in its epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::publish) struct Position {
    /// In which the version counts.
    pub(in crate::publish) epoch: Arc<str>,
    /// The version.
    pub(in crate::publish) version: u64,
}

impl Position {
    /// This position, or the version of the same epoch if that is later.
    pub(super) fn at_least(self, epoch: Arc<str>, version: u64) -> Self {
        if self.epoch == epoch { Self { epoch, version: version.max(self.version) } } else { self }
    }
}

/// One group of a namespace.
#[derive(Debug, Clone)]
pub(super) struct GroupState {
    /// The digest of the objects.
    pub(super) md5: Arc<str>,
    /// Since when they are so, in milliseconds since 1970-01-01 UTC; never the same for two digests.
    pub(super) modified: i64,
    /// The objects, as gateways get them.
    pub(super) text: Bytes,
}

/// A namespace at one version.
#[derive(Debug, Clone)]
pub(super) struct State {
    /// The epoch of the version.
    pub(super) epoch: Arc<str>,
    /// The version that all groups are at.
    pub(super) version: u64,
    groups: [GroupState; GROUPS],
}

/// The states of all namespaces that gateways poll.
#[derive(Debug)]
pub(in crate::publish) struct States {
    store: Store,
    patience: Patience,
    slots: Mutex<HashMap<String, Arc<Slot>>>,
}

#[derive(Debug)]
struct Slot {
    /// Held while the state is read: whoever waits for it finds what the first has read.
    held: tokio::sync::Mutex<Held>,
    used: Mutex<Instant>,
}

#[derive(Debug, Default)]
struct Held {
    state: Option<Arc<State>>,
    /// When it may be read again, so that steady changes do not keep an admin reading.
    next: Option<Instant>,
    /// The latest time that a gateway has of each group.
    seen: [i64; GROUPS],
}

impl State {
    /// One of its groups.
    pub(super) const fn group(&self, group: Group) -> &GroupState {
        &self.groups[group as usize]
    }

    fn position(&self) -> Position {
        Position { epoch: Arc::clone(&self.epoch), version: self.version }
    }

    fn is_at(&self, position: &Position) -> bool {
        self.epoch == position.epoch && self.version >= position.version
    }
}

// === impl States ===

impl States {
    /// No states yet.
    pub(in crate::publish) fn new(store: Store, patience: Patience) -> Self {
        Self { store, patience, slots: Mutex::default() }
    }

    /// The state of a namespace at `position` or later.
    ///
    /// # Errors
    /// The database's; that it took too long, the wait for another's reading included.
    pub(super) async fn get(
        &self,
        namespace: &str,
        position: &Position,
    ) -> anyhow::Result<Arc<State>> {
        let slot = self.slot(namespace);
        let current = async {
            let mut held = slot.held.lock().await;
            self.current(namespace, position, &mut held).await
        };
        self.patience.state("a namespace's state", current).await
    }

    /// Compares what a gateway has with the state at `position` or later: that state's position, and
    /// the groups whose digest differs. Their times are later than the gateway's.
    ///
    /// # Errors
    /// As [`States::get`].
    pub(super) async fn compare(
        &self,
        namespace: &str,
        position: &Position,
        known: &Known,
    ) -> anyhow::Result<(Position, Vec<Group>)> {
        let slot = self.slot(namespace);
        let compared = async {
            let mut held = slot.held.lock().await;
            let state = self.current(namespace, position, &mut held).await?;
            let now = self.store.now_ms();
            let (overtaken, differing) = held.judge(&state, known, now);
            let at = state.position();
            if let Some(overtaken) = overtaken {
                held.state = Some(Arc::new(overtaken));
            }
            anyhow::Ok((at, differing))
        };
        self.patience.state("a namespace's state", compared).await
    }

    /// Lets go of what nobody has asked for in a while.
    pub(in crate::publish) fn sweep(&self) {
        let now = Instant::now();
        self.lock().retain(|_, slot| {
            let used = *slot.used.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::strong_count(slot) > 1 || now.duration_since(used) < KEEP
        });
    }

    async fn current(
        &self,
        namespace: &str,
        position: &Position,
        held: &mut Held,
    ) -> anyhow::Result<Arc<State>> {
        if let Some(state) = held.state.as_ref().filter(|state| state.is_at(position)) {
            return Ok(Arc::clone(state));
        }
        if let Some(next) = held.next {
            sleep_until(next).await;
        }
        let begun = Instant::now();
        let mut tx = self.store.read().await?;
        let full = full_state(&mut tx, namespace).await?;
        drop(tx);
        let (namespace, before, seen) = (namespace.to_owned(), held.state.clone(), held.seen);
        let now = self.store.now_ms();
        // Writing a large state as JSON takes long enough to hold up other sessions.
        let written = tokio::task::spawn_blocking(move || {
            let (epoch, version) = (full.epoch.as_str().into(), full.version);
            let objects = Objects::from(full);
            let groups = Group::ALL.map(|group| {
                let before = before.as_ref().map(|before| before.group(group));
                let written = Objectified::new(&namespace, &objects, group);
                next(before, &written, seen[group as usize], now)
            });
            State { epoch, version, groups }
        });
        let state = Arc::new(written.await?);
        held.state = Some(Arc::clone(&state));
        held.next = Some(Instant::now() + begun.elapsed().max(PAUSE));
        Ok(state)
    }

    fn slot(&self, namespace: &str) -> Arc<Slot> {
        let mut slots = self.lock();
        let slot = slots.entry(namespace.to_owned()).or_insert_with(|| {
            Arc::new(Slot { held: tokio::sync::Mutex::default(), used: Mutex::new(Instant::now()) })
        });
        *slot.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        Arc::clone(slot)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Slot>>> {
        // Nothing inside the lock can leave the map half changed.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A group as it is now: the one `before` where nothing changed, and with a later time otherwise.
fn next(before: Option<&GroupState>, written: &Objectified, seen: i64, now: i64) -> GroupState {
    let md5 = written.digest();
    match before {
        Some(before) if *before.md5 == *md5 => before.clone(),
        before => {
            let last = before.map_or(seen, |before| before.modified.max(seen));
            let modified = now.max(last.saturating_add(1));
            GroupState { md5: md5.into(), modified, text: written.full() }
        }
    }
}

// === impl Held ===

impl Held {
    /// The groups in which `state` differs from what a gateway knows; and the state with later times
    /// where the gateway's are not earlier.
    fn judge(&mut self, state: &State, known: &Known, now: i64) -> (Option<State>, Vec<Group>) {
        let latest = now.saturating_add(MAX_AHEAD_MS);
        let (mut overtaken, mut differing) = (None, Vec::new());
        for (group, has) in known.iter() {
            let seen = &mut self.seen[group as usize];
            *seen =
                has.modified.filter(|time| *time <= latest).map_or(*seen, |time| time.max(*seen));
            let ours = state.group(group);
            if *ours.md5 == *has.md5 {
                continue;
            }
            differing.push(group);
            if ours.modified <= *seen {
                let state = overtaken.get_or_insert_with(|| state.clone());
                state.groups[group as usize].modified = now.max(seen.saturating_add(1));
            }
        }
        (overtaken, differing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::QueryArgs;

    fn state(modified: i64) -> State {
        let group = GroupState { md5: "m".into(), modified, text: Bytes::from_static(b"[]") };
        State { epoch: "e".into(), version: 1, groups: std::array::from_fn(|_| group.clone()) }
    }

    /// A question in which all groups but RULE are as they are.
    fn known(rule: &str) -> Known {
        let one = |group: &Group| {
            let value = if *group == Group::Rule { rule } else { "m,5" };
            format!("{}={value}", group.name())
        };
        let text = Group::ALL.iter().map(one).collect::<Vec<_>>().join("&");
        Known::read(&QueryArgs::parse(text.as_bytes())).unwrap()
    }

    #[test]
    fn what_a_newer_gateway_has_is_named_and_overtaken() {
        let mut held = Held::default();
        let (overtaken, differing) = held.judge(&state(10), &known("other,5"), 100);
        assert_eq!((overtaken.is_none(), differing), (true, vec![Group::Rule]));
        let (overtaken, differing) = held.judge(&state(10), &known("other,5000"), 100);
        assert_eq!(differing, [Group::Rule]);
        let overtaken = overtaken.unwrap();
        assert_eq!(overtaken.group(Group::Rule).modified, 5001);
        assert_eq!(overtaken.group(Group::Selector).modified, 10);
        // The next state of the group is later still, though the clock is not.
        let written = Objectified::new("ns", &Objects::default(), Group::Rule);
        assert_eq!(
            next(Some(overtaken.group(Group::Rule)), &written, held.seen[2], 100).modified,
            5002
        );
        assert_eq!(next(None, &written, held.seen[2], 100).modified, 5001);
    }

    #[test]
    fn an_equal_digest_is_no_difference_whatever_its_time() {
        let mut held = Held::default();
        for rule in ["m,0", "m,99999", "m,x"] {
            let (overtaken, differing) = held.judge(&state(10), &known(rule), 100);
            assert_eq!((overtaken.is_none(), differing), (true, Vec::new()), "{rule}");
        }
        assert_eq!(held.seen[Group::Rule as usize], 99_999);
    }

    #[test]
    fn a_time_that_no_clock_shows_is_not_believed() {
        let mut held = Held::default();
        let rule = format!("other,{}", i64::MAX);
        let (overtaken, differing) = held.judge(&state(10), &known(&rule), 100);
        assert_eq!((overtaken.is_none(), differing), (true, vec![Group::Rule]));
        assert_eq!(held.seen[Group::Rule as usize], 0);
    }

    #[test]
    fn what_did_not_change_keeps_its_time() {
        let written = Objectified::new("ns", &Objects::default(), Group::Rule);
        let first = next(None, &written, 0, 100);
        assert_eq!((first.modified, next(Some(&first), &written, 0, 200).modified), (100, 100));
    }
}
