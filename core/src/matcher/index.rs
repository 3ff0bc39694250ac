//! The index over selectors or rules: finds what [`Linear`] finds, without asking one by one.
//!
//! Conditions on the path choose places in a tree of segments, and where many entries share a place
//! they are divided by the next equality they ask for (host, method, a header, …). That only
//! narrows: every candidate is asked in full, and of those that apply the first in the order of
//! precedence is used. What cannot be narrowed is a candidate for every request.
//!
//! A copy shares everything; an edit copies the few nodes on its way. So a snapshot keeps its
//! index while the next one is being made.

mod bucket;
mod considered;
mod grams;
mod hash;
mod keys;
mod path;
mod scan;
mod trie;

use std::sync::{Arc, OnceLock};

use self::bucket::{Best, Request};
pub use self::considered::Considered;
use self::path::Segments;
use self::trie::{Reached, Trie};
use super::cache::{MatchCache, MatchCacheOptions};
use super::map::Map;
use super::{Linear, Matchable, Planted, planted};
use crate::condition::{Hint, PathTest, RequestView};

/// Up to this many entries a list asked one by one is faster than the way through the tree.
const LINEAR_UP_TO: usize = 8;
/// Candidates that cost less than this, in nanoseconds, are asked rather than looked up in a cache.
const DEAR_NS: usize = 400;

/// How an index works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexOptions {
    /// Up to this many entries are asked one by one.
    pub linear_up_to: usize,
    /// Candidates that cost less than this, roughly in nanoseconds, are never looked up in a cache.
    pub dear_ns: usize,
    /// The match cache.
    pub cache: MatchCacheOptions,
}

/// The selectors of a plugin, or the rules of a selector.
#[derive(Debug, Clone)]
pub struct Index<M> {
    options: IndexOptions,
    /// All entries by the hash of their id, disabled ones included.
    records: Map<M>,
    /// While there are few; the tree is empty then.
    linear: Option<Arc<Linear<M>>>,
    trie: Trie<M>,
    /// How many entries of the tree have a condition by `pathPattern`.
    decoding: usize,
    last: Option<M>,
    blocked: Option<Arc<Vec<M>>>,
    /// Whether the last entry is to be found anew.
    last_gone: bool,
    /// Whether there are changes to put in force.
    changed: bool,
    /// Fresh after each change, so that it never knows an answer of before.
    /// There is none for few entries.
    cache: Option<Arc<OnceLock<MatchCache>>>,
}

impl<M: Matchable + Clone + Send + Sync + 'static> Index<M> {
    /// An index without entries.
    #[must_use]
    pub fn new(options: IndexOptions) -> Self {
        Self {
            options,
            records: Map::new(),
            linear: Some(Arc::default()),
            trie: Trie::new(),
            decoding: 0,
            last: None,
            blocked: None,
            last_gone: false,
            changed: false,
            cache: None,
        }
    }

    /// The entry that applies to the request, if any: the first in the order of precedence.
    #[must_use]
    pub fn find<V: RequestView + ?Sized>(&self, view: &V) -> Option<&M> {
        if let Some(linear) = &self.linear {
            return linear.find(view);
        }
        let request = Request { view };
        let reached = self.reach(view.effective_path());
        if let Some(cache) = &self.cache
            && self.is_cacheable(&reached, &request)
        {
            return self.find_cached(cache, &reached, &request);
        }
        Self::first(&reached, &request)
    }

    /// The same without the match cache, which is neither asked nor told: what only looks leaves no
    /// trace.
    #[must_use]
    pub fn look<V: RequestView + ?Sized>(&self, view: &V) -> Option<&M> {
        match &self.linear {
            Some(linear) => linear.find(view),
            None => Self::first(&self.reach(view.effective_path()), &Request { view }),
        }
    }

    /// Puts an entry in place of the one with its id. [`finish`](Self::finish) ends a row of changes.
    pub fn put(&mut self, item: M) {
        self.changed = true;
        let was_last = self.last.as_ref().is_some_and(|last| last.entry().id == item.entry().id);
        let unknown = self.last_gone;
        let keeps_old = planted(Planted::DisabledKept) && !item.entry().enabled;
        if keeps_old {
            self.records.remove(id_hash(&item), |known| known.entry().id == item.entry().id);
        } else if let Some(old) = self.take(&item.entry().id)
            && was_last
        {
            // Where it does not move forward it is the last one still.
            self.last_gone = unknown || old.entry().list_order(item.entry()).is_gt();
            self.last = Some(item.clone());
        }
        if item.blocked() {
            Arc::make_mut(self.blocked.get_or_insert_default()).push(item.clone());
        }
        let later = |last: &M| last.entry().list_order(item.entry()).is_lt();
        if self.last.as_ref().is_none_or(later) {
            self.last = Some(item.clone());
        }
        if self.records.len() >= self.options.linear_up_to && self.linear.take().is_some() {
            // At once, while what is being put is at hand, rather than all at the end.
            self.items().iter().for_each(|item| self.plant(item));
        }
        if self.linear.is_none() {
            self.plant(&item);
        }
        self.records.insert(id_hash(&item), item);
    }

    /// Takes the entry with that id out. [`finish`](Self::finish) ends a row of changes.
    pub fn take(&mut self, id: &str) -> Option<M> {
        let wanted = |known: &M| *known.entry().id == *id;
        let item = self.records.remove(hash::of(id.as_bytes()), wanted)?;
        self.changed = true;
        if let Some(blocked) = self.blocked.as_mut().filter(|_| item.blocked()) {
            Arc::make_mut(blocked).retain(|known| *known.entry().id != *id);
            self.blocked = self.blocked.take().filter(|blocked| !blocked.is_empty());
        }
        if self.last.as_ref().is_some_and(wanted) {
            self.last = None;
            self.last_gone = true;
        }
        if self.linear.is_none() {
            for key in keys::places(item.entry()) {
                self.trie.remove(&key, &item);
            }
            self.decoding -= usize::from(decodes(&item));
        }
        Some(item)
    }

    /// Puts the changes since the last call in force. Without any, cache and all stay as they are.
    pub fn finish(&mut self) {
        if !std::mem::take(&mut self.changed) {
            return;
        }
        if std::mem::take(&mut self.last_gone) {
            let mut last: Option<&M> = None;
            self.records.for_each(&mut |item: &M| {
                if last.is_none_or(|last| last.entry().list_order(item.entry()).is_lt()) {
                    last = Some(item);
                }
            });
            self.last = last.cloned();
        }
        if self.records.len() <= self.options.linear_up_to {
            self.trie = Trie::new();
            self.decoding = 0;
            self.linear = Some(Arc::new(Linear::new(self.items())));
        }
        self.trie.finish();
        if self.cache.is_none() || !planted(Planted::CacheOutlivesEdit) {
            let cached = self.linear.is_none() && self.options.cache.enabled;
            self.cache = cached.then(Arc::default);
        }
    }

    /// The entry with that id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&M> {
        self.records.find(hash::of(id.as_bytes()), |known| *known.entry().id == *id)
    }

    /// The last entry by `sort`, then id, whether it is enabled or not and whatever its conditions:
    /// the rule that a full selector uses.
    #[must_use]
    pub const fn last_by_sort(&self) -> Option<&M> {
        self.last.as_ref()
    }

    /// The entries that cannot be used as they are configured, in no order.
    #[must_use]
    pub fn blocked(&self) -> &[M] {
        self.blocked.as_deref().map_or(&[], Vec::as_slice)
    }

    /// All entries, in no order.
    pub fn for_each<'m>(&'m self, each: &mut impl FnMut(&'m M)) {
        self.records.for_each(each);
    }

    /// The number of entries, disabled ones included.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn items(&self) -> Vec<M> {
        let mut items = Vec::with_capacity(self.len());
        self.records.for_each(&mut |item: &M| items.push(item.clone()));
        items
    }

    fn plant(&mut self, item: &M) {
        for key in keys::places(item.entry()) {
            self.trie.insert(&key, item);
        }
        self.decoding += usize::from(decodes(item));
    }

    fn reach(&self, path: &str) -> Reached<'_, M> {
        let mut reached = Reached::new();
        self.trie.reach(&Segments::of(path.as_bytes()), &mut reached);
        if self.decoding > 0
            && !planted(Planted::EscapesKept)
            && let Some(decoded) = path::decoded(path)
        {
            self.trie.reach(&Segments::of(&decoded), &mut reached);
        }
        reached
    }

    fn first<'b, V: RequestView + ?Sized>(
        reached: &Reached<'b, M>,
        request: &Request<'_, V>,
    ) -> Option<&'b M> {
        let mut best = Best(None);
        // What leads furthest comes last, and is most often what is looked for.
        for bucket in reached.iter().rev() {
            bucket.find(request, &mut best);
        }
        best.0
    }

    /// Whether the answer depends on the path alone, and is dear to find.
    fn is_cacheable<V: RequestView + ?Sized>(
        &self,
        reached: &Reached<'_, M>,
        request: &Request<'_, V>,
    ) -> bool {
        if planted(Planted::CacheIgnoresOtherInputs) {
            return true;
        }
        let costs = reached.iter().map(|bucket| bucket.cost(request));
        costs.sum::<Option<usize>>().is_some_and(|cost| cost >= self.options.dear_ns)
            && reached.iter().all(|bucket| bucket.is_pure(request))
    }

    #[cold]
    fn find_cached<'m, V: RequestView + ?Sized>(
        &'m self,
        cache: &OnceLock<MatchCache>,
        reached: &Reached<'m, M>,
        request: &Request<'_, V>,
    ) -> Option<&'m M> {
        let path = request.view.effective_path();
        let cache = cache.get_or_init(|| MatchCache::new(self.options.cache));
        if let Some(answer) = cache.get(path) {
            return self.get(&answer?);
        }
        let found = Self::first(reached, request);
        cache.offer(path, found.map(|item| &item.entry().id));
        found
    }

    /// How many entries a request is compared with, at the most.
    #[cfg(test)]
    pub(super) fn candidates<V: RequestView + ?Sized>(&self, view: &V) -> usize {
        let request = Request { view };
        self.reach(view.effective_path()).iter().map(|bucket| bucket.candidates(&request)).sum()
    }

    /// Whether no entry has left anything behind.
    #[cfg(test)]
    pub(super) fn is_bare(&self) -> bool {
        let nothing = self.records.len() == 0 && self.blocked.is_none() && self.last.is_none();
        nothing && self.trie.is_empty() && self.decoding == 0
    }

    /// How many answers the cache holds.
    #[cfg(test)]
    pub(crate) fn remembered(&self) -> u64 {
        self.cache.as_ref().and_then(|cache| cache.get()).map_or(0, MatchCache::len)
    }
}

impl<M: Matchable + Clone + Send + Sync + 'static> Default for Index<M> {
    fn default() -> Self {
        Self::new(IndexOptions::default())
    }
}

impl Default for IndexOptions {
    fn default() -> Self {
        let cache = MatchCacheOptions::default();
        Self { linear_up_to: LINEAR_UP_TO, dear_ns: DEAR_NS, cache }
    }
}

fn id_hash<M: Matchable>(item: &M) -> u64 {
    hash::of(item.entry().id.as_bytes())
}

fn decodes<M: Matchable>(item: &M) -> bool {
    let pattern = |hint| matches!(hint, Hint::Path(PathTest::Pattern(_)));
    item.entry().conditions.hints().any(pattern)
}
