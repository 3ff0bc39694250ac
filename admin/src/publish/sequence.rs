//! Frames of a whole namespace, from its state. No I/O here.

use std::collections::HashMap;

use axum::extract::ws::Utf8Bytes;
use longmen_core::model::{
    AppAuth, MetaData, Plugin, ProxyApiKey, ProxySelector, Rule, Selector, UpstreamList,
};
use longmen_core::sync::{Event, Group};

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
    /// Raw ports. Bound selectors need not be among them: what announces them is made here.
    pub(super) proxy_selectors: Vec<ProxySelector>,
    /// Upstream lists, one for each bound selector or raw port, in order of their discoveries.
    pub(super) upstreams: Vec<UpstreamList>,
    /// AI keys.
    pub(super) api_keys: Vec<ProxyApiKey>,
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
            let lists = state.upstreams.iter().filter(|list| list.selector_id == *selector);
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
    sequence.all(Event::Myself, &state.proxy_selectors);
    sequence.all(Event::Myself, &state.upstreams);
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
        state.upstreams.iter().map(|list| (list.selector_id.as_str(), list)).collect();
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
        let mut ports: HashMap<&str, &ProxySelector> =
            state.proxy_selectors.iter().map(|port| (port.id.as_str(), port)).collect();
        for list in &state.upstreams {
            match ports.remove(list.selector_id.as_str()) {
                Some(port) => self.alone(Event::Create, port),
                None => self.alone(Event::Create, &announcement(list)),
            }
            self.alone(Event::Update, list);
        }
        let without_upstreams = state.proxy_selectors.iter();
        for port in without_upstreams.filter(|port| ports.contains_key(port.id.as_str())) {
            self.alone(Event::Create, port);
        }
    }
}

/// What tells a stock gateway of a bound selector; it ignores it unless the plugin is `tcp`.
fn announcement(list: &UpstreamList) -> ProxySelector {
    ProxySelector {
        id: list.selector_id.clone(),
        name: list.selector_name.clone().unwrap_or_default(),
        plugin_name: list.plugin_name.clone(),
        namespace_id: list.namespace_id.clone(),
        ..ProxySelector::default()
    }
}
