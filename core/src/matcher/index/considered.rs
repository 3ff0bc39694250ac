//! What an index compares a request with.

use super::Index;
use super::bucket::Request;
use crate::condition::RequestView;
use crate::matcher::Matchable;

/// The entries that a request is compared with, as far as the index narrows them.
#[derive(Debug, Clone)]
pub struct Considered<'m, M> {
    /// The first of them, in the order of precedence.
    pub entries: Vec<&'m M>,
    /// How many there are in all. The request itself is compared with fewer: no further than the
    /// first that applies.
    pub count: usize,
}

/// What is gathered on the way.
#[derive(Debug)]
pub(super) struct Gathered<'m, M> {
    items: Vec<&'m M>,
    /// The most that is taken from one list.
    pub(super) most: usize,
    count: usize,
}

impl<'m, M> Gathered<'m, M> {
    /// Takes a list in.
    pub(super) fn add<I>(&mut self, items: I)
    where
        I: IntoIterator<Item = &'m M, IntoIter: ExactSizeIterator>,
    {
        let items = items.into_iter();
        self.add_up_to(self.most, items.len(), items);
    }

    /// Takes the first `room` of `count` in; says how many those are.
    pub(super) fn add_up_to(
        &mut self,
        room: usize,
        count: usize,
        items: impl Iterator<Item = &'m M>,
    ) -> usize {
        self.count += count;
        let before = self.items.len();
        self.items.extend(items.take(room));
        self.items.len() - before
    }
}

impl<M: Matchable + Clone + Send + Sync + 'static> Index<M> {
    /// The entries that a request is compared with: at most `most` of them, and their number.
    ///
    /// Looks where [`find`](Self::find) looks, and no further: entries in other places of the tree,
    /// and those that are switched off, are never come by. Short lists are compared in full.
    #[must_use]
    pub fn considered<V: RequestView + ?Sized>(&self, view: &V, most: usize) -> Considered<'_, M> {
        if let Some(linear) = &self.linear {
            let entries = linear.iter().take(most).collect();
            return Considered { entries, count: linear.len() };
        }
        let request = Request { view };
        let mut gathered = Gathered { items: Vec::new(), most, count: 0 };
        for bucket in &self.reach(view.effective_path()) {
            bucket.gather(&request, &mut gathered);
        }
        let Gathered { mut items, count, .. } = gathered;
        let found = items.len();
        items.sort_by(|a, b| a.entry().precedence().cmp(&b.entry().precedence()));
        // One that several paths lead to is one.
        items.dedup_by(|a, b| a.entry().id == b.entry().id);
        let count = count - (found - items.len());
        items.truncate(most);
        Considered { entries: items, count }
    }
}
