//! Lists that nothing divides: asked in groups, each with one automaton in front.

use std::sync::Arc;

use regex::bytes::{RegexSet, RegexSetBuilder};

use super::bucket::{Best, Request};
use super::considered::Gathered;
use crate::condition::{Hint, PathTest, RequestView};
use crate::matcher::{Entry, EntryKind, Matchable, Planted, planted};
use crate::model::MatchMode;

/// The most entries of a group; an edit compiles the automaton of one group.
const GROUP: usize = 64;
/// The most that the automaton of a group may occupy, in bytes, and its cache likewise.
const SIZE_LIMIT_BYTES: usize = 4 << 20;
const DFA_LIMIT_BYTES: usize = 1 << 20;

/// Entries in the order of precedence, in groups.
#[derive(Debug, Clone)]
pub(super) struct Scan<M> {
    groups: Vec<Arc<Group<M>>>,
    len: usize,
    /// How many look at more than the path.
    impure: usize,
    /// How many there were when a way to divide them was last looked for.
    pub(super) tried_at: usize,
}

#[derive(Debug, Clone)]
struct Group<M> {
    items: Vec<M>,
    filter: Filter,
}

/// Tells which entries of a group a path may be meant for.
#[derive(Debug, Clone)]
enum Filter {
    /// Not compiled since the last change.
    Stale,
    /// Too few to be worth it, or too large.
    None,
    /// The place of each entry in the set; those without one are always asked.
    Set { set: RegexSet, places: Box<[Option<u8>]>, all: bool },
}

impl<M: Matchable + Clone> Scan<M> {
    pub(super) const fn new() -> Self {
        Self { groups: Vec::new(), len: 0, impure: 0, tried_at: 0 }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn is_pure(&self) -> bool {
        self.impure == 0
    }

    /// The number of groups a request has to be asked for.
    pub(super) const fn groups(&self) -> usize {
        self.groups.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &M> {
        self.groups.iter().flat_map(|group| &group.items)
    }

    pub(super) fn insert(&mut self, item: M) {
        self.len += 1;
        self.impure += usize::from(!item.entry().path_only());
        let at = self.group_of(&item);
        if self.groups.is_empty() {
            self.groups.push(Arc::new(Group { items: vec![item], filter: Filter::Stale }));
            return;
        }
        let group = Arc::make_mut(&mut self.groups[at]);
        let place = place_in(&group.items, &item);
        group.items.insert(place, item);
        group.touch();
        if group.items.len() > GROUP {
            let items = group.items.split_off(GROUP / 2);
            self.groups.insert(at + 1, Arc::new(Group { items, filter: Filter::Stale }));
        }
    }

    pub(super) fn remove(&mut self, item: &M) {
        let at = self.group_of(item);
        let Some(group) = self.groups.get_mut(at) else { return };
        let place = place_in(&group.items, item);
        if group.items.get(place).is_none_or(|known| known.entry().id != item.entry().id) {
            return;
        }
        let group = Arc::make_mut(group);
        group.items.remove(place);
        group.touch();
        if group.items.is_empty() {
            self.groups.remove(at);
        }
        self.len -= 1;
        self.impure -= usize::from(!item.entry().path_only());
    }

    /// Compiles the automata of groups that changed.
    pub(super) fn finish(&mut self) {
        for group in &mut self.groups {
            if matches!(group.filter, Filter::Stale) {
                let group = Arc::make_mut(group);
                group.filter = Filter::of(&group.items);
            }
        }
    }

    /// The first entry that applies and comes before what was found so far.
    pub(super) fn find<'b, V: RequestView + ?Sized>(
        &'b self,
        request: &Request<'_, V>,
        best: &mut Best<'b, M>,
    ) {
        for group in &self.groups {
            if group.items.first().is_none_or(|first| best.beats(first)) {
                return;
            }
            group.find(request, best);
        }
    }

    /// Adds the entries that [`find`](Self::find) may ask.
    pub(super) fn gather<'b, V: RequestView + ?Sized>(
        &'b self,
        request: &Request<'_, V>,
        gathered: &mut Gathered<'b, M>,
    ) {
        let path = request.view.effective_path().as_bytes();
        let mut room = gathered.most;
        for group in &self.groups {
            let asked = group.asked(path);
            room -= gathered.add_up_to(room, asked.len(), asked.iter().copied());
        }
    }

    fn group_of(&self, item: &M) -> usize {
        let precedence = item.entry().precedence();
        let before = |group: &Arc<Group<M>>| {
            group.items.first().is_some_and(|first| first.entry().precedence() <= precedence)
        };
        self.groups.partition_point(before).saturating_sub(1)
    }
}

impl<M: Matchable> Group<M> {
    fn find<'b, V: RequestView + ?Sized>(&'b self, request: &Request<'_, V>, best: &mut Best<'b, M>)
    where
        M: Clone,
    {
        let Filter::Set { set, places, all } = &self.filter else {
            return best.first_of(&self.items, request.view);
        };
        let path = request.view.effective_path().as_bytes();
        if !path.is_ascii() {
            return best.first_of(&self.items, request.view);
        }
        // Most groups hold nothing for a path, and this question needs no memory.
        if !set.is_match(path) {
            if !all {
                let free = self.items.iter().zip(places).filter(|(_, place)| place.is_none());
                best.first_of(free.map(|(item, _)| item), request.view);
            }
            return;
        }
        let hits = set.matches(path);
        let met = |place: &Option<u8>| place.is_none_or(|place| hits.matched(place.into()));
        let candidates = self.items.iter().zip(places).filter(|(_, place)| met(place));
        best.first_of(candidates.map(|(item, _)| item), request.view);
    }

    /// The entries that a path may be meant for: those that [`find`](Self::find) asks.
    fn asked(&self, path: &[u8]) -> Vec<&M> {
        let Filter::Set { set, places, .. } = &self.filter else {
            return self.items.iter().collect();
        };
        if !path.is_ascii() {
            return self.items.iter().collect();
        }
        let hits = set.matches(path);
        let met = |place: &Option<u8>| place.is_none_or(|place| hits.matched(place.into()));
        let all = self.items.iter().zip(places);
        all.filter(|(_, place)| met(place)).map(|(item, _)| item).collect()
    }

    fn touch(&mut self) {
        if !planted(Planted::OldFilterKept) || matches!(self.filter, Filter::None) {
            self.filter = Filter::Stale;
        }
    }
}

impl Filter {
    fn of<M: Matchable>(items: &[M]) -> Self {
        let mut texts: Vec<String> = Vec::new();
        let mut place = |item: &M| {
            texts.push(path_regex(item.entry()).filter(|text| says_the_same(text))?);
            u8::try_from(texts.len() - 1).ok()
        };
        let places: Box<[Option<u8>]> = items.iter().map(&mut place).collect();
        if texts.len() < 8 {
            return Self::None;
        }
        let set = RegexSetBuilder::new(&texts)
            // Over bytes they are much smaller, and mean the same for paths that are ASCII.
            .unicode(false)
            .size_limit(SIZE_LIMIT_BYTES)
            .dfa_size_limit(DFA_LIMIT_BYTES)
            .build();
        let all = places.iter().all(Option::is_some);
        set.map_or(Self::None, |set| Self::Set { set, places, all })
    }
}

/// Whether an expression over bytes takes the same ASCII paths as over characters: two characters beyond
/// ASCII fold to letters of it, and classes of characters do not exist over bytes.
fn says_the_same(text: &str) -> bool {
    text.is_ascii() && ![r"\x", r"\u", r"\U", r"\p", r"\P"].iter().any(|odd| text.contains(odd))
}

/// A regular expression that the path of every request the entry applies to matches somewhere.
fn path_regex(entry: &Entry) -> Option<String> {
    let conditional = matches!(entry.kind, EntryKind::Custom | EntryKind::Rule);
    if !conditional || entry.conditions.mode() == MatchMode::Or {
        return None;
    }
    entry.conditions.hints().find_map(|hint| match hint {
        Hint::Path(PathTest::Regex(regex)) => Some(regex.as_str().to_owned()),
        Hint::Path(PathTest::Contains(text)) => Some(regex::escape(text)),
        Hint::Path(PathTest::EndsWith(text)) => Some(format!(r"{}\z", regex::escape(text))),
        Hint::Path(PathTest::Ant(patterns)) => {
            let each: Vec<String> = patterns.iter().map(|p| p.wider_regex()).collect();
            Some(format!("(?:{})", each.join("|")))
        }
        _ => None,
    })
}

fn place_in<M: Matchable>(items: &[M], item: &M) -> usize {
    let precedence = item.entry().precedence();
    items.partition_point(|known| known.entry().precedence() < precedence)
}
