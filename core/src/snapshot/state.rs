//! The plain objects a gateway holds, by key, and what frames do to them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::BuildHasher;
use std::sync::Arc;

use super::upstreams::UpstreamsOfSelector;
use crate::model::{
    AppAuth, MetaData, Plugin, ProxyApiKey, ProxySelector, Rule, Selector, UpstreamList,
};
use crate::sync::{Event, Frame, Group, Payload};

/// What to do where a guard cannot run (`shenyu.plugins.onMissing`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissingPlugin {
    /// Refuse the requests it was meant for.
    #[default]
    Refuse,
    /// Let them pass.
    Ignore,
}

/// Whether an upstream list is the whole truth (`shenyu.sync.upstreams`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UpstreamMode {
    /// From our admin always; from a stock one by the kind of source.
    #[default]
    Auto,
    /// Always.
    Replace,
    /// Never: what is not mentioned stays.
    Merge,
}

/// The objects that were touched and need compiling.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dirty {
    /// Plugins, by name.
    pub plugins: BTreeSet<String>,
    /// Selectors, by (plugin, id).
    pub selectors: BTreeSet<(String, String)>,
    /// Rules, by (selector id, id).
    pub rules: BTreeSet<(String, String)>,
    /// Upstream lists, by selector id.
    pub upstreams: BTreeSet<String>,
    /// Whether any metadata changed.
    pub metadata: bool,
    /// Whether any application key changed.
    pub app_auth: bool,
    /// Nothing is noted: what changed will be found by comparing.
    pub(super) muted: bool,
}

impl Dirty {
    /// Whether nothing was touched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

type ById<T> = BTreeMap<String, Arc<T>>;

/// Takes over from `old` what `wanted` says and `into` does not have.
fn fill<K: Ord + Clone, T>(
    into: &mut BTreeMap<K, Arc<T>>,
    old: &BTreeMap<K, Arc<T>>,
    wanted: impl Fn(&T) -> bool,
) {
    for (key, object) in old.iter().filter(|(_, object)| wanted(object)) {
        into.entry(key.clone()).or_insert_with(|| Arc::clone(object));
    }
}

/// Everything a gateway was told, by key.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConfigState {
    /// By name.
    pub plugins: BTreeMap<String, Arc<Plugin>>,
    /// By plugin name, then id. Selectors outlive their plugin: they work again when it returns.
    pub selectors: HashMap<String, ById<Selector>>,
    /// By selector id, then id. Rules outlive their selector likewise.
    pub rules: HashMap<String, ById<Rule>>,
    /// By selector id.
    pub upstreams: HashMap<String, UpstreamsOfSelector>,
    /// By id.
    pub metadata: ById<MetaData>,
    /// By application key.
    pub app_auth: ById<AppAuth>,
    /// By name.
    pub proxy_selectors: ById<ProxySelector>,
    /// By selector id and key.
    pub api_keys: BTreeMap<(String, String), Arc<ProxyApiKey>>,
}

impl ConfigState {
    /// Applies one frame. Pure: the result depends on state and frame alone.
    ///
    /// CREATE, UPDATE, REFRESH and MYSELF all put the listed objects in place of those with the same
    /// key and leave the others; DELETE takes the listed ones away. That a full refresh empties what
    /// it does not list is the caller's business: it applies the sequence to an empty state.
    /// Objects without their key are left out.
    ///
    /// DELETE of upstreams has no effect by itself: they go with their selector.
    ///
    /// Source: ShenYu 2.7.1, data frames, executed on a stock gateway.
    pub fn apply(&mut self, frame: &Frame, mode: UpstreamMode, dirty: &mut Dirty) {
        let delete = frame.event == Event::Delete;
        match &frame.payload {
            Payload::Plugin(plugins) => self.plugins(plugins, delete, dirty),
            Payload::Selector(selectors) => self.selectors(selectors, delete, dirty),
            Payload::Rule(rules) => self.rules(rules, delete, dirty),
            Payload::DiscoverUpstream(lists) => self.upstreams(lists, delete, mode, dirty),
            Payload::MetaData(list) => {
                for metadata in list.iter().filter(|metadata| !metadata.id.is_empty()) {
                    dirty.metadata |= put(&mut self.metadata, &metadata.id, metadata, delete);
                }
            }
            Payload::AppAuth(list) => {
                for auth in list.iter().filter(|auth| !auth.app_key.is_empty()) {
                    dirty.app_auth |= put(&mut self.app_auth, &auth.app_key, auth, delete);
                }
            }
            Payload::ProxySelector(list) => {
                for selector in list.iter().filter(|selector| !selector.name.is_empty()) {
                    put(&mut self.proxy_selectors, &selector.name, selector, delete);
                }
            }
            Payload::AiProxyApiKey(list) => self.api_keys(list, frame.event),
        }
    }

    fn plugins(&mut self, plugins: &[Plugin], delete: bool, dirty: &mut Dirty) {
        for plugin in plugins.iter().filter(|plugin| !plugin.name.is_empty()) {
            if put(&mut self.plugins, &plugin.name, plugin, delete) && !dirty.muted {
                dirty.plugins.insert(plugin.name.clone());
            }
        }
    }

    fn selectors(&mut self, selectors: &[Selector], delete: bool, dirty: &mut Dirty) {
        for selector in selectors {
            if selector.id.is_empty() || selector.plugin_name.is_empty() {
                continue;
            }
            let of_plugin = self.selectors.entry(selector.plugin_name.clone()).or_default();
            if put(of_plugin, &selector.id, selector, delete) && !dirty.muted {
                dirty.selectors.insert((selector.plugin_name.clone(), selector.id.clone()));
            }
            if delete && self.upstreams.remove(&selector.id).is_some() {
                dirty.upstreams.insert(selector.id.clone());
            }
        }
    }

    fn rules(&mut self, rules: &[Rule], delete: bool, dirty: &mut Dirty) {
        for rule in rules {
            if rule.id.is_empty() || rule.selector_id.is_empty() {
                continue;
            }
            let of_selector = self.rules.entry(rule.selector_id.clone()).or_default();
            if put(of_selector, &rule.id, rule, delete) && !dirty.muted {
                dirty.rules.insert((rule.selector_id.clone(), rule.id.clone()));
            }
            if of_selector.is_empty() {
                self.rules.remove(&rule.selector_id);
            }
        }
    }

    fn upstreams(
        &mut self,
        lists: &[UpstreamList],
        delete: bool,
        mode: UpstreamMode,
        dirty: &mut Dirty,
    ) {
        if delete {
            return;
        }
        for list in lists.iter().filter(|list| !list.selector_id.is_empty()) {
            let known = self.upstreams.entry(list.selector_id.clone()).or_default();
            if known.take(list, mode) {
                dirty.upstreams.insert(list.selector_id.clone());
            }
        }
    }

    fn api_keys(&mut self, keys: &[ProxyApiKey], event: Event) {
        if event == Event::Refresh {
            self.api_keys.clear();
        }
        for key in keys {
            let place = (key.selector_id.clone(), key.proxy_api_key.clone());
            if event == Event::Delete {
                self.api_keys.remove(&place);
            } else {
                self.api_keys.insert(place, Arc::new(key.clone()));
            }
        }
    }

    /// Keeps what `old` has of an object that could not be read this time: the one with this id
    /// (of upstreams the selector's), or without an id all of the group; what is there stays.
    pub fn keep(&mut self, old: &Self, group: Group, id: Option<&str>) {
        let wanted = |of: &str| id.is_none_or(|id| id == of);
        match group {
            Group::Plugin => fill(&mut self.plugins, &old.plugins, |plugin| wanted(&plugin.id)),
            Group::Selector => {
                for (plugin, of_plugin) in &old.selectors {
                    let into = self.selectors.entry(plugin.clone()).or_default();
                    fill(into, of_plugin, |selector| wanted(&selector.id));
                }
                self.selectors.retain(|_, of_plugin| !of_plugin.is_empty());
            }
            Group::Rule => {
                for (selector, of_selector) in &old.rules {
                    let into = self.rules.entry(selector.clone()).or_default();
                    fill(into, of_selector, |rule| wanted(&rule.id));
                }
                self.rules.retain(|_, of_selector| !of_selector.is_empty());
            }
            Group::MetaData => fill(&mut self.metadata, &old.metadata, |data| wanted(&data.id)),
            Group::AppAuth => fill(&mut self.app_auth, &old.app_auth, |_| true),
            Group::ProxySelector => {
                fill(&mut self.proxy_selectors, &old.proxy_selectors, |_| true);
            }
            Group::AiProxyApiKey => fill(&mut self.api_keys, &old.api_keys, |_| true),
            Group::DiscoverUpstream => {
                // A selector that is still there keeps its list in any case (see the caller).
                if let Some((selector, list)) = id.and_then(|id| old.upstreams.get_key_value(id)) {
                    self.upstreams.entry(selector.clone()).or_insert_with(|| list.clone());
                }
            }
        }
    }

    /// What has to be compiled to come from `before` to `self`. Objects that are equal are made one,
    /// so that the old copies are freed.
    #[must_use]
    pub fn changes_since(&mut self, before: &Self) -> Dirty {
        let mut dirty = Dirty::default();
        dirty.plugins.extend(share(&mut self.plugins, &before.plugins));
        for name in keys_of_both(&self.selectors, &before.selectors) {
            let of_plugin = self.selectors.entry(name.clone()).or_default();
            let old = before.selectors.get(&name);
            let changed = share(of_plugin, old.unwrap_or(&BTreeMap::new()));
            dirty.selectors.extend(changed.into_iter().map(|id| (name.clone(), id)));
        }
        let mut rules: Vec<(String, String)> = Vec::new();
        for selector in keys_of_both(&self.rules, &before.rules) {
            let old = before.rules.get(&selector);
            let changed = match self.rules.get_mut(&selector) {
                Some(of_selector) => share(of_selector, old.unwrap_or(&BTreeMap::new())),
                None => old.into_iter().flat_map(|rules| rules.keys().cloned()).collect(),
            };
            rules.extend(changed.into_iter().map(|id| (selector.clone(), id)));
        }
        // There may be a million: a set made at once is much cheaper than one that grows.
        dirty.rules = rules.into_iter().collect();
        for selector in keys_of_both(&self.upstreams, &before.upstreams) {
            if self.upstreams.get(&selector) != before.upstreams.get(&selector) {
                dirty.upstreams.insert(selector);
            }
        }
        dirty.metadata = !share(&mut self.metadata, &before.metadata).is_empty();
        dirty.app_auth = !share(&mut self.app_auth, &before.app_auth).is_empty();
        dirty
    }

    /// The groups that hold anything.
    #[must_use]
    pub fn filled(&self) -> HashSet<Group> {
        let mut groups = HashSet::new();
        let mut note = |group, filled: bool| {
            if filled {
                groups.insert(group);
            }
        };
        note(Group::Plugin, !self.plugins.is_empty());
        note(Group::Selector, self.selectors.values().any(|map| !map.is_empty()));
        note(Group::Rule, !self.rules.is_empty());
        note(Group::DiscoverUpstream, !self.upstreams.is_empty());
        note(Group::MetaData, !self.metadata.is_empty());
        note(Group::AppAuth, !self.app_auth.is_empty());
        note(Group::ProxySelector, !self.proxy_selectors.is_empty());
        note(Group::AiProxyApiKey, !self.api_keys.is_empty());
        groups
    }
}

/// Puts or removes one object; says whether anything changed.
fn put<T: Clone + PartialEq>(map: &mut ById<T>, key: &str, value: &T, delete: bool) -> bool {
    if delete {
        return map.remove(key).is_some();
    }
    match map.entry(key.to_owned()) {
        Entry::Occupied(old) if **old.get() == *value => false,
        Entry::Occupied(mut old) => {
            old.insert(Arc::new(value.clone()));
            true
        }
        Entry::Vacant(place) => {
            place.insert(Arc::new(value.clone()));
            true
        }
    }
}

/// The keys that differ; equal objects are taken from `old`.
fn share<T: PartialEq>(new: &mut ById<T>, old: &ById<T>) -> Vec<String> {
    let mut changed: Vec<String> =
        old.keys().filter(|key| !new.contains_key(*key)).cloned().collect();
    for (key, value) in new.iter_mut() {
        match old.get(key) {
            Some(before) if *before == *value => *value = Arc::clone(before),
            _ => changed.push(key.clone()),
        }
    }
    changed
}

fn keys_of_both<V, W, S: BuildHasher, R: BuildHasher>(
    a: &HashMap<String, V, S>,
    b: &HashMap<String, W, R>,
) -> BTreeSet<String> {
    a.keys().chain(b.keys()).cloned().collect()
}
