//! Puts configuration in force.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use jiff::tz::TimeZone;
use tracing::{info, warn};

use super::build::Builder;
use super::compile::Faults;
use super::part::{Position, Snapshot};
use super::state::{ConfigState, Dirty, MissingPlugin, UpstreamMode};
use super::store::SnapshotStore;
use crate::chain::Registry;
use crate::matcher::IndexOptions;
use crate::sync::{Frame, GatewayFault, Group};
use crate::upstream::EndpointRegistry;

/// How configuration is put in force.
#[derive(Debug, Clone)]
pub struct PublisherOptions {
    /// What to do where a guard cannot run.
    pub on_missing: MissingPlugin,
    /// Whether upstream lists are the whole truth.
    pub upstreams: UpstreamMode,
    /// The zone of times in conditions.
    pub zone: TimeZone,
    /// Where upstreams keep their lasting state.
    pub endpoints: EndpointRegistry,
    /// How selectors and rules are looked up.
    pub matching: MatchingOptions,
}

/// How selectors and rules are looked up. No setting changes what is found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MatchingOptions {
    /// The index of each plugin's selectors.
    pub selectors: IndexOptions,
    /// The index of each selector's rules.
    pub rules: IndexOptions,
}

impl Default for PublisherOptions {
    fn default() -> Self {
        Self {
            on_missing: MissingPlugin::default(),
            upstreams: UpstreamMode::default(),
            zone: TimeZone::UTC,
            endpoints: EndpointRegistry::default(),
            matching: MatchingOptions::default(),
        }
    }
}

/// What a publication did.
#[derive(Debug, Clone)]
pub struct Published {
    /// What is in force now.
    pub position: Position,
    /// Everything that is not in force as configured, old faults included.
    pub faults: Vec<GatewayFault>,
}

/// Owns the plain objects and turns changes into snapshots. One per gateway, on the control runtime.
///
/// Old snapshots are kept until nobody else holds them and freed here: no request thread ever drops
/// a whole part.
#[derive(Debug)]
pub struct Publisher {
    store: Arc<SnapshotStore>,
    state: ConfigState,
    builder: Builder,
    mode: UpstreamMode,
    faults: BTreeMap<(Group, String), Vec<GatewayFault>>,
    retired: Vec<Arc<Snapshot>>,
}

impl Publisher {
    /// A publisher with nothing configured yet.
    #[must_use]
    pub fn new(store: Arc<SnapshotStore>, registry: Registry, options: PublisherOptions) -> Self {
        let mode = options.upstreams;
        Self {
            store,
            state: ConfigState::default(),
            builder: Builder::new(registry, options),
            mode,
            faults: BTreeMap::new(),
            retired: Vec::new(),
        }
    }

    /// The plain objects in force.
    #[must_use]
    pub const fn state(&self) -> &ConfigState {
        &self.state
    }

    /// The snapshot in force.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.store.load_full()
    }

    /// The plugins that configuration is compiled for.
    #[must_use]
    pub const fn registry(&self) -> &Registry {
        self.builder.registry()
    }

    /// What of an object is not in force as configured.
    #[must_use]
    pub fn faults_of(&self, group: Group, id: &str) -> &[GatewayFault] {
        self.faults.get(&(group, id.to_owned())).map_or(&[], Vec::as_slice)
    }

    /// Where the snapshot in force stands.
    #[must_use]
    pub fn position(&self) -> Position {
        self.store.load().position.clone()
    }

    /// Puts one change set in force, in one step.
    pub fn apply(&mut self, frames: &[Frame], position: Position) -> Published {
        let mut dirty = Dirty::default();
        for frame in frames {
            self.state.apply(frame, self.mode, &mut dirty);
        }
        self.publish(&dirty, position)
    }

    /// Puts the result of a full refresh in force, in one step: `frames` are all there is.
    ///
    /// `keep` may carry over from the old state what a stock admin cannot say
    /// (see [`Publisher::state`]).
    pub fn replace(
        &mut self,
        frames: &[Frame],
        position: Position,
        keep: impl FnOnce(&ConfigState, &mut ConfigState),
    ) -> Published {
        let mut fresh = ConfigState::default();
        let mut ignored = Dirty { muted: true, ..Dirty::default() };
        for frame in frames {
            fresh.apply(frame, self.mode, &mut ignored);
        }
        keep(&self.state, &mut fresh);
        let dirty = fresh.changes_since(&self.state);
        self.state = fresh;
        self.publish(&dirty, position)
    }

    /// Puts a saved configuration in force, in one step.
    pub fn restore(&mut self, mut state: ConfigState, position: Position) -> Published {
        let dirty = state.changes_since(&self.state);
        self.state = state;
        self.publish(&dirty, position)
    }

    fn publish(&mut self, dirty: &Dirty, position: Position) -> Published {
        let mut found = Faults::default();
        let snapshot = self.builder.build(&self.state, dirty, position.clone(), &mut found);
        self.note(dirty, found);
        self.retired.push(self.store.swap(Arc::new(snapshot)));
        self.release();
        let faults = self.faults.values().flatten().cloned().collect();
        Published { position, faults }
    }

    /// Frees snapshots that nobody holds any more. Called after each change and now and then.
    pub fn release(&mut self) {
        self.retired.retain(|snapshot| Arc::strong_count(snapshot) > 1);
    }

    /// How many old snapshots are still held by somebody.
    #[must_use]
    pub fn retired(&self) -> usize {
        self.retired.len()
    }

    /// Takes the faults of what was compiled now in place of older ones; each is logged once.
    fn note(&mut self, dirty: &Dirty, found: Faults) {
        let mut new: BTreeMap<(Group, String), Vec<GatewayFault>> = BTreeMap::new();
        for fault in found.0 {
            new.entry((fault.group, fault.id.clone())).or_default().push(fault);
        }
        let active = |faults: &[GatewayFault]| {
            faults.iter().all(|f| f.plugin.is_empty() || self.builder.is_active(&f.plugin))
        };
        // Without faults, as nearly always, nothing has to be looked up.
        let (mut selectors, mut rules) = (HashSet::new(), HashSet::new());
        if !self.faults.is_empty() {
            selectors.extend(dirty.selectors.iter().map(|(_, id)| id));
            rules.extend(dirty.rules.iter().map(|(_, id)| id));
        }
        self.faults.retain(|(group, id), faults| {
            let compiled_again = match group {
                Group::Plugin => dirty.plugins.contains(id),
                Group::Selector => selectors.contains(id),
                Group::Rule => rules.contains(id),
                Group::DiscoverUpstream => dirty.upstreams.contains(id),
                Group::MetaData => dirty.metadata,
                Group::AppAuth | Group::ProxySelector | Group::AiProxyApiKey => false,
            };
            let stays = active(faults)
                && (!compiled_again || new.get(&(*group, id.clone())) == Some(faults));
            if !stays && !new.contains_key(&(*group, id.clone())) {
                info!(group = %group, id, "the fault of this object is gone");
            }
            stays
        });
        for ((group, id), faults) in new {
            let old = self.faults.insert((group, id.clone()), faults.clone());
            if old.as_ref() != Some(&faults) {
                for fault in &faults {
                    let (plugin, text) = (&fault.plugin, &fault.text);
                    warn!(group = %group, id, plugin.name = plugin, "not in force as configured: {text}");
                }
            }
        }
    }
}
