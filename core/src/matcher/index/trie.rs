//! The tree over path segments.
//!
//! It is kept in one map: a place in the tree is the hash of the segments that lead to it, so a wide
//! place is no larger than a narrow one, and an edit copies the same few nodes wherever it happens.
//!
//! Keys of texts alone, which most rules have, need no tree: the hash of the first segments of a path
//! is the place, and one look for each number of segments in use finds them.

use std::sync::Arc;

use smallvec::SmallVec;

use super::bucket::Bucket;
use super::grams::Grams;
use super::hash::{self, Mark, ROOT, below, marked};
use super::keys::{End, MOST_BEGINNING, PathKey, Token};
use super::path::{DEPTH, Segments};
use crate::matcher::Matchable;
use crate::matcher::map::Map;

/// The lists that a path leads to. Every entry that takes the path is in one of them.
pub(super) type Reached<'t, M> = SmallVec<[&'t Bucket<M>; 8]>;

/// The tree.
#[derive(Debug, Clone)]
pub(super) struct Trie<M> {
    root: Inner<M>,
    places: Map<Place<M>>,
    /// How many keys of texts alone go on with anything, by the number of texts.
    under: [u32; DEPTH + 1],
    /// How many such keys end with their texts.
    exact: u32,
    /// Places whose lists have to be finished; the root is [`ROOT`].
    stale: Vec<u64>,
}

/// What the map holds.
#[derive(Debug, Clone)]
enum Place<M> {
    /// A place that something is below, or that prefixes end at.
    Inner(Arc<Inner<M>>),
    /// Entries whose path ends there, or goes on with a certain beginning.
    Bucket(Bucket<M>),
    /// How many beginnings of one length there are.
    Lengths(u32),
    /// The texts that are looked for anywhere in the path.
    Grams(Arc<Grams>),
}

/// A place in the tree. The numbers count keys that lead below.
#[derive(Debug, Clone)]
struct Inner<M> {
    /// Entries for all paths that lead here.
    prefix: Bucket<M>,
    /// By a text, and of them those that lead on from there.
    literal: u32,
    literal_on: u32,
    /// By any text, likewise.
    any: u32,
    any_on: u32,
    /// The lengths of the beginnings of segments that are wanted, as bits.
    lengths: u64,
    /// Whether texts are looked for anywhere in the path.
    grams: bool,
}

impl<M: Matchable + Clone> Trie<M> {
    pub(super) const fn new() -> Self {
        Self {
            root: Inner::new(),
            places: Map::new(),
            under: [0; DEPTH + 1],
            exact: 0,
            stale: Vec::new(),
        }
    }

    /// Adds an entry at one key.
    pub(super) fn insert(&mut self, key: &PathKey, item: &M) {
        if let Some(at) = key.of_texts() {
            *self.texts_mut(key) += 1;
            let stale = self.bucket_mut(at).insert(item.clone());
            return self.note(at, stale);
        }
        let mut place = ROOT;
        for (token, on) in key.walk() {
            let inner = self.inner_mut(place);
            place = match token {
                Token::Literal(segment) => {
                    inner.literal += 1;
                    inner.literal_on += u32::from(on);
                    below(place, segment)
                }
                Token::Any => {
                    inner.any += 1;
                    inner.any_on += u32::from(on);
                    marked(place, Mark::Any)
                }
            };
        }
        let (at, stale) = match key.end {
            End::Prefix => (place, self.inner_mut(place).prefix.insert(item.clone())),
            End::Exact => {
                let at = marked(place, Mark::End);
                (at, self.bucket_mut(at).insert(item.clone()))
            }
            End::Begins(length, text) => {
                self.inner_mut(place).lengths |= 1 << length;
                *self.lengths_mut(place, length) += 1;
                let at = below(marked(place, Mark::Begins), text);
                (at, self.bucket_mut(at).insert(item.clone()))
            }
            End::Holds(held, text) => {
                self.inner_mut(place).grams = true;
                self.grams_mut(place).add(held, text);
                let at = below(marked(place, Mark::Holds), text);
                (at, self.bucket_mut(at).insert(item.clone()))
            }
        };
        self.note(at, stale);
    }

    /// Takes an entry out that was added at that key.
    pub(super) fn remove(&mut self, key: &PathKey, item: &M) {
        if let Some(at) = key.of_texts() {
            *self.texts_mut(key) -= 1;
            return self.take(at, item);
        }
        let mut place = ROOT;
        for (token, on) in key.walk() {
            let inner = self.inner_mut(place);
            let next = match token {
                Token::Literal(segment) => {
                    inner.literal -= 1;
                    inner.literal_on -= u32::from(on);
                    below(place, segment)
                }
                Token::Any => {
                    inner.any -= 1;
                    inner.any_on -= u32::from(on);
                    marked(place, Mark::Any)
                }
            };
            self.drop_idle(place);
            place = next;
        }
        match key.end {
            End::Prefix => {
                let stale = self.inner_mut(place).prefix.remove(item);
                self.note(place, stale);
            }
            End::Exact => self.take(marked(place, Mark::End), item),
            End::Begins(length, text) => {
                let count = self.lengths_mut(place, length);
                *count -= 1;
                if *count == 0 {
                    self.places.remove(length_place(place, length), Place::is_lengths);
                    self.inner_mut(place).lengths &= !(1 << length);
                }
                self.take(below(marked(place, Mark::Begins), text), item);
            }
            End::Holds(held, text) => {
                if self.grams_mut(place).remove(held) {
                    self.places.remove(marked(place, Mark::Holds), Place::is_grams);
                    self.inner_mut(place).grams = false;
                }
                self.take(below(marked(place, Mark::Holds), text), item);
            }
        }
        self.drop_idle(place);
    }

    /// Brings what is compiled up to date.
    pub(super) fn finish(&mut self) {
        let mut stale = std::mem::take(&mut self.stale);
        stale.sort_unstable();
        stale.dedup();
        for place in stale {
            if place == ROOT {
                self.root.prefix.finish();
            }
            if self.places.find(place, Place::is_inner).is_some() {
                self.inner_mut(place).prefix.finish();
            }
            if self.places.find(place, Place::is_bucket).is_some() {
                self.bucket_mut(place).finish();
            }
        }
    }

    /// Adds the lists that a path leads to.
    pub(super) fn reach<'t>(&'t self, path: &Segments<'_>, reached: &mut Reached<'t, M>) {
        self.reach_inner(&self.root, ROOT, path, 0, reached);
        let mut place = ROOT;
        for (at, segment) in path.list().iter().enumerate() {
            place = below(place, segment.hash);
            if self.under.get(at + 1).is_some_and(|count| *count > 0) {
                self.reach_bucket(marked(place, Mark::Under), reached);
            }
        }
        if self.exact > 0 {
            self.reach_bucket(marked(place, Mark::End), reached);
        }
    }

    /// Adds what stands at a place and below; `at` segments led here.
    fn reach_inner<'t>(
        &'t self,
        inner: &'t Inner<M>,
        place: u64,
        path: &Segments<'_>,
        at: usize,
        reached: &mut Reached<'t, M>,
    ) {
        if !inner.prefix.is_empty() {
            reached.push(&inner.prefix);
        }
        if inner.grams {
            self.reach_grams(place, path.path(), reached);
        }
        let Some(segment) = path.list().get(at) else { return };
        let mut lengths = inner.lengths;
        while lengths != 0 {
            let length = lengths.trailing_zeros() as usize;
            lengths &= lengths - 1;
            let Some(beginning) = segment.bytes.get(..length) else { break };
            let begins = below(marked(place, Mark::Begins), hash::of(beginning));
            self.reach_bucket(begins, reached);
        }
        if inner.literal > 0 {
            let ends = inner.literal > inner.literal_on;
            let next = below(place, segment.hash);
            self.reach_next(next, ends, inner.literal_on > 0, path, at + 1, reached);
        }
        if inner.any > 0 {
            let ends = inner.any > inner.any_on;
            let next = marked(place, Mark::Any);
            self.reach_next(next, ends, inner.any_on > 0, path, at + 1, reached);
        }
    }

    fn reach_next<'t>(
        &'t self,
        place: u64,
        ends: bool,
        on: bool,
        path: &Segments<'_>,
        at: usize,
        reached: &mut Reached<'t, M>,
    ) {
        if ends && at == path.list().len() {
            self.reach_bucket(marked(place, Mark::End), reached);
        }
        if on && let Some(Place::Inner(inner)) = self.places.find(place, Place::is_inner) {
            self.reach_inner(inner, place, path, at, reached);
        }
    }

    #[cold]
    fn reach_grams<'t>(&'t self, place: u64, path: &[u8], reached: &mut Reached<'t, M>) {
        let at = marked(place, Mark::Holds);
        if let Some(Place::Grams(grams)) = self.places.find(at, Place::is_grams) {
            grams.of(path, |text| self.reach_bucket(below(at, text), reached));
        }
    }

    fn reach_bucket<'t>(&'t self, place: u64, reached: &mut Reached<'t, M>) {
        if let Some(Place::Bucket(bucket)) = self.places.find(place, Place::is_bucket) {
            reached.push(bucket);
        }
    }

    /// The number of keys like this one, which is of texts alone.
    fn texts_mut(&mut self, key: &PathKey) -> &mut u32 {
        match key.end {
            End::Exact => &mut self.exact,
            _ => &mut self.under[key.tokens.len()],
        }
    }

    fn inner_mut(&mut self, place: u64) -> &mut Inner<M> {
        if place == ROOT {
            return &mut self.root;
        }
        let make = || Place::Inner(Arc::new(Inner::new()));
        match self.places.entry(place, Place::is_inner, make) {
            Place::Inner(inner) => Arc::make_mut(inner),
            _ => unreachable!("was asked for by its kind"),
        }
    }

    fn bucket_mut(&mut self, place: u64) -> &mut Bucket<M> {
        match self.places.entry(place, Place::is_bucket, || Place::Bucket(Bucket::Empty)) {
            Place::Bucket(bucket) => bucket,
            _ => unreachable!("was asked for by its kind"),
        }
    }

    fn lengths_mut(&mut self, place: u64, length: usize) -> &mut u32 {
        let at = length_place(place, length);
        match self.places.entry(at, Place::is_lengths, || Place::Lengths(0)) {
            Place::Lengths(count) => count,
            _ => unreachable!("was asked for by its kind"),
        }
    }

    fn grams_mut(&mut self, place: u64) -> &mut Grams {
        let at = marked(place, Mark::Holds);
        let make = || Place::Grams(Arc::new(Grams::new()));
        match self.places.entry(at, Place::is_grams, make) {
            Place::Grams(grams) => Arc::make_mut(grams),
            _ => unreachable!("was asked for by its kind"),
        }
    }

    /// Takes an entry out of the list at a place, and the list if it was the last.
    fn take(&mut self, place: u64, item: &M) {
        let bucket = self.bucket_mut(place);
        let stale = bucket.remove(item);
        if bucket.is_empty() {
            self.places.remove(place, Place::is_bucket);
        }
        self.note(place, stale);
    }

    fn drop_idle(&mut self, place: u64) {
        if let Some(Place::Inner(inner)) = self.places.find(place, Place::is_inner)
            && inner.is_idle()
        {
            self.places.remove(place, Place::is_inner);
        }
    }

    fn note(&mut self, place: u64, stale: bool) {
        if stale && self.stale.last() != Some(&place) {
            self.stale.push(place);
        }
    }

    /// Whether nothing is left behind.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        let none = self.exact == 0 && self.under == [0; DEPTH + 1];
        none && self.places.len() == 0 && self.root.is_idle()
    }
}

impl<M> Inner<M> {
    const fn new() -> Self {
        Self {
            prefix: Bucket::Empty,
            literal: 0,
            literal_on: 0,
            any: 0,
            any_on: 0,
            lengths: 0,
            grams: false,
        }
    }

    const fn is_idle(&self) -> bool {
        self.literal == 0
            && self.any == 0
            && self.lengths == 0
            && !self.grams
            && matches!(self.prefix, Bucket::Empty)
    }
}

impl<M> Place<M> {
    const fn is_inner(&self) -> bool {
        matches!(self, Self::Inner(_))
    }

    const fn is_bucket(&self) -> bool {
        matches!(self, Self::Bucket(_))
    }

    const fn is_grams(&self) -> bool {
        matches!(self, Self::Grams(_))
    }

    const fn is_lengths(&self) -> bool {
        matches!(self, Self::Lengths(_))
    }
}

impl PathKey {
    /// The place of a key of texts alone that is found without the tree.
    fn of_texts(&self) -> Option<u64> {
        let mark = match self.end {
            End::Exact => Mark::End,
            End::Prefix if !self.tokens.is_empty() => Mark::Under,
            End::Prefix | End::Begins(..) | End::Holds(..) => return None,
        };
        let place = self.tokens.iter().try_fold(ROOT, |place, token| match token {
            Token::Literal(segment) => Some(below(place, *segment)),
            Token::Any => None,
        })?;
        Some(marked(place, mark))
    }

    /// The segments, each with whether anything but the end of the path is looked for after it.
    fn walk(&self) -> impl Iterator<Item = (Token, bool)> {
        let last = self.tokens.len();
        let exact = self.end == End::Exact;
        self.tokens.iter().enumerate().map(move |(at, token)| (*token, !exact || at + 1 < last))
    }
}

const fn length_place(place: u64, length: usize) -> u64 {
    // Lengths are small, so they only touch bits that the mark leaves alone: no two are the same.
    const { assert!(MOST_BEGINNING < 64, "lengths are bits of one word") };
    below(marked(place, Mark::Length), length as u64)
}
