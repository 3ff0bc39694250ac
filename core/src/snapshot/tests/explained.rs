//! What is explained is what would be chosen, whatever is configured, and asking leaves no trace.

use std::collections::BTreeMap;

use rand::seq::IteratorRandom;
use rand::{SeedableRng, rngs::StdRng};
use tokio::runtime::Handle;

use super::{Config, choice, frame, plugins, publisher};
use crate::condition::tests::{Request, condition};
use crate::explain::{self, Expect, Options, State, Step, explain};
use crate::matcher::tests::generate::{request, vary};
use crate::matcher::{IndexOptions, MatchCacheOptions};
use crate::model::{Rule, Selector};
use crate::snapshot::{Position, Publisher};
use crate::sync::{Event, Payload};

/// The time of the requests.
fn clock() -> i64 {
    Request::get("/").now.as_millisecond()
}

/// The request as it would come over a connection; `None` for a path that cannot.
fn arriving(request: &Request) -> Option<explain::Request> {
    let mut target = request.path.clone();
    if !request.query.is_empty() {
        target.push('?');
        target.push_str(&request.query);
    }
    let uri = target.parse().ok().filter(|_| target.starts_with('/'))?;
    let mut headers = request.headers.clone();
    headers.insert("host", request.domain.parse().unwrap());
    Some(explain::Request {
        method: request.method.parse().unwrap(),
        uri,
        headers,
        body: bytes::Bytes::new(),
        peer: request.ip.parse().unwrap(),
        expect: None,
        remarks: Vec::new(),
    })
}

fn told(step: &Step) -> Option<String> {
    let id = |named: &Option<explain::Named>| {
        named.as_ref().map(|named| named.id.clone()).unwrap_or_default()
    };
    let chosen: Vec<&str> =
        step.candidates.iter().filter(|one| one.chosen).map(|one| one.id.as_str()).collect();
    let mut expected: Vec<String> = Vec::new();
    expected.extend(step.selector.as_ref().map(|selector| selector.id.clone()));
    let compared = step.rules.is_some_and(|rules| rules.considered > 0);
    expected.extend(step.rule.as_ref().filter(|_| compared).map(|rule| rule.id.clone()));
    assert_eq!(chosen, expected, "{step:#?}");
    match step.state {
        State::NoSelector => Some("none".to_owned()),
        State::NoRule => Some(format!("{} without rule", id(&step.selector))),
        State::Matched => Some(format!("{} {}", id(&step.selector), id(&step.rule))),
        State::Unavailable => Some("blocked".to_owned()),
        _ => None,
    }
}

/// Compares what is explained with what is chosen; says how many plugins were.
fn compare(
    publisher: &Publisher,
    options: &Options,
    request: &Request,
    expect: Option<Expect>,
) -> usize {
    let Some(mut arriving) = arriving(request) else { return 0 };
    let snapshot = publisher.snapshot();
    arriving.expect.clone_from(&expect);
    let explanation = explain(publisher, options, &arriving).unwrap();
    let mut compared = 0;
    let mut way = None;
    for part in &snapshot.plugins {
        let steps = &explanation.way.steps;
        let step = steps.iter().find(|step| *step.plugin == *part.name && !step.canonical);
        let step = step.unwrap_or_else(|| panic!("{} is left out", part.name));
        let Some(told) = told(step) else { continue };
        let chosen = choice(part, request);
        assert_eq!(told, chosen, "{request:?} {step:#?}");
        compared += 1;
        if &*part.name == "way" {
            way = Some(chosen);
        }
    }
    if let Some(Expect::Rule { id, selector: Some(selector) }) = expect {
        let expected = explanation.expected.unwrap();
        if expected.plugin == "way" {
            let taken = way.is_some_and(|way| way == format!("{selector} {id}"));
            assert_eq!(expected.taken, taken, "{request:?} {expected:#?}");
            assert!(!expected.why.is_empty());
            let instead = expected.instead.map(|instead| instead.rule.map(|rule| rule.id));
            assert!(!taken || instead.is_none());
            assert_ne!(instead, Some(Some(id)), "{request:?}");
        }
    }
    compared
}

#[tokio::test]
async fn what_is_explained_is_what_is_chosen() {
    let cached = MatchCacheOptions::default();
    let shapes = [
        IndexOptions { linear_up_to: usize::MAX, dear_ns: 0, cache: MatchCacheOptions::off() },
        IndexOptions { linear_up_to: 0, dear_ns: 0, cache: MatchCacheOptions::off() },
        IndexOptions { linear_up_to: 4, dear_ns: 0, cache: cached },
        IndexOptions::default(),
    ];
    let mut options = Options::new(clock, Handle::current());
    options.before.clear();
    let mut compared = 0;
    for seed in 1..=4 {
        let mut config = Config {
            rng: StdRng::seed_from_u64(seed),
            taste: u32::try_from(seed).unwrap(),
            selectors: BTreeMap::new(),
            rules: BTreeMap::new(),
        };
        let mut publishers: Vec<_> = shapes.into_iter().map(|shape| publisher(shape).0).collect();
        for publisher in &mut publishers {
            publisher.replace(&config.all(), Position::default(), |_, _| {});
        }
        for _ in 0..60 {
            let frames = config.edit();
            for publisher in &mut publishers {
                publisher.apply(&frames, Position::default());
            }
            let path = request(&mut config.rng).path;
            for _ in 0..6 {
                let request = vary(&mut config.rng, &path);
                let known = config.rules.values();
                let known = known.filter(|rule| config.selectors.contains_key(&rule.selector_id));
                let expect = known.choose(&mut config.rng).map(|rule| Expect::Rule {
                    id: rule.id.clone(),
                    selector: Some(rule.selector_id.clone()),
                });
                for publisher in &publishers {
                    compared += compare(publisher, &options, &request, expect.clone());
                }
            }
        }
    }
    eprintln!("{compared} plugins compared");
    assert!(compared > 4_000, "{compared}");
}

#[tokio::test]
async fn asking_is_not_remembered() {
    let (mut publisher, _) = publisher(IndexOptions { dear_ns: 0, ..IndexOptions::default() });
    let mut config = Config {
        rng: StdRng::seed_from_u64(1),
        taste: 0,
        selectors: BTreeMap::new(),
        rules: BTreeMap::new(),
    };
    let on = |path: &str| Some(vec![condition("uri", "match", "/", path)]);
    for n in 0..20 {
        let mut selector = config.selector(format!("s{n}1"));
        (selector.selector_type, selector.enabled, selector.continued) = (1, true, true);
        (selector.match_mode, selector.handle) = (0, None);
        selector.condition_list = on(&format!("/{n}/**"));
        for m in 0..20 {
            let mut rule = config.rule(format!("r{n}-{m}"));
            (rule.selector_id, rule.handle) = (selector.id.clone(), None);
            (rule.enabled, rule.match_mode) = (true, 0);
            rule.condition_list = on(&format!("/{n}/{m}"));
            config.rules.insert(rule.id.clone(), rule);
        }
        config.selectors.insert(selector.id.clone(), selector);
    }
    publisher.replace(&config.all(), Position::default(), |_, _| {});
    let snapshot = publisher.snapshot();
    let part = snapshot.plugins.iter().find(|part| &*part.name == "way").unwrap();
    let request = Request::get("/7/7");
    let selector = part.selectors.find(&request).and_then(|key| part.part_of(key)).unwrap();
    let remembered = || (part.selectors.remembered(), selector.rules.remembered());
    assert_eq!(remembered(), (0, 0), "seen once");
    let options = Options::new(clock, Handle::current());
    for _ in 0..5 {
        let asked = arriving(&request).unwrap();
        let told = explain(&publisher, &options, &asked).unwrap();
        let rules: Vec<_> = told.way.steps.iter().filter_map(|step| step.rule.as_ref()).collect();
        assert_eq!(rules.len(), 1);
        assert_eq!(rules[0].id, "r7-7");
    }
    assert_eq!(remembered(), (0, 0), "asking is remembered");
    for _ in 0..2 {
        assert_eq!(choice(part, &request), "s71 r7-7");
    }
    assert_eq!(remembered(), (1, 1), "what is asked for in earnest is");
}

#[tokio::test]
async fn guards_that_cannot_run_as_configured_say_what_is_wrong() {
    let (mut publisher, _) = publisher(IndexOptions::default());
    let options = Options::new(clock, Handle::current());
    let mut selector = Selector {
        id: "s".into(),
        plugin_name: "wall".into(),
        selector_type: 1,
        enabled: true,
        condition_list: Some(vec![condition("uri", "match", "/", "/in/**")]),
        ..Selector::default()
    };
    let mut rule = Rule {
        id: "r".into(),
        selector_id: "s".into(),
        plugin_name: "wall".into(),
        name: Some("the rule".into()),
        enabled: true,
        handle: Some("bad".into()),
        condition_list: selector.condition_list.clone(),
        ..Rule::default()
    };
    selector.continued = true;
    let put = |payload| frame(Event::Update, payload);
    let frames = [
        plugins(true),
        put(Payload::Selector(vec![selector])),
        put(Payload::Rule(vec![rule.clone()])),
    ];
    publisher.apply(&frames, Position::default());
    let ask = |publisher: &Publisher, path: &str| {
        let mut asked = arriving(&Request::get(path)).unwrap();
        asked.expect = Some(Expect::Rule { id: "r".into(), selector: None });
        explain(publisher, &options, &asked).unwrap()
    };
    let told = ask(&publisher, "/in/x");
    assert_eq!(told.way.outcome.reason, Some("plugin_unavailable"));
    let step = &told.way.steps[0];
    assert_eq!((step.state, step.ends), (State::Unavailable, true));
    let why = &step.candidates[1].why;
    assert!(
        why.starts_with("cannot be used as configured: handle ") && why.contains("bad"),
        "{why}"
    );
    assert!(why.ends_with("; the request is refused for it"), "{why}");
    let expected = told.expected.unwrap();
    assert!(!expected.taken && expected.why.contains("the request is refused"), "{expected:?}");
    let told = ask(&publisher, "/out");
    assert_eq!(told.way.steps[0].state, State::NoSelector);

    // Once it was good, an earlier version goes on.
    rule.handle = None;
    publisher.apply(&[put(Payload::Rule(vec![rule.clone()]))], Position::default());
    rule.condition_list = Some(vec![condition("uri", "regex", "/", "[")]);
    publisher.apply(&[put(Payload::Rule(vec![rule]))], Position::default());
    let told = ask(&publisher, "/in/x");
    let step = &told.way.steps[0];
    assert_eq!(step.state, State::Matched);
    let entry = &step.candidates[1];
    assert!(entry.why.contains("; an earlier version of it is in force: "), "{}", entry.why);
    assert_eq!(entry.conditions[0].param, "a condition of before");
    assert_eq!((entry.conditions[0].ok, entry.conditions[0].wanted.as_str()), (true, ""));
    assert!(told.expected.unwrap().taken);
}

#[tokio::test]
async fn of_many_entries_those_that_count_are_told() {
    let many = 30_000;
    let (mut publisher, _) = publisher(IndexOptions::default());
    let mut config = Config {
        rng: StdRng::seed_from_u64(1),
        taste: 0,
        selectors: BTreeMap::new(),
        rules: BTreeMap::new(),
    };
    let mut selector = config.selector("s1".to_owned());
    (selector.selector_type, selector.enabled, selector.continued) = (1, true, true);
    (selector.match_mode, selector.handle) = (0, None);
    selector.condition_list = Some(vec![condition("uri", "match", "/", "/**")]);
    config.selectors.insert("s1".to_owned(), selector);
    for n in 0..many {
        let mut rule = config.rule(format!("r{n}"));
        (rule.selector_id, rule.handle) = ("s1".to_owned(), None);
        (rule.enabled, rule.match_mode, rule.sort) = (true, 0, Some(5));
        let path = if n % 100 == 0 { "/here/**".to_owned() } else { format!("/there/{n}") };
        let mut list = vec![condition("uri", "match", "/", &path)];
        if n % 100 == 0 {
            list.push(condition("header", "contains", "k", &format!("v{n}x")));
        }
        rule.condition_list = Some(list);
        config.rules.insert(rule.id.clone(), rule);
    }
    publisher.replace(&config.all(), Position::default(), |_, _| {});
    let options = Options::new(clock, Handle::current());
    let mut asked = arriving(&Request::get("/here/x").header("k", "v29900x")).unwrap();
    let expect = |id: &str| Some(Expect::Rule { id: id.to_owned(), selector: None });
    asked.expect = expect("r29801");
    let explanation = explain(&publisher, &options, &asked).unwrap();
    let step = explanation.way.steps.iter().find(|step| step.plugin == "way").unwrap();
    // Three hundred are considered; the one that applies is told though a hundred come before it.
    let rules = step.rules.unwrap();
    assert_eq!((rules.total, rules.considered), (many, 300));
    let listed = step.candidates.iter().filter(|one| one.kind == explain::Kind::Rule).count();
    assert_eq!(listed + rules.left_out, 300);
    assert!(listed <= explain::MAX_CANDIDATES + 1);
    assert_eq!(step.rule.as_ref().map(|rule| rule.id.as_str()), Some("r29900"));
    let chosen = step.candidates.iter().find(|one| one.kind == explain::Kind::Rule && one.chosen);
    assert_eq!(chosen.map(|one| one.id.as_str()), Some("r29900"));
    // The index has ruled the expected one out; it is explained all the same.
    let expected = explanation.expected.unwrap();
    assert!(!expected.taken);
    assert_eq!(
        expected.why,
        "condition 1 does not hold: uri match \"/there/29801\", got \"/here/x\""
    );
    assert_eq!(expected.instead.unwrap().rule.unwrap().id, "r29900");
    assert!(step.candidates.iter().all(|one| one.id != "r29801"));
    assert_eq!(explanation.version, 0);
    asked.expect = expect("nobody");
    let fault = explain(&publisher, &options, &asked).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "expect.ruleId: nobody is not the id of a rule of this configuration"
    );
}
