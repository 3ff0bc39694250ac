//! Frames of a change set, from the rows of `config_change`. No I/O here.

use std::collections::{HashMap, HashSet};

use longmen_core::model::{
    AppAuth, MetaData, Plugin, ProxyApiKey, ProxySelector, Rule, Selector, UpstreamList,
};
use longmen_core::sync::{Event, Group};
use longmen_db::{ChangeRow, Operation};

use super::hub::{Dialect, Part};
use super::object::{Change, Object};
use super::refreshes::Kind;
use super::text::FrameWriter;

/// What a `refresh` row asks to be sent again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Scope {
    /// Everything of the namespace.
    Namespace,
    /// One plugin (by id or name) with its selectors, upstreams and rules.
    Plugin(String),
    /// The upstream list of one selector.
    Upstreams(String),
    /// All objects of one group.
    Group(Group),
}

/// A row that gives no frame although it should.
#[derive(Debug, thiserror::Error)]
#[error("change of {kind} {id}: {reason}")]
pub(super) struct RowError {
    /// Name of the group.
    pub(super) kind: String,
    /// Id of the object.
    pub(super) id: String,
    /// What is wrong with the row.
    pub(super) reason: RowFault,
}

/// What can be wrong with a row.
#[derive(Debug, thiserror::Error)]
pub(super) enum RowFault {
    /// Neither of the two objects is there.
    #[error("no object stored, expected wire JSON in before or after")]
    Empty,
    /// An object cannot be read.
    #[error("stored object is not wire JSON: {0}")]
    Unreadable(#[from] serde_json::Error),
}

/// Jars (Base64) by the id of their plugin; the log is without them.
pub(super) type Jars = HashMap<String, String>;

/// Frames for stock gateways, exactly as a stock admin sends them, and the rows left out.
///
/// Rows without an event give nothing. Consecutive rows of one group and event share a frame where
/// the stock admin batches them: always, but selectors and rules only when they go, and upstream
/// lists and proxy selectors never.
///
/// Source: recorded from ShenYu 2.7.1 (`websocket/changes.jsonl`).
pub(super) fn stock(
    namespace: &str,
    rows: &[ChangeRow],
    jars: &Jars,
) -> (Vec<Part>, Vec<RowError>) {
    let context = Context { jars: Some(jars), ..Context::new(namespace, Dialect::Stock, rows) };
    let (mut parts, mut faults) = (Vec::new(), Vec::new());
    let mut writer = FrameWriter::stock();
    let flush = |writer: &mut FrameWriter, parts: &mut Vec<Part>| {
        let frames = std::mem::replace(writer, FrameWriter::stock()).plain();
        if !frames.is_empty() {
            parts.push(Part::Frames(frames));
        }
    };
    for row in rows {
        let Some(event) = row.event else { continue };
        if row.operation == Operation::Refresh {
            flush(&mut writer, &mut parts);
            parts.push(Part::Refresh(Kind::Again(scope(row))));
            continue;
        }
        let Some(group) = row.group() else { continue };
        match context.object(group, row) {
            Ok(None) => {}
            Ok(Some(object)) if batched(group, event) => writer.join(group, event, &object),
            Ok(Some(object)) => writer.alone(group, event, &object),
            Err(reason) => faults.push(fault(row, reason)),
        }
    }
    flush(&mut writer, &mut parts);
    (parts, faults)
}

/// Frames for our gateways, and the rows that could not be read.
///
/// Events follow the operation: UPDATE or DELETE. A set with a `refresh` row or with an unreadable
/// one becomes a full refresh, so that a gateway is exact either way.
pub(super) fn ours(
    namespace: &str,
    epoch: &str,
    version: u64,
    rows: &[ChangeRow],
) -> (Vec<Part>, Vec<RowError>) {
    let context = Context::new(namespace, Dialect::Ours, rows);
    if rows.iter().any(|row| row.operation == Operation::Refresh) {
        return (vec![Part::Refresh(Kind::Ours)], Vec::new());
    }
    let (mut writer, mut faults) = (FrameWriter::ours(), Vec::new());
    for row in rows {
        let Some(group) = row.group() else { continue };
        let deleted = row.operation == Operation::Delete;
        let event = if deleted { Event::Delete } else { Event::Update };
        match context.object(group, row) {
            Ok(None) => {}
            Ok(Some(object)) => writer.join(group, event, &object),
            Err(reason) => faults.push(fault(row, reason)),
        }
    }
    if faults.is_empty() {
        (vec![Part::Frames(writer.change_set(epoch, version))], faults)
    } else {
        (vec![Part::Refresh(Kind::Ours)], faults)
    }
}

fn fault(row: &ChangeRow, reason: RowFault) -> RowError {
    RowError { kind: row.kind.clone(), id: row.object_id.clone(), reason }
}

/// The plugins of a set whose frames for stock gateways carry a jar, where there is one.
pub(super) fn with_jars(rows: &[ChangeRow]) -> Vec<&str> {
    let told = rows.iter().filter(|row| {
        let sent =
            row.event.is_some() && matches!(row.operation, Operation::Create | Operation::Update);
        sent && row.group() == Some(Group::Plugin)
    });
    told.map(|row| row.object_id.as_str()).collect()
}

const fn batched(group: Group, event: Event) -> bool {
    match group {
        Group::ProxySelector | Group::DiscoverUpstream => false,
        Group::Selector | Group::Rule => matches!(event, Event::Delete),
        Group::AppAuth | Group::Plugin | Group::MetaData | Group::AiProxyApiKey => true,
    }
}

fn scope(row: &ChangeRow) -> Scope {
    match row.group() {
        Some(Group::Plugin) if !row.object_id.is_empty() => Scope::Plugin(row.object_id.clone()),
        Some(Group::DiscoverUpstream) if !row.object_id.is_empty() => {
            Scope::Upstreams(row.object_id.clone())
        }
        Some(group) => Scope::Group(group),
        None => Scope::Namespace,
    }
}

struct Context<'a> {
    namespace: &'a str,
    dialect: Dialect,
    removed_selectors: HashSet<String>,
    jars: Option<&'a Jars>,
}

impl<'a> Context<'a> {
    fn new(namespace: &'a str, dialect: Dialect, rows: &[ChangeRow]) -> Self {
        let removed = rows.iter().filter(|row| {
            row.operation == Operation::Delete && row.group() == Some(Group::Selector)
        });
        let removed_selectors = removed.map(|row| row.object_id.clone()).collect();
        Self { namespace, dialect, removed_selectors, jars: None }
    }

    /// The object's JSON; `None` if the dialect has no use for it.
    fn object(&self, group: Group, row: &ChangeRow) -> Result<Option<String>, RowFault> {
        match group {
            Group::AppAuth => self.written::<AppAuth>(row),
            Group::Plugin => self.written::<Plugin>(row),
            Group::Rule => self.written::<Rule>(row),
            Group::Selector => self.written::<Selector>(row),
            Group::MetaData => self.written::<MetaData>(row),
            Group::ProxySelector => self.written::<ProxySelector>(row),
            Group::AiProxyApiKey => self.written::<ProxyApiKey>(row),
            Group::DiscoverUpstream => self.written::<UpstreamList>(row),
        }
    }

    fn written<T: Object>(&self, row: &ChangeRow) -> Result<Option<String>, RowFault> {
        let deleted = row.operation == Operation::Delete;
        let (before, after) = (row.before.as_deref(), row.after.as_deref());
        let text = if deleted { before.or(after) } else { after.or(before) };
        let mut object: T = serde_json::from_str(text.ok_or(RowFault::Empty)?)?;
        object.complete(self.namespace);
        match self.dialect {
            Dialect::Stock => {
                let before = before.filter(|_| !deleted);
                let before =
                    before.map(serde_json::from_str::<T>).transpose()?.map(|mut before| {
                        before.complete(self.namespace);
                        before
                    });
                let removed_selectors = &self.removed_selectors;
                let jar = self.jars.and_then(|jars| jars.get(&row.object_id)).map(String::as_str);
                object.after_change(Change { before, deleted, removed_selectors, jar });
            }
            Dialect::Ours if !object.wanted_by_ours() => return Ok(None),
            Dialect::Ours => object.for_ours(),
        }
        Ok(Some(serde_json::to_string(&object)?))
    }
}

#[cfg(test)]
mod tests;
