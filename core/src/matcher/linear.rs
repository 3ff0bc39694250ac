//! The linear matcher: one after the other, in the order of precedence.

use super::{Entry, EntryKind, Matchable};
use crate::condition::{ConditionOutcome, RequestView};
use crate::model::Condition;

/// The selectors of a plugin, or the rules of a selector, in the order of precedence.
#[derive(Debug, Clone)]
pub struct Linear<M> {
    items: Vec<M>,
    last: Option<usize>,
}

/// What became of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryOutcome {
    /// The id of the entry.
    pub id: String,
    /// Whether it applies, or why not.
    pub verdict: Verdict,
    /// Whether it is the one that is used.
    pub chosen: bool,
    /// Its conditions, one by one; empty for kinds that look at none.
    pub conditions: Vec<ConditionOutcome>,
}

/// Whether an entry applies, or why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It takes every request.
    Always,
    /// Its conditions are met.
    Met,
    /// Its conditions are not met.
    NotMet,
    /// It is switched off.
    Disabled,
    /// It goes by conditions and has none.
    NoConditions,
}

impl<M: Matchable> Linear<M> {
    /// Brings the entries into the order of precedence. Ids are unique within a list; the order in
    /// which entries come in has no influence.
    #[must_use]
    pub fn new(mut items: Vec<M>) -> Self {
        items.sort_by(|a, b| a.entry().precedence().cmp(&b.entry().precedence()));
        let by_list_order =
            |(_, a): &(usize, &M), (_, b): &(usize, &M)| a.entry().list_order(b.entry());
        let last = items.iter().enumerate().max_by(by_list_order).map(|(at, _)| at);
        Self { items, last }
    }

    /// The entry that applies to the request, if any: the first that matches.
    #[must_use]
    pub fn find<V: RequestView + ?Sized>(&self, view: &V) -> Option<&M> {
        self.items.iter().find(|item| item.entry().applies(view))
    }

    /// The last entry by `sort`, then id, whether it is enabled or not and whatever its conditions:
    /// the rule that a full selector uses.
    #[must_use]
    pub fn last_by_sort(&self) -> Option<&M> {
        self.last.and_then(|at| self.items.get(at))
    }

    /// All entries, in the order of precedence.
    pub fn iter(&self) -> std::slice::Iter<'_, M> {
        self.items.iter()
    }

    /// The number of entries, disabled ones included.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Whether some enabled entry could apply to a request with this path.
    #[must_use]
    pub fn could_apply(&self, path: &str) -> bool {
        self.items.iter().any(|item| item.entry().could_apply(path))
    }

    /// What every entry makes of the request, in the order of precedence; `texts` yields the
    /// conditions an entry was compiled from.
    #[must_use]
    pub fn explain<'m, V, F>(&'m self, view: &V, texts: F) -> Vec<EntryOutcome>
    where
        V: RequestView + ?Sized,
        F: Fn(&'m M) -> &'m [Condition],
    {
        let mut chosen = false;
        let outcome = |item: &'m M| {
            let entry = item.entry();
            let first = !chosen && entry.applies(view);
            chosen |= first;
            entry.explain(texts(item), view, first)
        };
        self.items.iter().map(outcome).collect()
    }
}

impl<'m, M: Matchable> IntoIterator for &'m Linear<M> {
    type Item = &'m M;
    type IntoIter = std::slice::Iter<'m, M>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<M> Default for Linear<M> {
    fn default() -> Self {
        Self { items: Vec::new(), last: None }
    }
}

impl Entry {
    /// What this entry makes of the request; `chosen` is handed on.
    #[must_use]
    pub fn explain<V: RequestView + ?Sized>(
        &self,
        texts: &[Condition],
        view: &V,
        chosen: bool,
    ) -> EntryOutcome {
        let verdict = match self.kind {
            _ if !self.enabled => Verdict::Disabled,
            EntryKind::Full | EntryKind::Other => Verdict::Always,
            EntryKind::Custom if self.conditions.is_empty() => Verdict::NoConditions,
            EntryKind::Custom | EntryKind::Rule if self.applies(view) => Verdict::Met,
            EntryKind::Custom | EntryKind::Rule => Verdict::NotMet,
        };
        let conditions = match self.kind {
            EntryKind::Custom | EntryKind::Rule => self.conditions.explain(texts, view),
            EntryKind::Full | EntryKind::Other => Vec::new(),
        };
        EntryOutcome { id: (*self.id).to_owned(), verdict, chosen, conditions }
    }
}
