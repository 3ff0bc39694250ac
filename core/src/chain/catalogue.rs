//! The catalogue of plugins: what exists, in which order, of which class, with which form fields.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::Plugin;
use crate::model::PluginClass;

/// What a form field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    /// A number.
    Number,
    /// Text.
    Text,
    /// One of the words of the dictionary of the same name.
    Select,
}

/// Which record a form field belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FormScope {
    /// The selector's handle.
    Selector,
    /// The rule's handle.
    Rule,
    /// The plugin's config.
    Plugin,
}

/// One field of the form that a console shows for a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormField {
    /// Member of the JSON text.
    pub field: &'static str,
    /// Which record it belongs to.
    pub scope: FormScope,
    /// What it holds.
    pub field_type: FieldType,
    /// What a console fills in.
    pub default_value: &'static str,
}

/// What is known about a plugin before any configuration.
#[derive(Debug, Clone, Copy)]
pub struct CatalogueEntry {
    /// The name: key of the plugin in configuration and on the wire.
    pub name: &'static str,
    /// Fixed position in the chain; a row's `sort` replaces it.
    pub order: i32,
    /// Position among the response hooks, ascending.
    pub response_order: i32,
    /// Category shown by consoles.
    pub role: &'static str,
    /// What happens when it cannot run.
    pub class: PluginClass,
    /// The label under which the reference's actuator lists it; existing clients look it up.
    pub label: &'static str,
    /// Form fields of its handles.
    pub fields: &'static [FormField],
}

/// A plugin of the reference that this build may not implement: enough to know what its absence
/// means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownPlugin {
    /// The name.
    pub name: &'static str,
    /// Fixed position in the chain.
    pub order: i32,
    /// What happens when it cannot run.
    pub class: PluginClass,
}

/// The plugins of one process; built by the binary and passed in. No global state.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    plugins: BTreeMap<&'static str, Arc<dyn Plugin>>,
    known: BTreeMap<&'static str, KnownPlugin>,
    off: Option<Switch>,
}

/// Says of a plugin, by its wire name, whether it is switched off.
#[derive(Clone)]
struct Switch(Arc<dyn Fn(&str) -> bool + Send + Sync>);

impl fmt::Debug for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Switch(..)")
    }
}

impl Registry {
    /// An empty registry that knows the given plugins of the reference.
    #[must_use]
    pub fn new(known: &'static [KnownPlugin]) -> Self {
        let known = known.iter().map(|plugin| (plugin.name, *plugin)).collect();
        Self { plugins: BTreeMap::new(), known, off: None }
    }

    /// Adds a plugin; one of the same name is replaced.
    pub fn add(&mut self, plugin: impl Plugin) {
        self.plugins.insert(plugin.entry().name, Arc::new(plugin));
    }

    /// Adds a plugin and returns the registry.
    #[must_use]
    pub fn with(mut self, plugin: impl Plugin) -> Self {
        self.add(plugin);
        self
    }

    /// Switches plugins off (`shenyu.plugins.NAME.enabled: false`), those of this build and any other:
    /// they take no part, and a guard among them is not missed. `off` is asked by wire name.
    pub fn switch_off(&mut self, off: impl Fn(&str) -> bool + Send + Sync + 'static) {
        self.plugins.retain(|name, _| !off(name));
        self.off = Some(Switch(Arc::new(off)));
    }

    /// Whether a plugin is switched off in this process.
    #[must_use]
    pub fn is_off(&self, name: &str) -> bool {
        self.off.as_ref().is_some_and(|Switch(off)| off(name))
    }

    /// The plugin of that name, if this build has it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Plugin>> {
        self.plugins.get(name)
    }

    /// All plugins of this build, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Plugin>> {
        self.plugins.values()
    }

    /// The class of a plugin: its own, else that of the reference's plugin of the same name, else
    /// what the role in its row says. Role `Authentication` makes any plugin a guard.
    #[must_use]
    pub fn class_of(&self, name: &str, role: Option<&str>) -> PluginClass {
        let by_role = PluginClass::of_unknown(role);
        if let Some(plugin) = self.plugins.get(name) {
            return plugin.entry().class;
        }
        match self.known.get(name) {
            Some(_) if by_role == PluginClass::Guard => PluginClass::Guard,
            Some(known) => known.class,
            None => by_role,
        }
    }

    /// The fixed position of a plugin; plugins nobody knows run first among those of sort 0.
    #[must_use]
    pub fn order_of(&self, name: &str) -> i32 {
        self.plugins
            .get(name)
            .map(|plugin| plugin.entry().order)
            .or_else(|| self.known.get(name).map(|known| known.order))
            .unwrap_or_default()
    }
}
