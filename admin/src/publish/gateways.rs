//! What admin knows of the gateways that are connected to it, and of those that just went.
//!
//! What is heard is kept here; a task writes it into the table of all admins once in a while
//! (`reports.rs`), a row at most once a second, so that an acknowledgement costs no statement.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use longmen_core::sync::GatewayFault;
use longmen_db::repository::gateway::GatewayRow;

use super::missing;

/// Most gateways that are remembered after they went and before that was written.
const MAX_GONE: usize = 1024;

/// Most faults that are kept of one gateway.
const MAX_FAULTS: usize = 200;

/// Most bytes that are kept of the text of a fault, and of a report about a machine.
const MAX_TEXT_BYTES: usize = 2_048;
const MAX_INFO_BYTES: usize = 8_192;

/// How old the written time of its last word may be while it goes on talking, in milliseconds.
const HEARD_MS: i64 = 10_000;

/// One connection of a gateway. Times are in milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, PartialEq)]
pub struct GatewayView {
    /// Number of the connection, unique while this admin runs.
    pub id: u64,
    /// The name of the gateway for itself; that of the connection where it has none.
    pub name: String,
    /// The gateway's own count of its sessions; 0 where it does not count.
    pub session: i64,
    /// The namespace it serves.
    pub namespace: String,
    /// Its host.
    pub host: String,
    /// The port it serves on, if it said so.
    pub port: Option<u16>,
    /// `longmen` or `stock`.
    pub kind: &'static str,
    /// How it is connected, such as `websocket`.
    pub transport: &'static str,
    /// Whether the connection is open.
    pub connected: bool,
    /// Since when it is open, or since when it is not.
    pub since: i64,
    /// What it reported of its machine, JSON text.
    pub info: Option<String>,
    /// When it was last heard.
    pub heard_at: i64,
    /// The epoch of `version`.
    pub epoch: Option<String>,
    /// The version that is in force on it; stock gateways do not say.
    pub version: Option<u64>,
    /// Since when it is.
    pub in_force_since: Option<i64>,
    /// What it could not take over at that version, at most 200.
    pub faults: Vec<GatewayFault>,
}

impl GatewayView {
    /// Its address, with the port it serves on if it said so.
    #[must_use]
    pub fn address(&self) -> String {
        address(&self.host, self.port)
    }

    fn row(&self, admin_id: &str, admin_name: &str) -> GatewayRow {
        GatewayRow {
            id: self.name.clone(),
            session: self.session,
            admin_id: admin_id.to_owned(),
            admin_name: admin_name.to_owned(),
            namespace_id: self.namespace.clone(),
            host: self.host.clone(),
            port: self.port.map(i32::from),
            kind: self.kind.to_owned(),
            transport: self.transport.to_owned(),
            connected: self.connected,
            since_ms: self.since,
            epoch: self.epoch.clone(),
            version: self.version.map(|version| i64::try_from(version).unwrap_or(i64::MAX)),
            in_force_ms: self.in_force_since,
            heard_ms: self.heard_at,
            info: self.info.clone(),
            faults: serde_json::to_string(&self.faults).unwrap_or_else(|_| "[]".to_owned()),
        }
    }
}

/// Host and port as one text.
pub(crate) fn address(host: &str, port: Option<impl std::fmt::Display>) -> String {
    match port {
        Some(port) if host.contains(':') => format!("[{host}]:{port}"),
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// The registry, by number of the connection. Connections are bounded by whoever admits them,
/// those that went by `MAX_GONE`.
#[derive(Debug, Default)]
pub struct Gateways {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    entries: BTreeMap<u64, GatewayView>,
    /// Those of which something is to be written.
    fresh: BTreeSet<u64>,
    /// The time of the last word that was written, by number.
    written: BTreeMap<u64, i64>,
    /// The last one that was taken to be written: the next is one after it.
    last: u64,
}

impl Gateways {
    /// All of them, the oldest connection first.
    #[must_use]
    pub fn list(&self) -> Vec<GatewayView> {
        self.lock().entries.values().cloned().collect()
    }

    /// The open connections of one namespace.
    #[must_use]
    pub fn connected(&self, namespace: &str) -> Vec<GatewayView> {
        let known = self.lock();
        let of_namespace =
            known.entries.values().filter(|view| view.connected && view.namespace == namespace);
        of_namespace.cloned().collect()
    }

    pub(super) fn opened(&self, view: GatewayView) {
        let mut known = self.lock();
        known.fresh.insert(view.id);
        known.entries.insert(view.id, view);
    }

    pub(super) fn closed(&self, id: u64, now_ms: i64) {
        let mut known = self.lock();
        if let Some(view) = known.entries.get_mut(&id) {
            (view.connected, view.since) = (false, now_ms);
            known.fresh.insert(id);
        }
        let gone = known.entries.values().filter(|view| !view.connected);
        let excess = gone.clone().count().saturating_sub(MAX_GONE);
        if excess > 0 {
            let mut oldest: Vec<(i64, u64)> = gone.map(|view| (view.since, view.id)).collect();
            oldest.sort_unstable();
            for (_, id) in oldest.into_iter().take(excess) {
                known.forget(id);
            }
        }
    }

    /// Notes that a gateway was heard. What it said of its machine comes with it.
    pub(super) fn reported(&self, id: u64, mut info: String, now_ms: i64) {
        cut(&mut info, MAX_INFO_BYTES);
        let mut known = self.lock();
        let Some(view) = known.entries.get_mut(&id) else { return };
        view.heard_at = now_ms;
        let news = view.info.as_ref() != Some(&info);
        view.info = Some(info);
        if news || known.written.get(&id).is_none_or(|written| now_ms - written >= HEARD_MS) {
            known.fresh.insert(id);
        }
    }

    pub(super) fn acknowledged(
        &self,
        id: u64,
        epoch: String,
        version: u64,
        mut faults: Vec<GatewayFault>,
        now_ms: i64,
    ) {
        faults.truncate(MAX_FAULTS);
        for fault in &mut faults {
            cut(&mut fault.text, MAX_TEXT_BYTES);
        }
        let mut told = None;
        let mut known = self.lock();
        if let Some(view) = known.entries.get_mut(&id) {
            view.heard_at = now_ms;
            if view.version != Some(version) || view.epoch.as_ref() != Some(&epoch) {
                (view.epoch, view.version) = (Some(epoch), Some(version));
                view.in_force_since = Some(now_ms);
            }
            let before = std::mem::replace(&mut view.faults, faults);
            if missing::fresh(&view.faults, &before).next().is_some() {
                told = Some((view.clone(), before));
            }
            known.fresh.insert(id);
        }
        drop(known);
        // Not while others wait for the lock.
        if let Some((view, before)) = told {
            missing::warn_of_faults(&view, &before);
        }
    }

    /// Takes what is to be written, at most `most` rows, each gateway once. Whoever could not write them
    /// gives them back by [`Gateways::put_back`]; those that went are forgotten once they are taken.
    pub(super) fn take(&self, most: usize, admin_id: &str, admin_name: &str) -> Taken {
        let mut known = self.lock();
        let (after, last) = ((Bound::Excluded(known.last), Bound::Unbounded), known.last);
        let ids: Vec<u64> = known
            .fresh
            .range(after)
            .chain(known.fresh.range(..=last))
            .take(most)
            .copied()
            .collect();
        let mut by_name: BTreeMap<String, GatewayRow> = BTreeMap::new();
        for id in &ids {
            known.fresh.remove(id);
            known.last = *id;
            let Some(view) = known.entries.get(id) else { continue };
            let (row, heard_at) = (view.row(admin_id, admin_name), view.heard_at);
            known.written.insert(*id, heard_at);
            // The later session counts, and of one that came back in the same moment the open one.
            let rank = |row: &GatewayRow| (row.session, row.connected);
            match by_name.get(&row.id) {
                Some(other) if rank(other) > rank(&row) => {}
                _ => drop(by_name.insert(row.id.clone(), row)),
            }
        }
        Taken { ids, rows: by_name.into_values().collect() }
    }

    /// Takes back what could not be written.
    pub(super) fn put_back(&self, taken: &Taken) {
        let mut known = self.lock();
        for id in &taken.ids {
            if known.entries.contains_key(id) {
                known.fresh.insert(*id);
            }
        }
    }

    /// Forgets those that went and whose going was written.
    pub(super) fn written(&self, taken: &Taken) {
        let mut known = self.lock();
        for id in &taken.ids {
            if known.entries.get(id).is_some_and(|view| !view.connected)
                && !known.fresh.contains(id)
            {
                known.forget(*id);
            }
        }
    }

    /// Has all of them written again: the others took this admin for gone.
    pub(super) fn write_all(&self) {
        let mut known = self.lock();
        known.fresh = known.entries.keys().copied().collect();
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // Every change of an entry is complete, so a panic elsewhere leaves nothing half done.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was taken to be written.
#[derive(Debug)]
pub(super) struct Taken {
    ids: Vec<u64>,
    /// The rows, by id.
    pub(super) rows: Vec<GatewayRow>,
}

impl Known {
    fn forget(&mut self, id: u64) {
        self.entries.remove(&id);
        self.fresh.remove(&id);
        self.written.remove(&id);
    }
}

/// Cuts a text at a character.
fn cut(text: &mut String, most: usize) {
    if text.len() > most {
        let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::publish) fn view(id: u64) -> GatewayView {
        GatewayView {
            id,
            name: id.to_string(),
            session: 0,
            namespace: "ns".into(),
            host: "10.0.0.1".into(),
            port: Some(9195),
            kind: "longmen",
            transport: "websocket",
            connected: true,
            since: 1,
            info: None,
            heard_at: 1,
            epoch: None,
            version: None,
            in_force_since: None,
            faults: Vec::new(),
        }
    }

    #[test]
    fn a_gateway_is_followed_from_its_first_to_its_last_word() {
        let gateways = Gateways::default();
        gateways.opened(view(1));
        gateways.reported(1, "{}".into(), 2);
        gateways.acknowledged(1, "e".into(), 7, Vec::new(), 3);
        gateways.acknowledged(2, "e".into(), 8, Vec::new(), 3);
        gateways.acknowledged(1, "e".into(), 7, Vec::new(), 5);
        let seen = &gateways.connected("ns")[0];
        assert_eq!((seen.version, seen.in_force_since, seen.heard_at), (Some(7), Some(3), 5));
        assert!(gateways.connected("other").is_empty());
        gateways.closed(1, 9);
        assert!(gateways.connected("ns").is_empty());
        assert_eq!(gateways.list()[0].since, 9);
    }

    #[test]
    fn those_that_went_first_are_forgotten_first() {
        let gateways = Gateways::default();
        for id in 0..MAX_GONE as u64 + 10 {
            gateways.opened(view(id));
        }
        for id in (0..MAX_GONE as u64 + 10).rev() {
            gateways.closed(id, 10_000 - i64::try_from(id).unwrap());
        }
        let left = gateways.list();
        assert_eq!(left.len(), MAX_GONE);
        assert_eq!(left.last().unwrap().id, MAX_GONE as u64 - 1);
    }

    #[test]
    fn many_acknowledgements_are_one_row_and_rows_take_turns() {
        let gateways = Gateways::default();
        for id in 1..=3 {
            gateways.opened(view(id));
        }
        let taken = |most| -> Vec<String> {
            gateways.take(most, "a", "host").rows.into_iter().map(|row| row.id).collect()
        };
        assert_eq!(taken(9), ["1", "2", "3"]);
        for version in 0..500 {
            for id in 1..=3 {
                gateways.acknowledged(id, "e".into(), version, Vec::new(), 3);
            }
        }
        assert_eq!((taken(2), taken(2)), (vec!["1".to_owned(), "2".into()], vec!["3".to_owned()]));
        gateways.acknowledged(1, "e".into(), 501, Vec::new(), 4);
        gateways.acknowledged(2, "e".into(), 501, Vec::new(), 4);
        assert_eq!(taken(1), ["1"], "after the last comes the first");
        gateways.reported(3, "{}".into(), 5);
        gateways.acknowledged(1, "e".into(), 502, Vec::new(), 4);
        assert_eq!(
            (taken(1), taken(1), taken(1)),
            (vec!["2".into()], vec!["3".into()], vec!["1".into()])
        );
        gateways.reported(3, "{}".into(), HEARD_MS);
        assert!(taken(9).is_empty(), "nothing new, and its last word was written a moment ago");
        gateways.reported(3, "{}".into(), HEARD_MS + 5);
        assert_eq!(taken(9), ["3"]);
    }

    #[test]
    fn those_that_went_are_kept_until_that_is_written_and_the_later_session_counts() {
        let gateways = Gateways::default();
        let again = |id, session| GatewayView { name: "g".into(), session, ..view(id) };
        gateways.opened(again(1, 4));
        gateways.opened(again(2, 5));
        gateways.closed(1, 7);
        let taken = gateways.take(9, "a", "host");
        let [row] = &taken.rows[..] else { panic!("{taken:?}") };
        assert_eq!((row.session, row.connected), (5, true));
        gateways.put_back(&taken);
        let taken = gateways.take(9, "a", "host");
        assert_eq!(gateways.list().len(), 2);
        gateways.written(&taken);
        assert_eq!(gateways.list().len(), 1);
    }
}
