//! Builds the next snapshot from the last one: what was not touched is shared.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::MetadataIndex;
use super::compile::{self, CompiledSelector, Faults, Owner};
use super::part::{PluginPart, Position, RulePart, SelectorPart, Snapshot};
use super::state::{ConfigState, Dirty, MissingPlugin};
use crate::chain::{Handle, Registry};
use crate::condition::Compiler;
use crate::matcher::Linear;
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
}

#[derive(Debug)]
struct CompiledPlugin {
    config: Handle,
    selectors: BTreeMap<String, OfSelector>,
    part: Arc<PluginPart>,
}

#[derive(Debug)]
struct OfSelector {
    compiled: CompiledSelector,
    rules: BTreeMap<String, Arc<RulePart>>,
    upstreams: Arc<UpstreamSet>,
    part: Arc<SelectorPart>,
}

/// What of one plugin has to be compiled.
#[derive(Debug, Default)]
struct Work {
    all: bool,
    selectors: BTreeSet<String>,
    rules: BTreeMap<String, BTreeSet<String>>,
    upstreams: BTreeSet<String>,
}

impl Builder {
    pub(super) fn new(
        registry: Registry,
        on_missing: MissingPlugin,
        compiler: Compiler,
        endpoints: EndpointRegistry,
    ) -> Self {
        Self {
            registry,
            on_missing,
            compiler,
            endpoints,
            plugins: BTreeMap::new(),
            metadata: Arc::default(),
            balances: HashMap::new(),
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
            self.plugin(state, &name, &work, faults);
        }
        if dirty.metadata {
            let (index, bad) = MetadataIndex::build(state.metadata.values(), &mut self.compiler);
            self.metadata = Arc::new(index);
            for (id, text) in bad {
                faults.add(Group::MetaData, &id, "", format_args!("path: {text}"));
            }
        }
        self.balances.retain(|selector, _| state.upstreams.contains_key(selector));
        self.endpoints.sweep();
        let mut plugins: Vec<_> =
            self.plugins.values().map(|plugin| Arc::clone(&plugin.part)).collect();
        plugins.sort_by(|a, b| (a.sort, a.order, &a.name).cmp(&(b.sort, b.order, &b.name)));
        Snapshot { position, ready: true, plugins, metadata: Arc::clone(&self.metadata) }
    }

    /// Whether anything of the plugin is compiled.
    pub(super) fn is_active(&self, plugin: &str) -> bool {
        self.plugins.contains_key(plugin)
    }

    fn plan(state: &ConfigState, dirty: &Dirty) -> BTreeMap<String, Work> {
        let mut plan: BTreeMap<String, Work> = BTreeMap::new();
        for name in &dirty.plugins {
            plan.entry(name.clone()).or_default();
        }
        for (plugin, id) in &dirty.selectors {
            plan.entry(plugin.clone()).or_default().selectors.insert(id.clone());
        }
        let owners = |selector: &str| {
            let has = |(_, map): &(&String, &BTreeMap<String, _>)| map.contains_key(selector);
            state.selectors.iter().filter(has).map(|(plugin, _)| plugin.clone()).collect::<Vec<_>>()
        };
        for (selector, id) in &dirty.rules {
            for plugin in owners(selector) {
                let rules = &mut plan.entry(plugin).or_default().rules;
                rules.entry(selector.clone()).or_default().insert(id.clone());
            }
        }
        for selector in &dirty.upstreams {
            for plugin in owners(selector) {
                plan.entry(plugin).or_default().upstreams.insert(selector.clone());
            }
        }
        plan
    }

    /// Brings one plugin up to date, or takes it out.
    fn plugin(&mut self, state: &ConfigState, name: &str, work: &Work, faults: &mut Faults) {
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
            None => (None, BTreeMap::new()),
        };
        let all = Work { all: before.is_none(), ..Work::default() };
        let work = if all.all { &all } else { work };
        let config = Self::config(owner, row, before, faults);
        self.selectors(state, owner, work, &mut selectors, faults);
        let parts = Linear::new(selectors.values().map(|of| Arc::clone(&of.part)).collect());
        if run.is_none() && selectors.values().any(|of| of.compiled.entry.enabled) {
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
            any_blocked: selectors.values().any(|of| of.compiled.blocked),
            selectors: parts,
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
        work: &Work,
        known: &mut BTreeMap<String, OfSelector>,
        faults: &mut Faults,
    ) {
        let empty = BTreeMap::new();
        let rows = state.selectors.get(owner.name).unwrap_or(&empty);
        let touched: BTreeSet<&String> = if work.all {
            rows.keys().collect()
        } else {
            work.selectors.iter().chain(work.rules.keys()).chain(work.upstreams.iter()).collect()
        };
        for id in touched {
            let before = known.remove(id);
            if let Some(row) = rows.get(id)
                && let Some(of) = self.selector(state, owner, row, work, before, faults)
            {
                known.insert(id.clone(), of);
            }
        }
    }

    fn selector(
        &mut self,
        state: &ConfigState,
        owner: Owner<'_>,
        row: &crate::model::Selector,
        work: &Work,
        before: Option<OfSelector>,
        faults: &mut Faults,
    ) -> Option<OfSelector> {
        let id = &row.id;
        let fresh = before.is_none();
        let compiled = match &before {
            Some(before) if !work.selectors.contains(id) => before.compiled.clone(),
            _ => {
                let last = before.as_ref().map(|before| &before.compiled);
                compile::selector(owner, row, last, &mut self.compiler, faults)?
            }
        };
        let (mut rules, known_list, known_upstreams) = match before {
            Some(before) => {
                (before.rules, Some(Arc::clone(&before.part.rules)), Some(before.upstreams))
            }
            None => (BTreeMap::new(), None, None),
        };
        let rules_touched = fresh || work.rules.contains_key(id);
        if rules_touched {
            self.rules(state, owner, id, work.rules.get(id).filter(|_| !fresh), &mut rules, faults);
        }
        let list = match known_list {
            Some(list) if !rules_touched => list,
            _ => Arc::new(Linear::new(rules.values().map(Arc::clone).collect())),
        };
        let upstreams = match known_upstreams {
            Some(upstreams) if !work.upstreams.contains(id) => upstreams,
            _ => self.upstreams(state, owner, id, faults),
        };
        let part = compile::join(owner, row, &compiled, list, Arc::clone(&upstreams));
        Some(OfSelector { compiled, rules, upstreams, part: Arc::new(part) })
    }

    /// Compiles the rules of a selector: those named, or all.
    fn rules(
        &mut self,
        state: &ConfigState,
        owner: Owner<'_>,
        selector: &str,
        only: Option<&BTreeSet<String>>,
        known: &mut BTreeMap<String, Arc<RulePart>>,
        faults: &mut Faults,
    ) {
        let empty = BTreeMap::new();
        let rows = state.rules.get(selector).unwrap_or(&empty);
        let touched: Vec<&String> =
            only.map_or_else(|| rows.keys().collect(), |ids| ids.iter().collect());
        for id in touched {
            let before = known.remove(id);
            if let Some(row) = rows.get(id)
                && let Some(part) =
                    compile::rule(owner, row, before.as_ref(), &mut self.compiler, faults)
            {
                known.insert(id.clone(), part);
            }
        }
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
