//! Frames of a whole namespace, from its state. No I/O here.

use std::collections::HashMap;

use axum::extract::ws::Utf8Bytes;
use longmen_core::model::{AppAuth, MetaData, Plugin, ProxyApiKey, Rule, Selector, UpstreamList};
use longmen_core::sync::{Event, Group};
use longmen_db::{Binding, FullState};

use super::changes::Scope;
use super::object::Object;
use super::text::FrameWriter;

/// Everything gateways of one namespace know, as it was at one version.
///
/// The order of the lists is the order in frames.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    /// Application keys.
    pub(super) app_auths: Vec<AppAuth>,
    /// Plugins.
    pub(super) plugins: Vec<Plugin>,
    /// Selectors.
    pub(super) selectors: Vec<Selector>,
    /// Rules.
    pub(super) rules: Vec<Rule>,
    /// Registered APIs.
    pub(super) metadata: Vec<MetaData>,
    /// Bound selectors and raw ports with their upstreams, in order of their discoveries.
    pub(super) bindings: Vec<Binding>,
    /// AI keys.
    pub(super) api_keys: Vec<ProxyApiKey>,
}

impl State {
    fn upstreams(&self) -> impl Iterator<Item = &UpstreamList> {
        self.bindings.iter().map(|binding| &binding.upstreams)
    }
}

impl From<FullState> for State {
    fn from(full: FullState) -> Self {
        Self {
            plugins: full.plugins,
            selectors: full.selectors,
            rules: full.rules,
            metadata: full.metadata,
            bindings: full.bindings,
            // No table holds any yet.
            app_auths: Vec::new(),
            api_keys: Vec::new(),
        }
    }
}

/// The answer to a stock gateway that asks for everything.
///
/// Source: ShenYu 2.7.1, recorded order; empty groups give no frame.
pub(super) fn answer_to_myself(namespace: &str, state: &State) -> Vec<Utf8Bytes> {
    sequence(namespace, state, Event::Myself)
}

/// What stock gateways get for a `refresh` row.
///
/// Source: ShenYu 2.7.1, `sync-all`, `plugin-sync`, `meta-sync`, `auth-sync`, `proxy-selector-fetch`
/// of the recordings.
pub(super) fn refresh(namespace: &str, state: &State, scope: &Scope) -> Vec<Utf8Bytes> {
    let group = match scope {
        Scope::Namespace => return sequence(namespace, state, Event::Refresh),
        Scope::Plugin(plugin) => return plugin_sync(namespace, state, plugin),
        Scope::Upstreams(selector) => {
            let mut sequence = Sequence::stock(namespace);
            let lists = state.upstreams().filter(|list| list.selector_id == *selector);
            lists.for_each(|list| sequence.alone(Event::Update, list));
            return sequence.writer.plain();
        }
        Scope::Group(group) => *group,
    };
    let mut sequence = Sequence::stock(namespace);
    match group {
        Group::AppAuth => sequence.all(Event::Refresh, &state.app_auths),
        Group::Plugin => sequence.all(Event::Refresh, &state.plugins),
        Group::Rule => sequence.all(Event::Refresh, &state.rules),
        Group::Selector => sequence.all(Event::Refresh, &state.selectors),
        Group::MetaData => sequence.all(Event::Refresh, &state.metadata),
        Group::AiProxyApiKey => sequence.all(Event::Refresh, &state.api_keys),
        Group::ProxySelector | Group::DiscoverUpstream => sequence.bindings(state),
    }
    sequence.writer.plain()
}

/// A full refresh for our gateways: every group that holds something, in chunks, and the end mark.
pub(super) fn full_refresh(
    namespace: &str,
    epoch: &str,
    version: u64,
    state: &State,
) -> Vec<Utf8Bytes> {
    let mut sequence = Sequence { namespace, writer: FrameWriter::ours(), stock: false };
    sequence.all(Event::Myself, &state.app_auths);
    sequence.all(Event::Myself, &state.plugins);
    sequence.all(Event::Myself, &state.selectors);
    sequence.all(Event::Myself, &state.rules);
    sequence.all(Event::Myself, &state.metadata);
    let announcements = state.bindings.iter().map(|binding| &binding.announcement);
    sequence.all(Event::Myself, announcements.filter(|port| port.wanted_by_ours()));
    sequence.all(Event::Myself, state.upstreams());
    sequence.all(Event::Myself, &state.api_keys);
    sequence.writer.refresh(epoch, version)
}

fn sequence(namespace: &str, state: &State, event: Event) -> Vec<Utf8Bytes> {
    let mut sequence = Sequence::stock(namespace);
    sequence.all(Event::Refresh, &state.app_auths);
    sequence.all(event, &state.plugins);
    sequence.all(event, &state.selectors);
    sequence.all(event, &state.rules);
    sequence.all(Event::Refresh, &state.metadata);
    sequence.bindings(state);
    sequence.all(Event::Refresh, &state.api_keys);
    sequence.writer.plain()
}

/// One plugin with its selectors, their upstreams and their rules.
fn plugin_sync(namespace: &str, state: &State, plugin: &str) -> Vec<Utf8Bytes> {
    let mut sequence = Sequence::stock(namespace);
    let Some(plugin) = state.plugins.iter().find(|p| p.id == plugin || p.name == plugin) else {
        return Vec::new();
    };
    let name = plugin.name.as_str();
    sequence.alone(Event::Update, plugin);
    let selectors = state.selectors.iter().filter(|selector| selector.plugin_name == name);
    sequence.all(Event::Refresh, selectors.clone());
    let lists: HashMap<&str, &UpstreamList> =
        state.upstreams().map(|list| (list.selector_id.as_str(), list)).collect();
    for list in selectors.filter_map(|selector| lists.get(selector.id.as_str())) {
        sequence.alone(Event::Update, *list);
    }
    sequence.all(Event::Refresh, state.rules.iter().filter(|rule| rule.plugin_name == name));
    sequence.writer.plain()
}

struct Sequence<'a> {
    namespace: &'a str,
    writer: FrameWriter,
    stock: bool,
}

impl<'a> Sequence<'a> {
    const fn stock(namespace: &'a str) -> Self {
        Self { namespace, writer: FrameWriter::stock(), stock: true }
    }

    fn all<'o, T: Object + 'o>(&mut self, event: Event, objects: impl IntoIterator<Item = &'o T>) {
        for object in objects {
            let text = self.written(object);
            self.writer.join(T::GROUP, event, &text);
        }
    }

    fn alone<T: Object>(&mut self, event: Event, object: &T) {
        let text = self.written(object);
        self.writer.alone(T::GROUP, event, &text);
    }

    fn written<T: Object>(&self, object: &T) -> String {
        let mut object = object.clone();
        object.complete(self.namespace);
        if self.stock {
            object.in_sequence();
        } else {
            object.for_ours();
        }
        serde_json::to_string(&object).expect("objects hold only strings, numbers and lists")
    }

    /// Each raw port or bound selector followed by its upstreams: a stock gateway drops the
    /// upstreams of a port that it does not know.
    fn bindings(&mut self, state: &State) {
        for binding in &state.bindings {
            self.alone(Event::Create, &binding.announcement);
            self.alone(Event::Update, &binding.upstreams);
        }
    }
}
