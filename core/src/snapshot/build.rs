//! Builds the next snapshot from the last one: what was not touched is shared.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::MetadataIndex;
use super::compile::{self, CompiledSelector, Faults, Owner};
use super::part::{PluginPart, Position, RulePart, SelectorKey, SelectorPart, Snapshot};
use super::publish::{MatchingOptions, PublisherOptions};
use super::state::{ConfigState, Dirty, MissingPlugin};
use crate::chain::{Handle, Registry};
use crate::condition::Compiler;
use crate::matcher::{Entry, Index, Map};
use crate::model::PluginClass;
use crate::sync::Group;
use crate::upstream::{BalanceState, EndpointRegistry, UpstreamSet};

/// What is kept between two snapshots. Bounded by the configuration itself.
#[derive(Debug)]
pub(super) struct Builder {
    registry: Registry,
    on_missing: MissingPlugin,
    compiler: Compiler,
    endpoints: EndpointRegistry,
    plugins: BTreeMap<String, CompiledPlugin>,
    metadata: Arc<MetadataIndex>,
    balances: HashMap<String, Arc<BalanceState>>,
    matching: MatchingOptions,
    /// Whether endpoints may have lost their last holder since they were looked through.
    sweep: bool,
}

#[derive(Debug)]
struct CompiledPlugin {
    config: Handle,
    selectors: Selectors,
    part: Arc<PluginPart>,
}

/// The selectors of a plugin: by id for building, and as the snapshot holds them.
#[derive(Debug)]
struct Selectors {
    by_id: BTreeMap<String, OfSelector>,
    index: Index<Arc<SelectorKey>>,
    parts: Map<Arc<SelectorPart>>,
    next_slot: u64,
}

#[derive(Debug)]
struct OfSelector {
    slot: u64,
    compiled: CompiledSelector,
    rules: Index<Arc<RulePart>>,
    upstreams: Arc<UpstreamSet>,
    part: Arc<SelectorPart>,
}

/// What of one plugin has to be compiled.
#[derive(Debug, Default)]
struct Work<'d> {
    all: bool,
    selectors: BTreeSet<&'d str>,
    rules: BTreeMap<&'d str, Vec<&'d str>>,
    upstreams: BTreeSet<&'d str>,
}

impl Builder {
    pub(super) fn new(registry: Registry, options: PublisherOptions) -> Self {
        Self {
            registry,
            on_missing: options.on_missing,
            compiler: Compiler::new(options.zone),
            endpoints: options.endpoints,
            plugins: BTreeMap::new(),
            metadata: Arc::default(),
            balances: HashMap::new(),
            matching: options.matching,
            sweep: false,
        }
    }

    /// Compiles what is dirty and puts the snapshot together.
    pub(super) fn build(
        &mut self,
        state: &ConfigState,
        dirty: &Dirty,
        position: Position,
        faults: &mut Faults,
    ) -> Snapshot {
        for (name, work) in Self::plan(state, dirty) {
            self.plugin(state, name, &work, faults);
        }
        if dirty.metadata {
            let (index, bad) = MetadataIndex::build(state.metadata.values(), &mut self.compiler);
            self.metadata = Arc::new(index);
            for (id, text) in bad {
                faults.add(Group::MetaData, &id, "", format_args!("path: {text}"));
            }
        }
        let touched = !(dirty.upstreams.is_empty() && dirty.selectors.is_empty());
        if touched {
            self.balances.retain(|selector, _| state.upstreams.contains_key(selector));
        }
        // What was let go now may be freed only after this, so the next time is a chance too.
        if std::mem::replace(&mut self.sweep, touched) || touched || !dirty.plugins.is_empty() {
            self.endpoints.sweep();
        }
        let mut plugins: Vec<_> =
            self.plugins.values().map(|plugin| Arc::clone(&plugin.part)).collect();
        plugins.sort_by(|a, b| (a.sort, a.order, &a.name).cmp(&(b.sort, b.order, &b.name)));
        Snapshot { position, ready: true, plugins, metadata: Arc::clone(&self.metadata) }
    }

    pub(super) const fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Whether anything of the plugin is compiled.
    pub(super) fn is_active(&self, plugin: &str) -> bool {
        self.plugins.contains_key(plugin)
    }

    fn plan<'d>(state: &'d ConfigState, dirty: &'d Dirty) -> BTreeMap<&'d str, Work<'d>> {
        let mut plan: BTreeMap<&str, Work<'d>> = BTreeMap::new();
        for name in &dirty.plugins {
            plan.entry(name).or_default();
        }
        for (plugin, id) in &dirty.selectors {
            plan.entry(plugin).or_default().selectors.insert(id);
        }
        let owners = |selector: &str| {
            let has = |(_, map): &(&String, &BTreeMap<String, _>)| map.contains_key(selector);
            state
                .selectors
                .iter()
                .filter(has)
                .map(|(plugin, _)| plugin.as_str())
                .collect::<Vec<_>>()
        };
        // In the order of selectors.
        let rules: Vec<&(String, String)> = dirty.rules.iter().collect();
        for of_selector in rules.chunk_by(|(a, _), (b, _)| a == b) {
            let selector = of_selector[0].0.as_str();
            for plugin in owners(selector) {
                let ids = of_selector.iter().map(|(_, id)| id.as_str());
                plan.entry(plugin).or_default().rules.entry(selector).or_default().extend(ids);
            }
        }
        for selector in &dirty.upstreams {
            for plugin in owners(selector) {
                plan.entry(plugin).or_default().upstreams.insert(selector);
            }
        }
        plan
    }

    /// Brings one plugin up to date, or takes it out.
    fn plugin(&mut self, state: &ConfigState, name: &str, work: &Work<'_>, faults: &mut Faults) {
        let takes_part = !self.registry.is_off(name);
        let row = state.plugins.get(name).filter(|plugin| plugin.enabled && takes_part);
        let Some(row) = row else {
            self.plugins.remove(name);
            return;
        };
        let class = self.registry.class_of(name, row.role.as_deref());
        let run = self.registry.get(name).cloned();
        let refuses = class == PluginClass::Guard && self.on_missing == MissingPlugin::Refuse;
        if run.is_none() && !refuses {
            self.plugins.remove(name);
            return;
        }
        let owner = Owner { name, class, run: run.as_ref() };
        let known = self.plugins.remove(name);
        let (before, mut selectors) = match known {
            Some(known) => (Some(known.config), known.selectors),
            None => (None, Selectors::new(self.matching)),
        };
        let all = Work { all: before.is_none(), ..Work::default() };
        let work = if all.all { &all } else { work };
        let config = Self::config(owner, row, before, faults);
        self.selectors(state, owner, work, &mut selectors, faults);
        if run.is_none() && selectors.by_id.values().any(|of| of.compiled.entry.enabled) {
            let text = "this gateway does not have the plugin: what it guards is refused";
            faults.add(Group::Plugin, name, name, text);
        }
        let order = self.registry.order_of(name);
        let part = Arc::new(PluginPart {
            name: name.into(),
            class,
            sort: row.sort.unwrap_or(order),
            order,
            config: config.clone(),
            selectors: selectors.index.clone(),
            parts: selectors.parts.clone(),
            run,
        });
        self.plugins.insert(name.to_owned(), CompiledPlugin { config, selectors, part });
    }

    fn config(
        owner: Owner<'_>,
        row: &crate::model::Plugin,
        before: Option<Handle>,
        faults: &mut Faults,
    ) -> Handle {
        let Some(plugin) = owner.run else { return Handle::none() };
        match plugin.compile_config(row.config.as_deref().unwrap_or_default()) {
            Ok(config) => config,
            Err(found) => {
                for fault in found {
                    let text = format_args!("config {fault}");
                    faults.add(Group::Plugin, owner.name, owner.name, text);
                }
                before.unwrap_or_default()
            }
        }
    }

    fn selectors(
        &mut self,
        state: &ConfigState,
        owner: Owner<'_>,
        work: &Work<'_>,
        known: &mut Selectors,
        faults: &mut Faults,
    ) {
        let empty = BTreeMap::new();
        let rows = state.selectors.get(owner.name).unwrap_or(&empty);
        let touched: BTreeSet<&str> = if work.all {
            rows.keys().map(String::as_str).collect()
        } else {
            let rules = work.rules.keys().copied();
            work.selectors
                .iter()
                .copied()
                .chain(rules)
                .chain(work.upstreams.iter().copied())
                .collect()
        };
        for id in touched {
            let before = known.by_id.remove(id);
            let slot = before.as_ref().map(|before| before.slot);
            let entry_before = before.as_ref().map(|before| Arc::clone(&before.compiled.entry));
            let of = rows.get(id).and_then(|row| {
                let slot = slot.unwrap_or(known.next_slot);
                self.selector(state, owner, row, work, before, slot, faults)
            });
            known.put(id, of, slot, entry_before);
        }
        known.index.finish();
    }

    #[expect(clippy::too_many_arguments, reason = "one step of the one above")]
    fn selector(
        &mut self,
        state: &ConfigState,
        owner: Owner<'_>,
        row: &crate::model::Selector,
        work: &Work<'_>,
        before: Option<OfSelector>,
        slot: u64,
        faults: &mut Faults,
    ) -> Option<OfSelector> {
        let id = row.id.as_str();
        let fresh = before.is_none();
        let compiled = match &before {
            Some(before) if !work.selectors.contains(id) => before.compiled.clone(),
            _ => {
                let last = before.as_ref().map(|before| &before.compiled);
                compile::selector(owner, row, last, &mut self.compiler, faults)?
            }
        };
        let (mut rules, known_upstreams) = match before {
            Some(before) => (before.rules, Some(before.upstreams)),
            None => (Index::new(self.matching.rules), None),
        };
        if fresh || work.rules.contains_key(id) {
            let only = work.rules.get(id).filter(|_| !fresh);
            self.rules(state, owner, id, only.map(Vec::as_slice), &mut rules, faults);
        }
        let upstreams = match known_upstreams {
            Some(upstreams) if !work.upstreams.contains(id) => upstreams,
            _ => self.upstreams(state, owner, id, faults),
        };
        let part = compile::join(owner, row, &compiled, rules.clone(), Arc::clone(&upstreams));
        Some(OfSelector { slot, compiled, rules, upstreams, part: Arc::new(part) })
    }

    /// Compiles the rules of a selector: those named, or all.
    fn rules(
        &mut self,
        state: &ConfigState,
        owner: Owner<'_>,
        selector: &str,
        only: Option<&[&str]>,
        known: &mut Index<Arc<RulePart>>,
        faults: &mut Faults,
    ) {
        let empty = BTreeMap::new();
        let rows = state.rules.get(selector).unwrap_or(&empty);
        let compiler = &mut self.compiler;
        let Some(ids) = only else {
            // All of them are new.
            for row in rows.values() {
                if let Some(part) = compile::rule(owner, row, None, compiler, faults) {
                    known.put(part);
                }
            }
            return known.finish();
        };
        for id in ids {
            let before = known.get(id).cloned();
            let part = rows
                .get(*id)
                .and_then(|row| compile::rule(owner, row, before.as_ref(), compiler, faults));
            match part {
                Some(part) => known.put(part),
                None => {
                    known.take(id);
                }
            }
        }
        known.finish();
    }

    fn upstreams(
        &mut self,
        state: &ConfigState,
        owner: Owner<'_>,
        selector: &str,
        faults: &mut Faults,
    ) -> Arc<UpstreamSet> {
        let Some(known) = state.upstreams.get(selector) else { return Arc::default() };
        let balance = Arc::clone(self.balances.entry(selector.to_owned()).or_default());
        let (set, bad) =
            UpstreamSet::build(selector, &known.entries, known.watched, balance, &self.endpoints);
        for fault in bad {
            faults.add(Group::DiscoverUpstream, selector, owner.name, fault);
        }
        set
    }
}

impl Selectors {
    fn new(matching: MatchingOptions) -> Self {
        Self {
            by_id: BTreeMap::new(),
            index: Index::new(matching.selectors),
            parts: Map::new(),
            next_slot: 0,
        }
    }

    /// Puts what became of a selector in place; the index is touched only where its matching side
    /// is another than before.
    fn put(
        &mut self,
        id: &str,
        of: Option<OfSelector>,
        slot_before: Option<u64>,
        entry_before: Option<Arc<Entry>>,
    ) {
        let Some(of) = of else {
            self.index.take(id);
            if let Some(slot) = slot_before {
                self.parts.remove(slot, |_| true);
            }
            return;
        };
        let compiled = &of.compiled;
        if entry_before.is_none_or(|before| !Arc::ptr_eq(&before, &compiled.entry)) {
            let (entry, blocked) = (Arc::clone(&compiled.entry), compiled.blocked);
            self.index.put(Arc::new(SelectorKey { entry, blocked, slot: of.slot }));
        }
        self.parts.replace(of.slot, Arc::clone(&of.part));
        self.next_slot = self.next_slot.max(of.slot + 1);
        self.by_id.insert(id.to_owned(), of);
    }
}
