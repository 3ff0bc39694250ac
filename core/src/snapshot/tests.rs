//! Snapshots with indexes choose what snapshots of plain lists choose, whatever happened before.

mod explained;
mod field_cases;
mod golden;

use std::collections::BTreeMap;
use std::sync::Arc;

use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{
    MatchingOptions, PluginPart, Position, Publisher, PublisherOptions, Selected, Snapshot,
    SnapshotStore,
};
use crate::chain::{
    CatalogueEntry, Flow, Handle, HandleFault, HitRef, Hook, HookResult, Notes, Plugin, Registry,
    RequestContext, RuleParts,
};
use crate::condition::tests::Request;
use crate::matcher::tests::generate::{Draft, pick, request, vary};
use crate::matcher::{EntryKind, IndexOptions, MatchCacheOptions};
use crate::model::{self, PluginClass, Rule, Selector};
use crate::sync::{Event, Frame, Payload};

const PLUGINS: [&str; 2] = ["wall", "way"];

static ENTRIES: [CatalogueEntry; 2] =
    [entry("wall", 10, PluginClass::Guard), entry("way", 200, PluginClass::Proxy)];

/// Those that the recorded cases name.
static RECORDED: [CatalogueEntry; 6] = [
    entry("waf", 50, PluginClass::Guard),
    entry("sign", 20, PluginClass::Guard),
    entry("rewrite", 90, PluginClass::Transform),
    entry("request", 120, PluginClass::Transform),
    entry("redirect", 110, PluginClass::Transform),
    entry("divide", 200, PluginClass::Proxy),
];

/// The plugin of that name, which does nothing.
fn idle(name: &str) -> Idle {
    Idle(RECORDED.iter().find(|entry| entry.name == name).unwrap_or_else(|| panic!("{name}")))
}

const fn entry(name: &'static str, order: i32, class: PluginClass) -> CatalogueEntry {
    CatalogueEntry {
        name,
        order,
        response_order: order,
        role: "Test",
        class,
        label: name,
        fields: &[],
    }
}

/// A plugin that does nothing; the handle `bad` does not compile.
#[derive(Debug)]
struct Idle(&'static CatalogueEntry);

impl Plugin for Idle {
    fn entry(&self) -> &'static CatalogueEntry {
        self.0
    }

    fn compile_selector(&self, handle: &str) -> Result<Handle, Vec<HandleFault>> {
        self.compile_rule(handle).map(|parts| parts.handle)
    }

    fn compile_rule(&self, handle: &str) -> Result<RuleParts, Vec<HandleFault>> {
        if handle == "bad" {
            let value = handle.to_owned();
            let expected = "anything else".to_owned();
            return Err(vec![HandleFault { field: String::new(), value, expected }]);
        }
        Ok(RuleParts::default())
    }

    fn request_head<'a>(
        &'a self,
        _hit: HitRef<'a>,
        _cx: &'a mut RequestContext,
    ) -> Hook<'a, HookResult> {
        Hook::Ready(Ok(Flow::Continue))
    }

    fn explain(&self, _: HitRef<'_>, _: &mut RequestContext, _: &mut Notes) -> HookResult {
        Ok(Flow::Continue)
    }
}

fn publisher(options: IndexOptions) -> (Publisher, Arc<SnapshotStore>) {
    let mut registry = Registry::default();
    ENTRIES.iter().for_each(|entry| registry.add(Idle(entry)));
    let matching = MatchingOptions { selectors: options, rules: options };
    let options = PublisherOptions { matching, ..PublisherOptions::default() };
    let store = Arc::new(SnapshotStore::new());
    (Publisher::new(Arc::clone(&store), registry, options), store)
}

fn frame(event: Event, payload: Payload) -> Frame {
    Frame { event, payload, mark: None }
}

fn plugins(enabled: bool) -> Frame {
    let plugin = |name: &str| model::Plugin { name: name.into(), enabled, ..Default::default() };
    frame(Event::Update, Payload::Plugin(PLUGINS.map(plugin).into()))
}

/// What is configured, and where objects come from.
struct Config {
    rng: StdRng,
    taste: u32,
    selectors: BTreeMap<String, Selector>,
    rules: BTreeMap<String, Rule>,
}

impl Config {
    fn selector(&mut self, id: String) -> Selector {
        let draft = Draft::random(&mut self.rng, id, self.taste);
        let selector_type = match draft.kind {
            EntryKind::Full => 0,
            EntryKind::Other => 5,
            EntryKind::Custom | EntryKind::Rule => 1,
        };
        Selector {
            plugin_name: PLUGINS[usize::from(draft.id.ends_with('1'))].into(),
            selector_type,
            match_mode: draft.mode,
            sort: Some(draft.sort),
            enabled: draft.enabled,
            continued: self.rng.random_bool(0.9),
            handle: Some(pick(&mut self.rng, &["", "", "", "", "", "bad"]).into()),
            condition_list: Some(draft.conditions),
            id: draft.id,
            ..Selector::default()
        }
    }

    fn rule(&mut self, id: String) -> Rule {
        let draft = Draft::random(&mut self.rng, id, self.taste);
        // Few selectors have many rules.
        let owner = self.rng.random_range(0..4);
        Rule {
            selector_id: format!("s{owner}"),
            match_mode: draft.mode,
            sort: Some(draft.sort),
            enabled: draft.enabled,
            handle: Some(
                pick(
                    &mut self.rng,
                    &["", "", "", "", "", "", "", "", "", "", "", "", "", "", "bad"],
                )
                .into(),
            ),
            condition_list: Some(draft.conditions),
            id: draft.id,
            ..Rule::default()
        }
    }

    /// One random change.
    fn edit(&mut self) -> Vec<Frame> {
        match self.rng.random_range(0..10) {
            0..3 => {
                let number = self.rng.random_range(0..14);
                let selector = self.selector(format!("s{number}"));
                self.selectors.insert(selector.id.clone(), selector.clone());
                vec![frame(Event::Update, Payload::Selector(vec![selector]))]
            }
            3 => {
                let all: Vec<Selector> = self.selectors.values().cloned().collect();
                let Some(gone) = all.choose(&mut self.rng) else { return Vec::new() };
                self.selectors.remove(&gone.id);
                vec![frame(Event::Delete, Payload::Selector(vec![gone.clone()]))]
            }
            4..8 => {
                let number = self.rng.random_range(0..60);
                let id = format!("r{number}");
                let rule = self.rule(id.clone());
                let moved = self.rules.insert(id, rule.clone());
                // A rule that changes its selector is taken from the old one first.
                let moved = moved.filter(|old| old.selector_id != rule.selector_id);
                let gone = moved.map(|old| frame(Event::Delete, Payload::Rule(vec![old])));
                gone.into_iter().chain([frame(Event::Create, Payload::Rule(vec![rule]))]).collect()
            }
            _ => {
                let all: Vec<Rule> = self.rules.values().cloned().collect();
                let count = all.len() / 4;
                let gone: Vec<Rule> = all.choose_multiple(&mut self.rng, count).cloned().collect();
                gone.iter().for_each(|rule| drop(self.rules.remove(&rule.id)));
                vec![frame(Event::Delete, Payload::Rule(gone))]
            }
        }
    }

    fn all(&self) -> Vec<Frame> {
        vec![
            plugins(true),
            frame(Event::Refresh, Payload::Selector(self.selectors.values().cloned().collect())),
            frame(Event::Refresh, Payload::Rule(self.rules.values().cloned().collect())),
        ]
    }
}

fn choice(part: &PluginPart, request: &Request) -> String {
    match part.select(request) {
        Selected::NoSelector => "none".to_owned(),
        Selected::NoRule(selector) => format!("{} without rule", selector.head.id),
        Selected::Rule(selector, rule) => format!("{} {}", selector.head.id, rule.id),
        Selected::Blocked => "blocked".to_owned(),
    }
}

fn choices(snapshot: &Snapshot, request: &Request) -> Vec<(String, String)> {
    let of = |part: &Arc<PluginPart>| (part.name.to_string(), choice(part, request));
    snapshot.plugins.iter().map(of).collect()
}

#[test]
fn indexed_snapshots_choose_what_plain_ones_choose() {
    let off = MatchCacheOptions::off();
    let (mut plain, plain_store) =
        publisher(IndexOptions { linear_up_to: usize::MAX, dear_ns: 0, cache: off });
    let cached = MatchCacheOptions::default();
    let shapes = [
        IndexOptions { linear_up_to: 0, dear_ns: 0, cache: off },
        IndexOptions { linear_up_to: 4, dear_ns: 0, cache: cached },
        IndexOptions::default(),
    ];
    let (mut hits, mut pairs, mut blocked) = (0, 0, 0);
    for seed in 1..=3 {
        let rng = StdRng::seed_from_u64(seed);
        let mut config = Config {
            rng,
            taste: u32::try_from(seed).unwrap(),
            selectors: BTreeMap::new(),
            rules: BTreeMap::new(),
        };
        let mut indexed: Vec<_> = shapes.into_iter().map(publisher).collect();
        let mut old: Vec<Vec<Arc<Snapshot>>> = Vec::new();
        plain.replace(&config.all(), Position::default(), |_, _| {});
        indexed.iter_mut().for_each(|(publisher, _)| {
            publisher.replace(&config.all(), Position::default(), |_, _| {});
        });
        for step in 0..100 {
            let frames = match config.rng.random_range(0..30) {
                0 => vec![plugins(false)],
                1..4 => vec![plugins(true)],
                _ => config.edit(),
            };
            let refresh = config.rng.random_bool(0.05);
            let publishers = indexed.iter_mut().map(|(publisher, _)| publisher);
            for publisher in publishers.chain([&mut plain]) {
                publisher.apply(&frames, Position::default());
                if refresh {
                    publisher.replace(&config.all(), Position::default(), |_, _| {});
                }
            }
            let mut state = vec![plain_store.load_full()];
            state.extend(indexed.iter().map(|(_, store)| store.load_full()));
            if step % 25 == 20 {
                old.push(state.clone());
            }
            let path = request(&mut config.rng).path;
            for _ in 0..8 {
                let request = vary(&mut config.rng, &path);
                for state in old.iter().chain([&state]) {
                    let expected = choices(&state[0], &request);
                    pairs += 1;
                    let any = |wanted: &str| expected.iter().any(|(_, told)| told.contains(wanted));
                    hits += u32::from(any(" "));
                    blocked += u32::from(any("blocked"));
                    for snapshot in &state[1..] {
                        let found = choices(snapshot, &request);
                        assert_eq!(found, expected, "seed {seed} step {step} {request:?}");
                    }
                }
            }
        }
    }
    eprintln!("{pairs} pairs, {hits} hits, {blocked} blocked");
    assert!(hits * 5 > pairs && blocked * 50 > pairs, "{hits} and {blocked} of {pairs}");
}

#[test]
fn an_edited_rule_leaves_the_index_of_selectors_and_other_rules_alone() {
    let (mut publisher, store) = publisher(IndexOptions { dear_ns: 0, ..IndexOptions::default() });
    let mut rng = StdRng::seed_from_u64(1);
    let mut config =
        Config { taste: 0, selectors: BTreeMap::new(), rules: BTreeMap::new(), rng: rng.clone() };
    let pattern = |n: u32| {
        let list =
            vec![crate::condition::tests::condition("uri", "match", "/", &format!("/{n}/*"))];
        Some(list)
    };
    for n in 0..20 {
        let mut selector = config.selector(format!("s{n}1"));
        (selector.selector_type, selector.enabled, selector.match_mode) = (1, true, 0);
        (selector.condition_list, selector.handle) = (pattern(n), None);
        config.selectors.insert(selector.id.clone(), selector);
        for m in 0..20 {
            let mut rule = config.rule(format!("r{n}-{m}"));
            (rule.selector_id, rule.handle) = (format!("s{n}1"), None);
            config.rules.insert(rule.id.clone(), rule);
        }
    }
    publisher.replace(&config.all(), Position::default(), |_, _| {});
    for n in (0..20).chain(0..20) {
        let _ = choices(&store.load(), &vary(&mut rng, &format!("/{n}/x")));
    }
    let remembered = || {
        let snapshot = store.load();
        snapshot.plugins.iter().map(|part| part.selectors.remembered()).sum::<u64>()
    };
    assert_eq!(remembered(), 20);
    let mut rule = config.rules["r3-3"].clone();
    rule.sort = Some(77);
    publisher.apply(&[frame(Event::Update, Payload::Rule(vec![rule]))], Position::default());
    assert_eq!(remembered(), 20, "the cache of the selectors lives on");
    let mut selector = config.selectors["s31"].clone();
    selector.sort = Some(77);
    publisher
        .apply(&[frame(Event::Update, Payload::Selector(vec![selector]))], Position::default());
    assert_eq!(remembered(), 0, "and goes with its index");
}
