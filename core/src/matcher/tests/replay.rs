//! Linear, index, and index with caches answer alike, also while entries come, change and go.

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::generate::{Draft, request, vary};
use crate::condition::Compiler;
use crate::condition::tests::{Request, compiler};
use crate::matcher::planted::with_planted;
use crate::matcher::{Entry, Index, IndexOptions, Linear, MatchCacheOptions, Planted};

/// Pairs of a table and a request that a normal run compares.
const PAIRS: u64 = 20_000;

/// The shapes of index that are compared with the linear matcher.
fn shapes() -> Vec<(&'static str, IndexOptions)> {
    let small = MatchCacheOptions { enabled: true, initial_capacity: 0, maximum_size: 30 };
    let off = MatchCacheOptions::off();
    vec![
        ("index", IndexOptions { linear_up_to: 0, dear_ns: 0, cache: off }),
        ("index and cache", IndexOptions { linear_up_to: 0, dear_ns: 0, cache: small }),
        ("as shipped", IndexOptions::default()),
    ]
}

/// What a run saw.
#[derive(Debug, Default, Clone, Copy)]
struct Seen {
    pairs: u64,
    /// Pairs where some entry, and where several, applied.
    some: u64,
    several: u64,
    /// Answers that caches held at the end of a state.
    remembered: u64,
}

/// The indexes that are compared, by what they are.
type Indexes = Vec<(&'static str, Index<Arc<Entry>>)>;

/// A table with its indexes, and the states it was in before.
struct Table {
    compiler: Compiler,
    rng: StdRng,
    taste: u32,
    size: usize,
    next_id: u32,
    drafts: BTreeMap<String, Draft>,
    entries: BTreeMap<String, Arc<Entry>>,
    indexes: Indexes,
    old: Vec<(Linear<Arc<Entry>>, Indexes)>,
}

impl Table {
    fn new(seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let size = *[3, 12, 30, 60].choose(&mut rng).unwrap();
        let indexes = shapes().into_iter().map(|(name, options)| (name, Index::new(options)));
        let mut table = Self {
            compiler: compiler(),
            taste: rng.random_range(0..4),
            rng,
            size,
            next_id: 0,
            drafts: BTreeMap::new(),
            entries: BTreeMap::new(),
            indexes: indexes.collect(),
            old: Vec::new(),
        };
        for _ in 0..size {
            table.create();
        }
        table.finish();
        table
    }

    fn put(&mut self, draft: Draft) {
        let entry = draft.compile(&mut self.compiler);
        for (_, index) in &mut self.indexes {
            index.put(Arc::clone(&entry));
        }
        self.entries.insert(draft.id.clone(), entry);
        self.drafts.insert(draft.id.clone(), draft);
    }

    fn create(&mut self) {
        // Ids whose order by bytes is not the order they come in.
        self.next_id += 1;
        let id = (self.next_id * 7 % 1_000).to_string();
        let draft = Draft::random(&mut self.rng, id, self.taste);
        self.put(draft);
    }

    fn delete(&mut self, id: &str) {
        self.drafts.remove(id);
        self.entries.remove(id);
        for (_, index) in &mut self.indexes {
            index.take(id);
        }
    }

    fn some_id(&mut self) -> Option<String> {
        let ids: Vec<&String> = self.drafts.keys().collect();
        ids.choose(&mut self.rng).map(|id| (*id).clone())
    }

    /// One random change, or a few.
    fn edit(&mut self) {
        let kind = self.rng.random_range(0..20);
        let id = self.some_id();
        match (kind, id) {
            (0..5, _) | (_, None) if self.drafts.len() < 2 * self.size => self.create(),
            (5..8, Some(id)) if self.rng.random_bool(0.8) => self.delete(&id),
            (8..12, Some(id)) => {
                let draft = Draft::random(&mut self.rng, id, self.taste);
                self.put(draft);
            }
            (12..16, Some(id)) => {
                let mut draft = self.drafts[&id].clone();
                draft.enabled = !draft.enabled;
                self.put(draft);
            }
            (16..18, Some(id)) => {
                let mut draft = self.drafts[&id].clone();
                draft.sort = self.rng.random_range(0..3);
                self.put(draft);
            }
            (18, Some(_)) => self.refresh(),
            (19, Some(_)) => {
                // Nearly everything goes.
                for id in self.drafts.keys().skip(2).cloned().collect::<Vec<_>>() {
                    self.delete(&id);
                }
            }
            _ => {}
        }
        self.finish();
    }

    /// A full refresh: half of the entries are gone, others come, all are put anew.
    fn refresh(&mut self) {
        for id in self.drafts.keys().cloned().collect::<Vec<_>>() {
            if self.rng.random_bool(0.5) {
                self.delete(&id);
            }
        }
        for draft in self.drafts.values().cloned().collect::<Vec<_>>() {
            self.put(draft);
        }
        for _ in 0..self.size / 2 {
            self.create();
        }
    }

    fn finish(&mut self) {
        for (_, index) in &mut self.indexes {
            index.finish();
        }
    }

    fn linear(&self) -> Linear<Arc<Entry>> {
        Linear::new(self.entries.values().cloned().collect())
    }

    fn remember_state(&mut self, linear: &Linear<Arc<Entry>>) {
        if self.old.len() < 3 && self.rng.random_bool(0.2) {
            self.old.push((linear.clone(), self.indexes.clone()));
        }
    }
}

type Mismatch = String;

fn compare(
    linear: &Linear<Arc<Entry>>,
    indexes: &[(&'static str, Index<Arc<Entry>>)],
    request: &Request,
    seen: &mut Seen,
) -> Result<(), Mismatch> {
    let expected = linear.find(request).map(|entry| &*entry.id);
    let applying = linear.iter().filter(|entry| entry.applies(request)).take(2).count();
    seen.pairs += 1;
    seen.some += u64::from(applying > 0);
    seen.several += u64::from(applying > 1);
    for (name, index) in indexes {
        let found = index.find(request).map(|entry| &*entry.id);
        if found != expected {
            return Err(format!("{name} finds {found:?} not {expected:?} for {request:?}"));
        }
        let looked = index.look(request).map(|entry| &*entry.id);
        if looked != expected {
            return Err(format!("{name} sees {looked:?} not {expected:?} for {request:?}"));
        }
        let considered = index.considered(request, usize::MAX);
        let mut applying = considered.entries.iter().filter(|entry| entry.applies(request));
        let first = applying.clone().next().map(|entry| &*entry.id);
        let all = linear.iter().filter(|entry| entry.applies(request));
        let complete = all.map(|entry| &entry.id).eq(applying.by_ref().map(|entry| &entry.id));
        if first != expected || !complete || considered.count != considered.entries.len() {
            return Err(format!("{name} considers others than apply to {request:?}"));
        }
        let last = |entry: Option<&Arc<Entry>>| entry.map(|entry| Arc::clone(&entry.id));
        if last(index.last_by_sort()) != last(linear.last_by_sort()) || index.len() != linear.len()
        {
            return Err(format!("{name} has another last entry, or another number"));
        }
    }
    Ok(())
}

/// One table, edited and asked.
fn replay(seed: u64, seen: &mut Seen) -> Result<(), Mismatch> {
    let mut table = Table::new(seed);
    let paths: Vec<String> = (0..12).map(|_| request(&mut table.rng).path).collect();
    for _ in 0..12 {
        let linear = table.linear();
        for _ in 0..16 {
            // The same paths again and again, so that caches have something to remember.
            let request = if table.rng.random_bool(0.7) {
                let path = paths.choose(&mut table.rng).unwrap().clone();
                vary(&mut table.rng, &path)
            } else {
                request(&mut table.rng)
            };
            compare(&linear, &table.indexes, &request, seen)?;
        }
        seen.remembered += table.indexes.iter().map(|(_, index)| index.remembered()).sum::<u64>();
        table.remember_state(&linear);
        table.edit();
    }
    // States that older snapshots still hold know nothing of what came later.
    for _ in 0..8 {
        let request = request(&mut table.rng);
        for (linear, indexes) in &table.old {
            compare(linear, indexes, &request, seen)?;
        }
    }
    for id in table.drafts.keys().cloned().collect::<Vec<_>>() {
        table.delete(&id);
    }
    for (name, index) in &mut table.indexes {
        index.finish();
        if !index.is_bare() {
            return Err(format!("{name} keeps something of what was taken out"));
        }
    }
    Ok(())
}

/// Tables from seed 1 on until `pairs` were compared; the seed and what differed if something did.
fn run(pairs: u64) -> Result<Seen, (u64, Mismatch)> {
    let mut seen = Seen::default();
    let mut seed = 0;
    while seen.pairs < pairs {
        seed += 1;
        replay(seed, &mut seen).map_err(|mismatch| (seed, mismatch))?;
    }
    Ok(seen)
}

#[test]
fn linear_index_and_caches_answer_alike() {
    let asked = std::env::var("LONGMEN_MATCHER_PAIRS").ok();
    let pairs = asked.map_or(PAIRS, |pairs| pairs.parse().unwrap());
    let seen = run(pairs).unwrap_or_else(|(seed, mismatch)| panic!("seed {seed}: {mismatch}"));
    eprintln!("{seen:?}");
    assert!(seen.some * 2 >= seen.pairs, "too few requests match anything: {seen:?}");
    assert!(seen.several * 3 >= seen.pairs, "too few requests match several: {seen:?}");
    assert!(seen.remembered > 0, "no cache held anything: {seen:?}");
}

/// See the page on tests for what each of them stands for.
const FAULTS: [Planted; 14] = [
    Planted::NoTieBreak,
    Planted::RestNeverEmpty,
    Planted::StarNeverEmpty,
    Planted::EmptySegmentsCount,
    Planted::EscapesKept,
    Planted::OptionalCharKept,
    Planted::OrAsAnd,
    Planted::FirstPatternOnly,
    Planted::DisabledKept,
    Planted::SpecificFirst,
    Planted::RestOfSplitLost,
    Planted::CacheIgnoresOtherInputs,
    Planted::CacheOutlivesEdit,
    Planted::OldFilterKept,
];

#[test]
fn planted_faults_are_found() {
    let missed: Vec<_> = FAULTS
        .into_iter()
        .filter(|fault| {
            let result = with_planted(*fault, || run(PAIRS));
            if let Err((seed, mismatch)) = &result {
                eprintln!("{fault:?}: seed {seed}: {mismatch}");
            }
            result.is_ok()
        })
        .collect();
    assert!(missed.is_empty(), "not found: {missed:?}");
}
