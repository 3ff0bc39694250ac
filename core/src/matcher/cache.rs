//! Match caches: what an index answered for a path.
//!
//! A cache belongs to one state of one index, is made when first used, and goes with it: an edit of
//! the index leaves its cache behind. Only answers that the path alone decides get in, only those
//! dearer than a look into the cache, and only when a path is seen for the second time, so that a
//! flood of unique paths costs next to nothing.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use foldhash::fast::RandomState;
use moka::sync::Cache;

/// Longer paths are not remembered: with the number of entries this bounds the bytes.
const LONGEST_PATH_BYTES: usize = 512;
/// The most paths that are remembered as seen once.
const MOST_SEEN: usize = 8_192;

/// How answers are remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatchCacheOptions {
    /// Whether they are.
    pub enabled: bool,
    /// Entries to make room for at once.
    pub initial_capacity: usize,
    /// The most entries of one cache.
    pub maximum_size: usize,
}

/// The answers of one index: the id of what applies, `None` where nothing does.
pub(super) struct MatchCache {
    answers: Cache<Box<str>, Option<Arc<str>>, RandomState>,
    seen: Box<[AtomicU32]>,
    hasher: RandomState,
}

impl MatchCache {
    pub(super) fn new(options: MatchCacheOptions) -> Self {
        let hasher = RandomState::default();
        let answers = Cache::builder()
            .max_capacity(options.maximum_size as u64)
            .initial_capacity(options.initial_capacity.min(options.maximum_size))
            .build_with_hasher(hasher.clone());
        let slots = options.maximum_size.clamp(16, MOST_SEEN).next_power_of_two();
        let seen = std::iter::repeat_with(|| AtomicU32::new(0)).take(slots).collect();
        Self { answers, seen, hasher }
    }

    /// The answer for a path, if it is known.
    pub(super) fn get(&self, path: &str) -> Option<Option<Arc<str>>> {
        if path.len() > LONGEST_PATH_BYTES {
            return None;
        }
        self.answers.get(path)
    }

    /// Remembers an answer if its path was seen before.
    pub(super) fn offer(&self, path: &str, answer: Option<&Arc<str>>) {
        if path.len() <= LONGEST_PATH_BYTES && self.seen_before(path) {
            self.answers.insert(path.into(), answer.cloned());
        }
    }

    /// How many answers are known.
    #[cfg(test)]
    pub(super) fn len(&self) -> u64 {
        self.answers.run_pending_tasks();
        self.answers.entry_count()
    }

    /// Forgets early and mistakes one path in four billion for another; neither matters.
    #[expect(clippy::cast_possible_truncation, reason = "the halves are what is wanted")]
    fn seen_before(&self, path: &str) -> bool {
        use std::hash::BuildHasher;
        let hash = self.hasher.hash_one(path);
        let tag = (hash >> 32) as u32 | 1;
        let slot = &self.seen[hash as usize & (self.seen.len() - 1)];
        if slot.load(Ordering::Relaxed) == tag {
            return true;
        }
        slot.store(tag, Ordering::Relaxed);
        false
    }
}

impl Default for MatchCacheOptions {
    fn default() -> Self {
        Self { enabled: true, initial_capacity: 0, maximum_size: 10_000 }
    }
}

impl MatchCacheOptions {
    /// No cache.
    #[must_use]
    pub const fn off() -> Self {
        Self { enabled: false, initial_capacity: 0, maximum_size: 0 }
    }
}

impl fmt::Debug for MatchCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MatchCache").finish_non_exhaustive()
    }
}
