//! The entries of one place: a short list, divided by an equality, or a long list.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;

use super::considered::Gathered;
use super::hash;
use super::keys::{Facet, facets};
use super::path::split;
use super::scan::Scan;
use crate::condition::RequestView;
use crate::matcher::map::Map;
use crate::matcher::{Matchable, Planted, planted};

/// Up to this many entries are asked one by one.
const FEW: usize = 12;
/// So many times at most are entries divided one within the other: finding goes as deep.
const MOST_DIVISIONS: usize = 32;

/// Entries, in the order of precedence where they stand in a list.
#[derive(Debug, Clone, Default)]
pub(super) enum Bucket<M> {
    #[default]
    Empty,
    One(M),
    Few(Arc<Vec<M>>),
    Split(Arc<Split<M>>),
    Scan(Arc<Scan<M>>),
}

/// Entries divided by a value that most of them want to be equal to something.
#[derive(Debug, Clone)]
pub(super) struct Split<M> {
    facet: Facet,
    by_value: Map<Bucket<M>>,
    /// Those that do not look at that value, or not so.
    rest: Bucket<M>,
    len: usize,
    /// Values whose lists have to be finished, some more than once, and whether the rest has.
    stale: Vec<u64>,
    rest_stale: bool,
}

/// A request under way through the index.
#[derive(Debug)]
pub(super) struct Request<'v, V: ?Sized> {
    pub(super) view: &'v V,
}

/// The entry that would be chosen by what was asked so far.
#[derive(Debug)]
pub(super) struct Best<'b, M>(pub(super) Option<&'b M>);

impl<M: Matchable + Clone> Bucket<M> {
    pub(super) const fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::One(_) => 1,
            Self::Few(items) => items.len(),
            Self::Split(split) => split.len,
            Self::Scan(scan) => scan.len(),
        }
    }

    /// Adds an entry; says whether [`finish`](Self::finish) is wanted.
    pub(super) fn insert(&mut self, item: M) -> bool {
        self.insert_at(item, 0)
    }

    /// `depth`: how many divisions it stands in.
    fn insert_at(&mut self, item: M, depth: usize) -> bool {
        match self {
            Self::Empty => {
                *self = Self::One(item);
                return false;
            }
            Self::One(first) => {
                let mut items = vec![first.clone()];
                insert_sorted(&mut items, item);
                *self = Self::Few(Arc::new(items));
                return false;
            }
            Self::Few(items) => {
                let items = Arc::make_mut(items);
                insert_sorted(items, item);
                if items.len() <= FEW {
                    return false;
                }
                *self = Self::divided(std::mem::take(items), depth);
            }
            Self::Split(split) => return Arc::make_mut(split).insert(item, depth),
            Self::Scan(scan) => {
                let scan = Arc::make_mut(scan);
                scan.insert(item);
                if depth < MOST_DIVISIONS && scan.len() >= 2 * scan.tried_at {
                    scan.tried_at = scan.len();
                    let items: Vec<M> = scan.iter().cloned().collect();
                    if best_facet(&items).is_some() {
                        *self = Self::divided(items, depth);
                    }
                }
            }
        }
        !matches!(self, Self::Few(_))
    }

    /// Takes an entry out; says whether [`finish`](Self::finish) is wanted.
    pub(super) fn remove(&mut self, item: &M) -> bool {
        match self {
            Self::Empty => {}
            Self::One(known) => {
                if known.entry().id == item.entry().id {
                    *self = Self::Empty;
                }
            }
            Self::Few(items) => {
                let items = Arc::make_mut(items);
                items.retain(|known| known.entry().id != item.entry().id);
                if items.len() <= 1 {
                    *self = items.pop().map_or(Self::Empty, Self::One);
                }
            }
            Self::Split(split) => {
                let split = Arc::make_mut(split);
                let stale = split.remove(item);
                if split.len > FEW / 2 {
                    return stale;
                }
                let mut items = Vec::with_capacity(split.len);
                split.for_each(&mut |item: &M| items.push(item.clone()));
                *self = Self::of_few(items);
            }
            Self::Scan(scan) => {
                let scan = Arc::make_mut(scan);
                scan.remove(item);
                if scan.len() > FEW / 2 {
                    return true;
                }
                *self = Self::of_few(scan.iter().cloned().collect());
            }
        }
        false
    }

    /// Brings what is compiled up to date.
    pub(super) fn finish(&mut self) {
        match self {
            Self::Empty | Self::One(_) | Self::Few(_) => {}
            Self::Split(split) => Arc::make_mut(split).finish(),
            Self::Scan(scan) => Arc::make_mut(scan).finish(),
        }
    }

    pub(super) fn for_each<'b>(&'b self, each: &mut impl FnMut(&'b M)) {
        match self {
            Self::Empty => {}
            Self::One(item) => each(item),
            Self::Few(items) => items.iter().for_each(each),
            Self::Split(split) => split.for_each(each),
            Self::Scan(scan) => scan.iter().for_each(each),
        }
    }

    /// Looks for the first entry that applies and comes before what was found so far.
    pub(super) fn find<'b, V: RequestView + ?Sized>(
        &'b self,
        request: &Request<'_, V>,
        best: &mut Best<'b, M>,
    ) {
        match self {
            Self::Empty => {}
            Self::One(item) => best.first_of([item], request.view),
            Self::Few(items) => best.first_of(&**items, request.view),
            Self::Split(split) => {
                if let Some(bucket) = split.choose(request) {
                    bucket.find(request, best);
                }
                if !planted(Planted::RestOfSplitLost) {
                    split.rest.find(request, best);
                }
            }
            Self::Scan(scan) => scan.find(request, best),
        }
    }

    /// Adds the entries that [`find`](Self::find) may ask, in the order of precedence of each list.
    pub(super) fn gather<'b, V: RequestView + ?Sized>(
        &'b self,
        request: &Request<'_, V>,
        gathered: &mut Gathered<'b, M>,
    ) {
        match self {
            Self::Empty => {}
            Self::One(item) => gathered.add([item]),
            Self::Few(items) => gathered.add(&**items),
            Self::Split(split) => {
                if let Some(bucket) = split.choose(request) {
                    bucket.gather(request, gathered);
                }
                split.rest.gather(request, gathered);
            }
            Self::Scan(scan) => scan.gather(request, gathered),
        }
    }

    /// What [`find`](Self::find) costs, roughly in nanoseconds; `None` where more than the path
    /// decides which entries are asked.
    pub(super) fn cost<V: RequestView + ?Sized>(&self, request: &Request<'_, V>) -> Option<usize> {
        match self {
            Self::Empty => Some(0),
            Self::One(_) => Some(25),
            Self::Few(items) => Some(25 * items.len()),
            Self::Split(split) if split.facet == Facet::LastSegment => {
                let of_value =
                    split.choose(request).map_or(Some(0), |found| found.cost(request))?;
                Some(20 + of_value + split.rest.cost(request)?)
            }
            Self::Split(_) => None,
            Self::Scan(scan) => Some(150 * scan.groups()),
        }
    }

    /// Whether the path alone decides, of a list whose cost is known.
    pub(super) fn is_pure<V: RequestView + ?Sized>(&self, request: &Request<'_, V>) -> bool {
        match self {
            Self::Empty => true,
            Self::One(item) => item.entry().path_only(),
            Self::Few(items) => items.iter().all(|item| item.entry().path_only()),
            Self::Split(split) => {
                split.rest.is_pure(request)
                    && split.choose(request).is_none_or(|found| found.is_pure(request))
            }
            Self::Scan(scan) => scan.is_pure(),
        }
    }

    /// How many entries may have to be asked.
    #[cfg(test)]
    pub(super) fn candidates<V: RequestView + ?Sized>(&self, request: &Request<'_, V>) -> usize {
        match self {
            Self::Split(split) => {
                let found = split.choose(request).map_or(0, |found| found.candidates(request));
                found + split.rest.candidates(request)
            }
            _ => self.len(),
        }
    }

    /// A list that has grown long: divided by the equality that narrows most, if one does.
    fn divided(items: Vec<M>, depth: usize) -> Self {
        let facet = if depth < MOST_DIVISIONS { best_facet(&items) } else { None };
        let Some(facet) = facet else {
            let mut scan = Scan::new();
            scan.tried_at = items.len();
            items.into_iter().for_each(|item| scan.insert(item));
            return Self::Scan(Arc::new(scan));
        };
        let mut split = Split {
            facet,
            by_value: Map::new(),
            rest: Self::Empty,
            len: 0,
            stale: Vec::new(),
            rest_stale: false,
        };
        for item in items {
            split.insert(item, depth);
        }
        Self::Split(Arc::new(split))
    }

    fn of_few(mut items: Vec<M>) -> Self {
        items.sort_by(|a, b| a.entry().precedence().cmp(&b.entry().precedence()));
        match items.len() {
            0 | 1 => items.pop().map_or(Self::Empty, Self::One),
            _ => Self::Few(Arc::new(items)),
        }
    }
}

impl<M: Matchable + Clone> Split<M> {
    fn value_of(&self, item: &M) -> Option<u64> {
        let all = facets(item.entry());
        all.into_iter().find(|(facet, _)| *facet == self.facet).map(|(_, value)| value)
    }

    fn insert(&mut self, item: M, depth: usize) -> bool {
        self.len += 1;
        let Some(value) = self.value_of(&item) else {
            let stale = self.rest.insert_at(item, depth + 1);
            return self.note(None, stale);
        };
        let bucket = self.by_value.entry(value, |_| true, Bucket::default);
        let stale = bucket.insert_at(item, depth + 1);
        self.note(Some(value), stale)
    }

    fn remove(&mut self, item: &M) -> bool {
        let before = self.rest.len();
        let Some(value) = self.value_of(item) else {
            let stale = self.rest.remove(item);
            self.len -= before - self.rest.len();
            return self.note(None, stale);
        };
        let Some(bucket) = self.by_value.get_mut(value) else { return false };
        let before = bucket.len();
        let stale = bucket.remove(item);
        self.len -= before - bucket.len();
        if bucket.is_empty() {
            self.by_value.remove(value, |_| true);
        }
        self.note(Some(value), stale)
    }

    /// Remembers what has to be finished.
    fn note(&mut self, value: Option<u64>, stale: bool) -> bool {
        match value {
            _ if !stale => {}
            None => self.rest_stale = true,
            Some(value) if self.stale.last() == Some(&value) => {}
            Some(value) => self.stale.push(value),
        }
        stale
    }

    fn finish(&mut self) {
        if std::mem::take(&mut self.rest_stale) {
            self.rest.finish();
        }
        let mut stale = std::mem::take(&mut self.stale);
        stale.sort_unstable();
        stale.dedup();
        for value in stale {
            if let Some(bucket) = self.by_value.get_mut(value) {
                bucket.finish();
            }
        }
    }

    fn for_each<'b>(&'b self, each: &mut impl FnMut(&'b M)) {
        self.rest.for_each(each);
        self.by_value.for_each(&mut |bucket: &'b Bucket<M>| bucket.for_each(&mut *each));
    }

    /// The entries that want the value this request has.
    fn choose<V: RequestView + ?Sized>(&self, request: &Request<'_, V>) -> Option<&Bucket<M>> {
        let value = match &self.facet {
            Facet::LastSegment => {
                let path = request.view.effective_path().as_bytes();
                hash::of(split(path).next_back()?)
            }
            Facet::Of(source) => {
                let value: Cow<'_, str> = source.value(request.view)?;
                hash::of(value.as_bytes())
            }
        };
        self.by_value.get(value)
    }
}

impl<'b, M: Matchable> Best<'b, M> {
    /// Whether what was found comes before `item`.
    pub(super) fn beats(&self, item: &M) -> bool {
        let Some(best) = self.0 else { return false };
        if planted(Planted::SpecificFirst) {
            return true;
        }
        let (best, item) = (best.entry(), item.entry());
        if planted(Planted::NoTieBreak) {
            return (best.conditions.weight(), -i64::from(best.sort))
                >= (item.conditions.weight(), -i64::from(item.sort));
        }
        best.precedence() <= item.precedence()
    }

    /// Takes the first of `items`, which are in the order of precedence, that applies.
    pub(super) fn first_of<V: RequestView + ?Sized>(
        &mut self,
        items: impl IntoIterator<Item = &'b M>,
        view: &V,
    ) where
        M: 'b,
    {
        for item in items {
            if self.beats(item) {
                return;
            }
            if item.entry().applies(view) {
                self.0 = Some(item);
                return;
            }
        }
    }
}

fn insert_sorted<M: Matchable>(items: &mut Vec<M>, item: M) {
    let precedence = item.entry().precedence();
    let at = items.partition_point(|known| known.entry().precedence() < precedence);
    items.insert(at, item);
}

/// The equality that leaves the fewest entries to ask in the worst case; `None` where even that
/// leaves most of them.
fn best_facet<M: Matchable>(items: &[M]) -> Option<Facet> {
    type Counts = HashMap<u64, usize, foldhash::fast::RandomState>;
    let mut order: Vec<Facet> = Vec::new();
    let mut values: HashMap<Facet, Counts> = HashMap::new();
    for item in items {
        let mut seen: SmallVec<[Facet; 4]> = SmallVec::new();
        for (facet, value) in facets(item.entry()) {
            // Of two equalities on the same value the first counts, here and in the look-up.
            if seen.contains(&facet) {
                continue;
            }
            if !values.contains_key(&facet) {
                order.push(facet.clone());
            }
            *values.entry(facet.clone()).or_default().entry(value).or_default() += 1;
            seen.push(facet);
        }
    }
    let left = |facet: &Facet| {
        let counts = &values[facet];
        let with: usize = counts.values().sum();
        items.len() - with + counts.values().max().copied().unwrap_or_default()
    };
    let best = order.into_iter().map(|facet| (left(&facet), facet)).min_by_key(|(left, _)| *left);
    best.filter(|(left, _)| left * 8 <= items.len() * 7).map(|(_, facet)| facet)
}
