//! The parts of a snapshot. Each is immutable and shared by `Arc` from one snapshot to the next.

use std::sync::Arc;

use super::MetadataIndex;
use crate::chain::{Handle, Plugin, RuleParts};
use crate::condition::RequestView;
use crate::matcher::{Entry, EntryKind, Index, Live, Map, Matchable, Search};
use crate::model::PluginClass;
use crate::upstream::UpstreamSet;

/// Where a snapshot stands in the history of its namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Position {
    /// The database the version counts in; empty from a stock admin.
    pub epoch: String,
    /// The version; 0 from a stock admin.
    pub version: u64,
}

/// Everything a request needs to be served; never changed once published.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Where it stands.
    pub position: Position,
    /// Whether a full set of configuration has ever been put in force.
    pub ready: bool,
    /// The plugins that can have an effect, in the order of the chain.
    pub plugins: Vec<Arc<PluginPart>>,
    /// The registered APIs by path.
    pub metadata: Arc<MetadataIndex>,
}

/// One enabled plugin.
#[derive(Debug)]
pub struct PluginPart {
    /// Its name.
    pub name: Arc<str>,
    /// Its class.
    pub class: PluginClass,
    /// Its place: the row's `sort`, else the fixed order.
    pub sort: i32,
    /// The fixed order; decides among equal sorts.
    pub order: i32,
    /// The code; `None` for a guard that this gateway cannot run.
    pub run: Option<Arc<dyn Plugin>>,
    /// The compiled config.
    pub config: Handle,
    /// The matching side of its selectors.
    pub selectors: Index<Arc<SelectorKey>>,
    /// Its selectors by their slot. Apart from the index, which an edited rule does not touch.
    pub(super) parts: Map<Arc<SelectorPart>>,
}

/// The matching side of a selector.
#[derive(Debug)]
pub struct SelectorKey {
    /// Its conditions and precedence.
    pub entry: Arc<Entry>,
    /// A guard's selector that cannot be used: requests it could be meant for are refused.
    pub blocked: bool,
    /// Where its part is; never used again within a plugin.
    pub(super) slot: u64,
}

/// What a plugin sees of a selector. Held by requests to their end: no rules, no conditions.
#[derive(Debug)]
pub struct SelectorHead {
    /// The id.
    pub id: Arc<str>,
    /// The name.
    pub name: Box<str>,
    /// The compiled handle.
    pub handle: Handle,
    /// The usable upstreams.
    pub upstreams: Arc<UpstreamSet>,
}

/// One selector with its rules.
#[derive(Debug)]
pub struct SelectorPart {
    /// What the plugin sees.
    pub head: Arc<SelectorHead>,
    /// Its matching side.
    pub entry: Arc<Entry>,
    /// Whether a match is worth a line in the log.
    pub logged: bool,
    /// Whether rules are matched.
    pub continued: bool,
    /// Its rules.
    pub rules: Index<Arc<RulePart>>,
    /// The rule used when rules are not matched.
    pub default_rule: Arc<RuleHead>,
}

/// What a plugin sees of a rule. Held by requests to their end.
#[derive(Debug, Default)]
pub struct RuleHead {
    /// The id; `default_rule` for the one used when rules are not matched.
    pub id: Arc<str>,
    /// The name.
    pub name: Box<str>,
    /// What the handle compiled to.
    pub parts: RuleParts,
}

/// One rule.
#[derive(Debug)]
pub struct RulePart {
    /// What the plugin sees.
    pub head: Arc<RuleHead>,
    /// Its matching side.
    pub entry: Entry,
    /// A guard's rule that cannot be used: requests it could be meant for are refused.
    pub blocked: bool,
    /// Whether a match is worth a line in the log.
    pub logged: bool,
}

/// What became of matching one plugin.
#[derive(Debug)]
pub enum Selected<'s> {
    /// No selector applies.
    NoSelector,
    /// A selector applies, but none of its rules.
    NoRule(&'s Arc<SelectorPart>),
    /// Both.
    Rule(&'s Arc<SelectorPart>, &'s Arc<RuleHead>),
    /// Something meant for this request cannot be used, and the plugin is a guard.
    Blocked,
}

impl PluginPart {
    /// Chooses selector and rule for a request. No side effects but those of match caches.
    ///
    /// Source: ShenYu 2.7.1, selection algorithm, executed.
    #[must_use]
    pub fn select<'s, V: RequestView + ?Sized>(&'s self, view: &V) -> Selected<'s> {
        self.select_by(&Live, view)
    }

    /// The same, with the lists asked in a way of choice.
    #[must_use]
    pub fn select_by<'s, S, V>(&'s self, search: &S, view: &V) -> Selected<'s>
    where
        S: Search,
        V: RequestView + ?Sized,
    {
        if may_be_meant(self.selectors.blocked(), view) {
            return Selected::Blocked;
        }
        let Some(selector) = search.search(&self.selectors, view).and_then(|key| self.part_of(key))
        else {
            return Selected::NoSelector;
        };
        if !selector.continued {
            return Selected::Rule(selector, &selector.default_rule);
        }
        if may_be_meant(selector.rules.blocked(), view) {
            return Selected::Blocked;
        }
        let rule = match selector.entry.kind {
            EntryKind::Full => selector.rules.last_by_sort(),
            EntryKind::Custom | EntryKind::Other | EntryKind::Rule => {
                search.search(&selector.rules, view)
            }
        };
        match rule {
            Some(rule) => Selected::Rule(selector, &rule.head),
            None => Selected::NoRule(selector),
        }
    }

    /// The selector behind its matching side.
    #[must_use]
    pub fn part_of(&self, key: &SelectorKey) -> Option<&Arc<SelectorPart>> {
        self.parts.get(key.slot)
    }

    /// Whether the selectors of a guard that is missing are meant for this request.
    #[must_use]
    pub fn is_meant_for<S, V>(&self, search: &S, view: &V) -> bool
    where
        S: Search,
        V: RequestView + ?Sized,
    {
        may_be_meant(self.selectors.blocked(), view)
            || search.search(&self.selectors, view).is_some()
    }
}

/// Whether something of a guard that cannot be used may be meant for this request.
fn may_be_meant<M: Matchable, V: RequestView + ?Sized>(blocked: &[M], view: &V) -> bool {
    blocked.iter().any(|item| item.entry().could_apply(view.effective_path()))
}

impl Matchable for SelectorKey {
    fn entry(&self) -> &Entry {
        &self.entry
    }

    fn blocked(&self) -> bool {
        self.blocked
    }
}

impl Matchable for RulePart {
    fn entry(&self) -> &Entry {
        &self.entry
    }

    fn blocked(&self) -> bool {
        self.blocked
    }
}
