//! What is told of gateways.

use std::collections::BTreeMap;

use longmen_core::sync::GatewayFault;
use longmen_db::Heads;
use longmen_db::repository::gateway::{GatewayRow, InForceRow};
use serde::Serialize;
use utoipa::ToSchema;

use super::head;
use crate::publish::address;

/// Gateways, and what is in force where.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct GatewaysResponse {
    /// How many gateways the filter leaves, whatever part of them is listed.
    pub(super) total: i64,
    /// What is in force in each namespace that has connected gateways.
    #[schema(inline)]
    pub(super) namespaces: Vec<NamespaceResponse>,
    /// The gateways, by namespace and address.
    #[schema(inline)]
    pub(super) rows: Vec<GatewayResponse>,
}

/// What is in force on the connected gateways of one namespace.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NamespaceResponse {
    /// Its id.
    namespace: String,
    /// The epoch of `version`.
    epoch: String,
    /// The version that it stands at.
    version: u64,
    /// How many gateways are connected.
    gateways: i64,
    /// How many of them have that version in force.
    in_force: i64,
    /// How many of them do not say what they have.
    silent: i64,
    /// The same in words, such as `all 3 gateways on version 17`.
    summary: String,
}

/// How a gateway stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
enum State {
    /// The newest version is in force on it.
    InForce,
    /// It has an older one.
    Behind,
    /// It does not say what it has, as stock gateways.
    Silent,
    /// It is not connected.
    Gone,
}

/// A gateway. Times are in milliseconds since 1970-01-01 UTC, by the clock of its admin.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct GatewayResponse {
    /// Its own name for itself, made up when it starts; that of its connection where it has none.
    id: String,
    /// The namespace it serves.
    pub(super) namespace: String,
    /// Its address, with the port it serves on if it said so.
    address: String,
    /// Its host.
    host: String,
    /// The port it serves on, if it said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<i32>,
    /// `longmen` or `stock`.
    kind: String,
    /// How it is connected: `websocket` or `http`.
    transport: String,
    /// The admin it is, or was, connected to: `host:port`.
    admin: String,
    /// How it stands.
    #[schema(inline)]
    state: State,
    /// Whether it is connected.
    connected: bool,
    /// Since when it is, or is not.
    since: i64,
    /// The epoch of `version`.
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<String>,
    /// The version that is in force on it; stock gateways do not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<i64>,
    /// Since when that version is in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_force_since: Option<i64>,
    /// The version that its namespace stands at.
    current: u64,
    /// How many versions it is behind; absent where it does not say or counts in another epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    lag: Option<u64>,
    /// For how long the first version that it lacks has been there, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    lag_seconds: Option<i64>,
    /// What it could not take over at that version, at most 200.
    #[schema(inline, value_type = Vec<FaultSchema>)]
    pub(super) faults: Vec<GatewayFault>,
    /// When it was last heard.
    last_heard: i64,
    /// What it reported of its machine, JSON text.
    #[serde(skip_serializing_if = "Option::is_none")]
    info: Option<String>,
}

/// An object that a gateway could not take over; its last good state stays in force.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it only describes the members of `GatewayFault`")]
struct FaultSchema {
    /// The group of the object, such as `RULE`.
    group: String,
    /// Its id; of a plugin the name.
    id: String,
    /// The plugin it belongs to.
    plugin: String,
    /// What is wrong: field, value, expectation.
    text: String,
}

impl GatewayResponse {
    pub(super) fn new(row: GatewayRow, heads: &Heads) -> Self {
        let current = head(heads, &row.namespace_id);
        let comparable = row.epoch.as_deref() == Some(heads.epoch.as_str());
        let version = row.version.filter(|_| comparable);
        let lag = version
            .map(|version| current.saturating_sub(u64::try_from(version).unwrap_or_default()));
        Self {
            id: row.id,
            namespace: row.namespace_id,
            address: address(&row.host, row.port),
            host: row.host,
            port: row.port,
            kind: row.kind,
            transport: row.transport,
            admin: row.admin_name,
            state: State::Silent,
            connected: row.connected,
            since: row.since_ms,
            epoch: row.epoch,
            version: row.version,
            in_force_since: row.in_force_ms,
            current,
            lag,
            lag_seconds: lag.map(|_| 0),
            faults: serde_json::from_str(&row.faults).unwrap_or_default(),
            last_heard: row.heard_ms,
            info: row.info,
        }
    }

    pub(super) fn is_ours_and_connected(&self) -> bool {
        self.connected && self.kind == "longmen"
    }

    /// The first version that it lacks, if it lacks one.
    pub(super) fn first_missing(&self) -> Option<i64> {
        self.lag.filter(|lag| *lag > 0).and(self.version).map(|version| version + 1)
    }

    /// Notes since when that version has been there; unknown where it is no longer in the history.
    pub(super) fn lags_since(&mut self, at_ms: Option<i64>, now_ms: i64) {
        self.lag_seconds = at_ms.map(|at_ms| (now_ms - at_ms).max(0) / 1000);
    }

    /// With its state.
    pub(super) fn judged(self) -> Self {
        let state = match (self.connected, self.version, self.lag) {
            (false, ..) => State::Gone,
            (true, None, _) => State::Silent,
            (true, Some(_), Some(0)) => State::InForce,
            // Another epoch is behind in any case.
            (true, Some(_), _) => State::Behind,
        };
        Self { state, ..self }
    }
}

impl NamespaceResponse {
    /// One for each namespace, by id.
    pub(super) fn of(rows: &[InForceRow], heads: &Heads) -> Vec<Self> {
        let mut by_namespace: BTreeMap<&str, Vec<&InForceRow>> = BTreeMap::new();
        for row in rows {
            by_namespace.entry(&row.namespace_id).or_default().push(row);
        }
        by_namespace.into_iter().map(|(name, rows)| Self::new(name, &rows, heads)).collect()
    }

    fn new(namespace: &str, rows: &[&InForceRow], heads: &Heads) -> Self {
        let version = head(heads, namespace);
        let count = |these: &dyn Fn(&InForceRow) -> bool| -> i64 {
            rows.iter().filter(|row| these(row)).map(|row| row.gateways).sum()
        };
        let gateways = count(&|_| true);
        let silent = count(&|row| row.version.is_none());
        // Ahead of what was read here: it was told of a commit since.
        let in_force = count(&|row| {
            row.epoch.as_deref() == Some(heads.epoch.as_str())
                && row.version.is_some_and(|at| u64::try_from(at).unwrap_or_default() >= version)
        });
        let telling = gateways - silent;
        let mut summary = match (telling, in_force) {
            (0, _) => format!("no gateway says which version it has, expected {version}"),
            (1, 1) => format!("the only gateway that says so is on version {version}"),
            (all, now) if all == now => format!("all {all} gateways on version {version}"),
            (all, now) => format!("{now} of {all} gateways on version {version}"),
        };
        if silent == 0 && telling == 1 && in_force == 1 {
            summary = format!("the gateway is on version {version}");
        } else if silent > 0 && telling > 0 {
            summary.push_str(&format!(", {silent} more do not say"));
        }
        Self {
            namespace: namespace.to_owned(),
            epoch: heads.epoch.clone(),
            version,
            gateways,
            in_force,
            silent,
            summary,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(epoch: Option<&str>, version: Option<i64>, gateways: i64) -> InForceRow {
        InForceRow {
            namespace_id: "n".to_owned(),
            epoch: epoch.map(str::to_owned),
            version,
            gateways,
        }
    }

    #[test]
    fn a_namespace_says_in_words_who_lags() {
        let heads = Heads { epoch: "e".to_owned(), versions: vec![("n".to_owned(), 7)] };
        let summary = |rows: &[InForceRow]| NamespaceResponse::of(rows, &heads).remove(0).summary;
        let now = row(Some("e"), Some(7), 3);
        assert_eq!(summary(std::slice::from_ref(&now)), "all 3 gateways on version 7");
        assert_eq!(summary(&[row(Some("e"), Some(7), 1)]), "the gateway is on version 7");
        let behind = [now.clone(), row(Some("e"), Some(6), 1), row(Some("d"), Some(9), 1)];
        assert_eq!(summary(&behind), "3 of 5 gateways on version 7");
        let told = summary(&[now, row(None, None, 2)]);
        assert_eq!(told, "all 3 gateways on version 7, 2 more do not say");
    }
}
