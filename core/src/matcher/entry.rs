//! What matching needs to know of a selector or rule.

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

use crate::condition::{CompileFault, Compiled, CompiledConditions, Compiler, RequestView};
use crate::model::{Rule, Selector, SelectorType};

/// The matching side of a selector or rule.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The id of the object.
    pub id: Arc<str>,
    /// Precedence, ascending.
    pub sort: i32,
    /// Whether it takes part.
    pub enabled: bool,
    /// When its conditions are looked at.
    pub kind: EntryKind,
    /// The conditions.
    pub conditions: CompiledConditions,
}

/// When the conditions of an entry are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A selector for every request.
    Full,
    /// A selector by conditions; without any it never applies.
    Custom,
    /// A selector of a type nobody names: for every request.
    Other,
    /// A rule: by conditions; without any it applies under AND and not under OR.
    Rule,
}

/// The place of an entry in the order of precedence; the least is asked first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Precedence<'e> {
    weight: Reverse<u32>,
    sort: i32,
    id: &'e [u8],
}

/// Something that is matched by an [`Entry`]: the compiled selector or rule around it.
pub trait Matchable {
    /// Its matching side.
    fn entry(&self) -> &Entry;

    /// Whether it cannot be used as it is configured, so that requests it could be meant for are
    /// refused.
    fn blocked(&self) -> bool {
        false
    }
}

// === impl Entry ===

impl Entry {
    /// The entry of a selector, with the faults of its conditions.
    #[must_use]
    pub fn of_selector(selector: &Selector, compiler: &mut Compiler) -> (Self, Vec<CompileFault>) {
        let kind = match selector.kind() {
            SelectorType::Full => EntryKind::Full,
            SelectorType::Custom => EntryKind::Custom,
            SelectorType::Other => EntryKind::Other,
        };
        let Compiled { conditions, faults } =
            compiler.compile(selector.match_mode, selector.conditions());
        let sort = selector.sort.unwrap_or_default();
        let id = selector.id.as_str().into();
        (Self { id, sort, enabled: selector.enabled, kind, conditions }, faults)
    }

    /// The entry of a rule, with the faults of its conditions.
    #[must_use]
    pub fn of_rule(rule: &Rule, compiler: &mut Compiler) -> (Self, Vec<CompileFault>) {
        let Compiled { conditions, faults } = compiler.compile(rule.match_mode, rule.conditions());
        let sort = rule.sort.unwrap_or_default();
        let id = rule.id.as_str().into();
        (Self { id, sort, enabled: rule.enabled, kind: EntryKind::Rule, conditions }, faults)
    }

    /// Whether it applies to the request.
    #[must_use]
    pub fn applies<V: RequestView + ?Sized>(&self, view: &V) -> bool {
        self.enabled && self.would_apply(view)
    }

    /// Whether it applies to the request, or would if it were enabled.
    #[must_use]
    pub fn would_apply<V: RequestView + ?Sized>(&self, view: &V) -> bool {
        match self.kind {
            EntryKind::Full | EntryKind::Other => true,
            EntryKind::Custom => !self.conditions.is_empty() && self.conditions.matches(view),
            EntryKind::Rule => self.conditions.matches(view),
        }
    }

    /// Whether it could apply to a request with this path; see
    /// [`CompiledConditions::could_match_path`].
    #[must_use]
    pub fn could_apply(&self, path: &str) -> bool {
        self.enabled
            && match self.kind {
                EntryKind::Full | EntryKind::Other => true,
                EntryKind::Custom => {
                    !self.conditions.is_empty() && self.conditions.could_match_path(path)
                }
                EntryKind::Rule => self.conditions.could_match_path(path),
            }
    }

    /// Whether the outcome depends on the path alone.
    #[must_use]
    pub fn path_only(&self) -> bool {
        !self.enabled
            || matches!(self.kind, EntryKind::Full | EntryKind::Other)
            || self.conditions.path_only()
    }

    /// Its place in the order of precedence.
    #[must_use]
    pub fn precedence(&self) -> Precedence<'_> {
        Precedence {
            weight: Reverse(self.conditions.weight()),
            sort: self.sort,
            id: self.id.as_bytes(),
        }
    }

    /// The order in which lists are shown, and whose last rule a full selector uses: `sort`, id.
    #[must_use]
    pub fn list_order(&self, other: &Self) -> Ordering {
        (self.sort, self.id.as_bytes()).cmp(&(other.sort, other.id.as_bytes()))
    }
}

// === impl Matchable ===

impl Matchable for Entry {
    fn entry(&self) -> &Entry {
        self
    }
}

impl<M: Matchable + ?Sized> Matchable for Arc<M> {
    fn entry(&self) -> &Entry {
        (**self).entry()
    }

    fn blocked(&self) -> bool {
        (**self).blocked()
    }
}
