//! What each kind of object looks like on the wire, beyond its own members.

use std::collections::HashSet;

use longmen_core::model::{
    AppAuth, MetaData, Plugin, ProxyApiKey, ProxySelector, Rule, Selector, UpstreamList,
};
use longmen_core::sync::Group;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How one object changed, as far as its frame depends on it.
#[derive(Debug)]
pub(super) struct Change<'a, T> {
    /// The object before the change, if there was one.
    pub(super) before: Option<T>,
    /// Whether it is gone.
    pub(super) deleted: bool,
    /// Ids of the selectors that go in the same change set.
    pub(super) removed_selectors: &'a HashSet<String>,
    /// The jar of the plugin that it is of, Base64; the log is without it.
    pub(super) jar: Option<&'a str>,
}

/// A kind of object that travels in frames.
pub(super) trait Object: Serialize + DeserializeOwned + Clone {
    /// The group it travels in.
    const GROUP: Group;

    /// The member that names its namespace.
    fn namespace(&mut self) -> &mut Option<String>;

    /// Adjusts the object to what a stock admin sends after a change.
    fn after_change(&mut self, _change: Change<'_, Self>) {}

    /// Adjusts the object to what a stock admin sends in a full sequence.
    fn in_sequence(&mut self) {}

    /// Leaves out what means nothing to our own gateways.
    fn for_ours(&mut self) {}

    /// Whether our own gateways have any use for it.
    fn wanted_by_ours(&self) -> bool {
        true
    }

    /// Fills what every frame has: an edit of metadata reaches only the default namespace of a
    /// stock admin because this member is missing there.
    fn complete(&mut self, namespace: &str) {
        let member = self.namespace();
        if member.as_deref().is_none_or(str::is_empty) {
            *member = Some(namespace.to_owned());
        }
    }
}

impl Object for Plugin {
    const GROUP: Group = Group::Plugin;

    fn namespace(&mut self) -> &mut Option<String> {
        &mut self.namespace_id
    }

    fn after_change(&mut self, change: Change<'_, Self>) {
        if !change.deleted && self.plugin_jar.is_none() {
            self.plugin_jar = change.jar.map(str::to_owned);
        }
        self.in_sequence();
    }

    fn in_sequence(&mut self) {
        // Always a member, empty without a jar.
        self.plugin_jar.get_or_insert_default();
    }

    fn for_ours(&mut self) {
        // Code for a JVM; can be megabytes.
        self.plugin_jar = None;
    }
}

impl Object for Selector {
    const GROUP: Group = Group::Selector;

    fn namespace(&mut self) -> &mut Option<String> {
        &mut self.namespace_id
    }

    fn after_change(&mut self, change: Change<'_, Self>) {
        let before = change.before.filter(|before| !change.deleted && !self.only_switched(before));
        let conditions = before.and_then(|before| before.condition_list);
        self.before_condition_list = Some(conditions.unwrap_or_default());
        if change.deleted {
            self.condition_list = None;
        } else {
            self.condition_list.get_or_insert_default();
        }
    }

    fn in_sequence(&mut self) {
        self.before_condition_list = Some(Vec::new());
        // Recorded: `[]` after a change, but absent in a sequence.
        self.condition_list.take_if(|list| list.is_empty());
    }

    fn for_ours(&mut self) {
        self.before_condition_list = None;
    }
}

impl Object for Rule {
    const GROUP: Group = Group::Rule;

    fn namespace(&mut self) -> &mut Option<String> {
        &mut self.namespace_id
    }

    fn after_change(&mut self, change: Change<'_, Self>) {
        let before = change.before.filter(|before| !change.deleted && !self.only_switched(before));
        let conditions = before.and_then(|before| before.condition_list);
        self.before_condition_list = Some(conditions.unwrap_or_default());
        let list = self.condition_list.get_or_insert_default();
        if change.deleted && change.removed_selectors.contains(&self.selector_id) {
            // Recorded: the conditions of a rule that goes with its selector are gone already.
            list.clear();
        }
    }

    fn in_sequence(&mut self) {
        self.condition_list.get_or_insert_default();
        self.before_condition_list = Some(Vec::new());
    }

    fn for_ours(&mut self) {
        self.before_condition_list = None;
    }
}

impl Object for UpstreamList {
    const GROUP: Group = Group::DiscoverUpstream;

    fn namespace(&mut self) -> &mut Option<String> {
        &mut self.namespace_id
    }

    fn after_change(&mut self, change: Change<'_, Self>) {
        if change.deleted {
            self.upstream_data_list = None;
        } else {
            self.in_sequence();
        }
    }

    fn in_sequence(&mut self) {
        // An empty list takes all upstreams away; a missing one does nothing.
        self.upstream_data_list.get_or_insert_default();
    }
}

impl Object for AppAuth {
    const GROUP: Group = Group::AppAuth;

    fn namespace(&mut self) -> &mut Option<String> {
        &mut self.namespace_id
    }

    fn after_change(&mut self, change: Change<'_, Self>) {
        if change.deleted {
            (self.param_data_list, self.path_data_list) = (None, None);
        }
    }
}

impl Object for ProxySelector {
    const GROUP: Group = Group::ProxySelector;

    fn namespace(&mut self) -> &mut Option<String> {
        &mut self.namespace_id
    }

    /// A raw port is; what only announces the upstreams of a selector is not.
    fn wanted_by_ours(&self) -> bool {
        self.proxy_type.is_some()
    }
}

/// Kinds that travel as they are.
macro_rules! plain {
    ($($kind:ty => $group:ident),* $(,)?) => {$(
        impl Object for $kind {
            const GROUP: Group = Group::$group;

            fn namespace(&mut self) -> &mut Option<String> {
                &mut self.namespace_id
            }
        }
    )*};
}

plain! {
    MetaData => MetaData,
    ProxyApiKey => AiProxyApiKey,
}

/// Objects that have conditions and a switch.
///
/// An edit carries the old conditions along; switching on or off does not, though the reference
/// knows them. What tells the two apart here is that nothing but the switch differs.
trait Switched: Sized + Clone + PartialEq {
    /// Whether `before` and this object differ in the switch alone.
    fn only_switched(&self, before: &Self) -> bool;
}

impl Switched for Selector {
    fn only_switched(&self, before: &Self) -> bool {
        self.enabled != before.enabled
            && Self { enabled: self.enabled, before_condition_list: None, ..before.clone() }
                == Self { before_condition_list: None, ..self.clone() }
    }
}

impl Switched for Rule {
    fn only_switched(&self, before: &Self) -> bool {
        self.enabled != before.enabled
            && Self { enabled: self.enabled, before_condition_list: None, ..before.clone() }
                == Self { before_condition_list: None, ..self.clone() }
    }
}
