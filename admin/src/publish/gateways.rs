//! What admin knows of the gateways that are or were connected.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use longmen_core::sync::GatewayFault;
use serde::Serialize;

use super::missing;

/// Most gateways that are remembered after they went.
const MAX_GONE: usize = 1024;

/// Most faults that are kept of one gateway.
const MAX_FAULTS: usize = 200;

/// One connection of a gateway. Times are in milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GatewayView {
    /// Number of the connection, unique while this admin runs.
    pub id: u64,
    /// The namespace it serves.
    pub namespace: String,
    /// Its address, and the port it serves on if it said so.
    pub address: String,
    /// `longmen` or `stock`.
    pub kind: &'static str,
    /// Whether the connection is open.
    pub connected: bool,
    /// Since when it is open, or since when it is not.
    pub since: i64,
    /// What it reported of its machine, JSON text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub info: Option<String>,
    /// When it last reported that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported_at: Option<i64>,
    /// The epoch of `version`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<String>,
    /// The version that is in force on it; stock gateways do not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// When it said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acknowledged_at: Option<i64>,
    /// What it could not take over at that version, at most 200.
    pub faults: Vec<GatewayFault>,
}

/// The registry, by number of the connection. Connections are bounded by whoever admits them,
/// those that went by `MAX_GONE`.
#[derive(Debug, Default)]
pub struct Gateways {
    entries: Mutex<BTreeMap<u64, GatewayView>>,
}

impl Gateways {
    /// All of them, the oldest connection first.
    #[must_use]
    pub fn list(&self) -> Vec<GatewayView> {
        self.lock().values().cloned().collect()
    }

    /// The open connections of one namespace.
    #[must_use]
    pub fn connected(&self, namespace: &str) -> Vec<GatewayView> {
        let entries = self.lock();
        let of_namespace =
            entries.values().filter(|view| view.connected && view.namespace == namespace);
        of_namespace.cloned().collect()
    }

    pub(super) fn opened(&self, view: GatewayView) {
        self.lock().insert(view.id, view);
    }

    pub(super) fn closed(&self, id: u64, now_ms: i64) {
        let mut entries = self.lock();
        if let Some(view) = entries.get_mut(&id) {
            (view.connected, view.since) = (false, now_ms);
        }
        let gone = entries.values().filter(|view| !view.connected);
        let excess = gone.clone().count().saturating_sub(MAX_GONE);
        if excess > 0 {
            let mut oldest: Vec<(i64, u64)> = gone.map(|view| (view.since, view.id)).collect();
            oldest.sort_unstable();
            for (_, id) in oldest.into_iter().take(excess) {
                entries.remove(&id);
            }
        }
    }

    pub(super) fn reported(&self, id: u64, info: String, now_ms: i64) {
        if let Some(view) = self.lock().get_mut(&id) {
            (view.info, view.reported_at) = (Some(info), Some(now_ms));
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
        let mut told = None;
        if let Some(view) = self.lock().get_mut(&id) {
            (view.epoch, view.version) = (Some(epoch), Some(version));
            view.acknowledged_at = Some(now_ms);
            let before = std::mem::replace(&mut view.faults, faults);
            if missing::fresh(&view.faults, &before).next().is_some() {
                told = Some((view.clone(), before));
            }
        }
        // Not while others wait for the lock.
        if let Some((view, before)) = told {
            missing::warn_of_faults(&view, &before);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, GatewayView>> {
        // Every change of an entry is complete, so a panic elsewhere leaves nothing half done.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::publish) fn view(id: u64) -> GatewayView {
        GatewayView {
            id,
            namespace: "ns".into(),
            address: "10.0.0.1:9195".into(),
            kind: "longmen",
            connected: true,
            since: 1,
            info: None,
            reported_at: None,
            epoch: None,
            version: None,
            acknowledged_at: None,
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
        let seen = &gateways.connected("ns")[0];
        assert_eq!(
            (seen.version, seen.reported_at, seen.acknowledged_at),
            (Some(7), Some(2), Some(3))
        );
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
}
