//! Frames of a change set, from the rows of `config_change`. No I/O here.

use std::collections::HashSet;

use axum::extract::ws::Utf8Bytes;
use longmen_core::model::{
    AppAuth, MetaData, Plugin, ProxyApiKey, ProxySelector, Rule, Selector, UpstreamList,
};
use longmen_core::sync::{Event, Group};

use super::object::{Change, Object};
use super::text::FrameWriter;

/// What a row says was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// The object is new.
    Create,
    /// The object replaces an older one.
    Update,
    /// The object is gone.
    Delete,
    /// Nothing changed; gateways are to be told again.
    Refresh,
}

/// One row of a change set, in order of its position.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    /// Name of the group; rows of other kinds are history only and give no frame.
    pub(super) kind: &'a str,
    /// Id of the object, for upstream lists that of their selector.
    pub(super) id: &'a str,
    /// What was done.
    pub(super) operation: Operation,
    /// The event for stock gateways; `None` means they are not told.
    pub(super) event: Option<Event>,
    /// The object before, wire JSON.
    pub(super) before: Option<&'a str>,
    /// The object after, wire JSON.
    pub(super) after: Option<&'a str>,
}

/// What a `refresh` row asks to be sent again.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// A part of what stock gateways get for a change set, in order.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum StockPart {
    /// Frames.
    Frames(Vec<Utf8Bytes>),
    /// A sequence of REFRESH frames, to be read from the tables.
    Refresh(Scope),
}

/// What our gateways get for a change set.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum OurFrames {
    /// The frames of the set, the last one marked as such.
    Frames(Vec<Utf8Bytes>),
    /// The set cannot be told in frames: a full refresh takes its place.
    FullRefresh,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Stock,
    Ours,
}

/// Frames for stock gateways, exactly as a stock admin sends them, and the rows left out.
///
/// Rows without an event give nothing. Consecutive rows of one group and event share a frame where
/// the stock admin batches them: always, but selectors and rules only when they go, and upstream
/// lists and proxy selectors never.
///
/// Source: recorded from ShenYu 2.7.1 (`websocket/changes.jsonl`).
pub(super) fn stock(namespace: &str, rows: &[Row<'_>]) -> (Vec<StockPart>, Vec<RowError>) {
    let context = Context::new(namespace, Dialect::Stock, rows);
    let (mut parts, mut faults) = (Vec::new(), Vec::new());
    let mut writer = FrameWriter::stock();
    let mut flush = |writer: &mut FrameWriter, parts: &mut Vec<StockPart>| {
        let frames = std::mem::replace(writer, FrameWriter::stock()).plain();
        if !frames.is_empty() {
            parts.push(StockPart::Frames(frames));
        }
    };
    for row in rows {
        let Some(event) = row.event else { continue };
        if row.operation == Operation::Refresh {
            flush(&mut writer, &mut parts);
            parts.push(StockPart::Refresh(scope(row)));
            continue;
        }
        let Some(group) = Group::from_name(row.kind) else { continue };
        match context.object(group, row) {
            Ok(object) if batched(group, event) => writer.join(group, event, &object),
            Ok(object) => writer.alone(group, event, &object),
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
    rows: &[Row<'_>],
) -> (OurFrames, Vec<RowError>) {
    let context = Context::new(namespace, Dialect::Ours, rows);
    if rows.iter().any(|row| row.operation == Operation::Refresh) {
        return (OurFrames::FullRefresh, Vec::new());
    }
    let (mut writer, mut faults) = (FrameWriter::ours(), Vec::new());
    for row in rows {
        let Some(group) = Group::from_name(row.kind) else { continue };
        let deleted = row.operation == Operation::Delete;
        let event = if deleted { Event::Delete } else { Event::Update };
        match context.object(group, row) {
            Ok(object) => writer.join(group, event, &object),
            Err(reason) => faults.push(fault(row, reason)),
        }
    }
    if faults.is_empty() {
        (OurFrames::Frames(writer.change_set(epoch, version)), faults)
    } else {
        (OurFrames::FullRefresh, faults)
    }
}

fn fault(row: &Row<'_>, reason: RowFault) -> RowError {
    RowError { kind: row.kind.to_owned(), id: row.id.to_owned(), reason }
}

const fn batched(group: Group, event: Event) -> bool {
    match group {
        Group::ProxySelector | Group::DiscoverUpstream => false,
        Group::Selector | Group::Rule => matches!(event, Event::Delete),
        Group::AppAuth | Group::Plugin | Group::MetaData | Group::AiProxyApiKey => true,
    }
}

fn scope(row: &Row<'_>) -> Scope {
    match Group::from_name(row.kind) {
        Some(Group::Plugin) if !row.id.is_empty() => Scope::Plugin(row.id.to_owned()),
        Some(Group::DiscoverUpstream) if !row.id.is_empty() => Scope::Upstreams(row.id.to_owned()),
        Some(group) => Scope::Group(group),
        None => Scope::Namespace,
    }
}

struct Context<'a> {
    namespace: &'a str,
    dialect: Dialect,
    removed_selectors: HashSet<String>,
}

impl<'a> Context<'a> {
    fn new(namespace: &'a str, dialect: Dialect, rows: &[Row<'_>]) -> Self {
        let removed = rows
            .iter()
            .filter(|row| row.operation == Operation::Delete && row.kind == Group::Selector.name());
        let removed_selectors = removed.map(|row| row.id.to_owned()).collect();
        Self { namespace, dialect, removed_selectors }
    }

    fn object(&self, group: Group, row: &Row<'_>) -> Result<String, RowFault> {
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

    fn written<T: Object>(&self, row: &Row<'_>) -> Result<String, RowFault> {
        let deleted = row.operation == Operation::Delete;
        let text = if deleted { row.before.or(row.after) } else { row.after.or(row.before) };
        let mut object: T = serde_json::from_str(text.ok_or(RowFault::Empty)?)?;
        object.complete(self.namespace);
        match self.dialect {
            Dialect::Stock => {
                let before = row.before.filter(|_| !deleted);
                let before =
                    before.map(serde_json::from_str::<T>).transpose()?.map(|mut before| {
                        before.complete(self.namespace);
                        before
                    });
                let removed_selectors = &self.removed_selectors;
                object.after_change(Change { before, deleted, removed_selectors });
            }
            Dialect::Ours => object.for_ours(),
        }
        Ok(serde_json::to_string(&object)?)
    }
}

#[cfg(test)]
mod tests;
