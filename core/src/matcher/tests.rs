//! Choice among entries, and the proof that the early exit changes nothing.

pub(crate) mod generate;
mod index;
mod replay;

use std::sync::Arc;

use proptest::prelude::*;

use super::{Entry, EntryKind, Linear, Verdict};
use crate::condition::tests::{Request, compiler, condition};
use crate::model::{Condition, Rule, Selector};

fn selector(id: &str, sort: i32, match_mode: i32, conditions: Vec<Condition>) -> Selector {
    Selector {
        id: id.to_owned(),
        sort: Some(sort),
        match_mode,
        selector_type: 1,
        enabled: true,
        condition_list: Some(conditions),
        ..Selector::default()
    }
}

fn selectors(list: &[Selector]) -> Linear<Entry> {
    let mut compiler = compiler();
    let entries = list.iter().map(|selector| {
        let (entry, faults) = Entry::of_selector(selector, &mut compiler);
        assert_eq!(faults, [], "{selector:?}");
        entry
    });
    Linear::new(entries.collect())
}

fn on(pattern: &str) -> Condition {
    condition("uri", "match", "/", pattern)
}

fn chosen<'m>(list: &'m Linear<Entry>, request: &Request) -> Option<&'m str> {
    list.find(request).map(|entry| &*entry.id)
}

#[test]
fn more_and_conditions_win_before_sort() {
    let header = condition("header", "=", "k", "v");
    let a = selector("a", 1, 0, vec![on("/x/**")]);
    let b = selector("b", 50, 0, vec![on("/x/**"), header]);
    for list in [vec![a.clone(), b.clone()], vec![b, a]] {
        let list = selectors(&list);
        assert_eq!(chosen(&list, &Request::get("/x/1").header("k", "v")), Some("b"));
        assert_eq!(chosen(&list, &Request::get("/x/1")), Some("a"));
        assert_eq!(chosen(&list, &Request::get("/y")), None);
    }
}

#[test]
fn sort_then_id_bytes_decide_between_equals() {
    let any = || vec![on("/**")];
    let rows = [
        (vec![selector("1", 9, 0, any()), selector("2", 5, 0, any())], "2"),
        (vec![selector("b", 5, 0, any()), selector("a", 5, 0, any())], "a"),
        (vec![selector("9", 5, 0, any()), selector("10", 5, 0, any())], "10"),
        (vec![selector("a", 5, 0, any()), selector("B", 5, 0, any())], "B"),
        (vec![selector("a", 1, 1, vec![on("/**"); 3]), selector("b", 99, 0, any())], "b"),
        (vec![selector("a", 0, 0, any()), selector("b", -1, 0, any())], "b"),
    ];
    for (mut list, winner) in rows {
        assert_eq!(chosen(&selectors(&list), &Request::get("/t")), Some(winner));
        list.reverse();
        assert_eq!(chosen(&selectors(&list), &Request::get("/t")), Some(winner));
    }
    let absent = Selector { sort: None, ..selector("b", 0, 0, any()) };
    let list = selectors(&[selector("c", 1, 0, any()), absent, selector("a", 0, 0, any())]);
    let order: Vec<&str> = list.iter().map(|entry| &*entry.id).collect();
    assert_eq!(order, ["a", "b", "c"]);
}

#[test]
fn a_selector_that_cannot_match_changes_nothing() {
    let host = |name: &str| condition("domain", "=", "x", name);
    let wide = selector("wide", 9, 0, vec![host("foo.test"), on("/**")]);
    let narrow = selector("narrow", 1, 0, vec![host("foo.test"), on("/v1/**")]);
    let regex = condition("uri", "regex", "/", "/.*");
    let request = Request { domain: "foo.test".to_owned(), ..Request::get("/v1/x") };
    for sort in [0, 5, 100] {
        let other = selector("other", sort, 0, vec![host("bar.test"), regex.clone(), on("/**")]);
        let list = selectors(&[wide.clone(), narrow.clone(), other]);
        assert_eq!(chosen(&list, &request), Some("narrow"));
    }
}

#[test]
fn kinds_and_empty_lists() {
    let header = || condition("header", "=", "k", "v");
    let typed = |selector_type, match_mode, list| {
        let custom = selector("s", 1, match_mode, list);
        Selector { selector_type, ..custom }
    };
    for (selector, with, without) in [
        (typed(1, 0, vec![]), false, false),
        (typed(1, 1, vec![]), false, false),
        (typed(1, 0, vec![header()]), true, false),
        (typed(1, 1, vec![header(), on("/nowhere")]), true, false),
        (typed(0, 0, vec![]), true, true),
        (typed(0, 0, vec![header()]), true, true),
        (typed(5, 0, vec![header()]), true, true),
        (Selector { condition_list: None, ..typed(0, 0, vec![]) }, true, true),
        (Selector { condition_list: None, ..typed(1, 0, vec![]) }, false, false),
        (Selector { enabled: false, ..typed(0, 0, vec![]) }, false, false),
        (Selector { enabled: false, ..typed(1, 0, vec![header()]) }, false, false),
    ] {
        let list = selectors(std::slice::from_ref(&selector));
        let hit = chosen(&list, &Request::get("/e").header("k", "v")).is_some();
        assert_eq!(hit, with, "{selector:?}");
        assert_eq!(chosen(&list, &Request::get("/e")).is_some(), without, "{selector:?}");
    }
    for (match_mode, list, matches) in
        [(0, Some(vec![]), true), (1, Some(vec![]), false), (0, None, true), (1, None, false)]
    {
        let rule = Rule {
            id: "r".to_owned(),
            enabled: true,
            match_mode,
            condition_list: list,
            ..Rule::default()
        };
        let (entry, faults) = Entry::of_rule(&rule, &mut compiler());
        assert_eq!((entry.kind, faults), (EntryKind::Rule, vec![]));
        assert_eq!(entry.applies(&Request::get("/e")), matches, "{rule:?}");
    }
}

#[test]
fn a_full_selector_counts_its_conditions_for_precedence() {
    let full = |conditions| Selector { selector_type: 0, ..selector("full", 100, 0, conditions) };
    let custom = selector("custom", 1, 0, vec![on("/**")]);
    let list = selectors(&[full(vec![on("/no"), on("/nor")]), custom.clone()]);
    assert_eq!(chosen(&list, &Request::get("/x")), Some("full"));
    let list = selectors(&[full(vec![]), custom]);
    assert_eq!(chosen(&list, &Request::get("/x")), Some("custom"));
}

#[test]
fn the_last_rule_of_a_full_selector_is_last_by_sort_and_id() {
    let rule = |id: &str, sort: i32, enabled: bool| {
        let conditions = Some(vec![on("/nowhere"); usize::from(id == "b") * 2]);
        let rule = Rule {
            id: id.to_owned(),
            sort: Some(sort),
            enabled,
            condition_list: conditions,
            ..Rule::default()
        };
        Arc::new(Entry::of_rule(&rule, &mut compiler()).0)
    };
    let list = Linear::new(vec![rule("b", 9, false), rule("a", 9, true), rule("z", 1, true)]);
    assert_eq!(list.last_by_sort().map(|entry| &*entry.id), Some("b"));
    let empty: Linear<Entry> = Linear::default();
    assert!(empty.last_by_sort().is_none() && empty.is_empty());
}

#[test]
fn what_a_guard_could_have_applied_to() {
    let mut compiler = compiler();
    let mut could = |selector: &Selector, path: &str| {
        Linear::new(vec![Entry::of_selector(selector, &mut compiler).0]).could_apply(path)
    };
    let broken = selector("s", 1, 0, vec![on("/a/**"), condition("header", ">", "x", "1")]);
    assert!(could(&broken, "/a/1"));
    assert!(!could(&broken, "/b"));
    assert!(!could(&Selector { enabled: false, ..broken.clone() }, "/a/1"));
    assert!(could(&Selector { selector_type: 0, ..broken }, "/b"));
    assert!(!could(&selector("s", 1, 0, vec![]), "/a"));
}

#[test]
fn the_explanation_names_the_one_that_is_used_and_why_the_others_are_not() {
    let list = [
        selector("both", 9, 0, vec![on("/x/**"), condition("header", "=", "k", "v")]),
        selector("first", 1, 0, vec![on("/x/**")]),
        selector("second", 2, 0, vec![on("/**")]),
        Selector { enabled: false, ..selector("off", 0, 0, vec![on("/**")]) },
        selector("empty", 0, 0, vec![]),
        Selector { selector_type: 0, ..selector("full", 50, 0, vec![]) },
    ];
    let compiled = selectors(&list);
    let texts = |entry: &Entry| {
        let found = list.iter().find(|selector| selector.id == *entry.id);
        found.map(Selector::conditions).unwrap_or_default()
    };
    let outcomes = compiled.explain(&Request::get("/x/1"), texts);
    let told: Vec<_> =
        outcomes.iter().map(|o| (o.id.as_str(), o.verdict, o.chosen, o.conditions.len())).collect();
    assert_eq!(
        told,
        [
            ("both", Verdict::NotMet, false, 2),
            ("off", Verdict::Disabled, false, 1),
            ("first", Verdict::Met, true, 1),
            ("second", Verdict::Met, false, 1),
            ("empty", Verdict::NoConditions, false, 0),
            ("full", Verdict::Always, false, 0),
        ]
    );
    assert!(outcomes[0].conditions[0].matched && !outcomes[0].conditions[1].matched);
}

/// The reference's way: ask every entry, then choose among those that apply.
fn ask_all_then_choose<'e>(entries: &'e [Entry], request: &Request) -> Option<&'e str> {
    let mut candidates: Vec<&Entry> = entries
        .iter()
        .filter(|entry| {
            let met = entry.conditions.matches(request);
            entry.enabled
                && match entry.kind {
                    EntryKind::Full | EntryKind::Other => true,
                    EntryKind::Custom => met && !entry.conditions.is_empty(),
                    EntryKind::Rule => met,
                }
        })
        .collect();
    let weight = candidates.iter().map(|entry| entry.conditions.weight()).max()?;
    candidates.retain(|entry| entry.conditions.weight() == weight);
    let sort = candidates.iter().map(|entry| entry.sort).min()?;
    candidates.retain(|entry| entry.sort == sort);
    candidates.iter().map(|entry| &*entry.id).min_by_key(|id| id.as_bytes())
}

fn any_condition() -> impl Strategy<Value = Condition> {
    prop_oneof![
        prop::sample::select(vec!["/a/**", "/a/*", "/**", "/a/b", "/*/b", "/b/{x}"]).prop_map(on),
        prop::sample::select(vec!["/a", "/a/b", "/b"]).prop_map(|path| condition(
            "uri",
            "startsWith",
            "/",
            path
        )),
        prop::sample::select(vec!["/a/**", "/b/**"])
            .prop_map(|path| condition("uri", "exclude", "/", path)),
        prop::sample::select(vec!["1", "2"]).prop_map(|value| condition("header", "=", "k", value)),
        Just(condition("header", "isBlank", "k", "")),
        Just(condition("req_method", "=", "", "GET")),
        Just(condition("uri", ">", "/", "unusable")),
    ]
}

fn any_entries() -> impl Strategy<Value = Vec<Entry>> {
    let one = (
        prop::sample::select(vec![0, 0, 0, 1, 2]),
        prop::collection::vec(any_condition(), 0..4),
        0..3_i32,
        prop::bool::weighted(0.8),
        prop::sample::select(vec![
            EntryKind::Custom,
            EntryKind::Custom,
            EntryKind::Rule,
            EntryKind::Full,
            EntryKind::Other,
        ]),
    );
    prop::collection::vec(one, 0..12).prop_map(|list| {
        let mut compiler = compiler();
        let entry = |(number, (mode, conditions, sort, enabled, kind)): (usize, _)| {
            let conditions: Vec<Condition> = conditions;
            let conditions = compiler.compile(mode, &conditions).conditions;
            // Ids whose order by bytes is not their order by number.
            Entry { id: (7 * number % 12).to_string().into(), sort, enabled, kind, conditions }
        };
        list.into_iter().enumerate().map(entry).collect()
    })
}

fn any_request() -> impl Strategy<Value = Request> {
    let path = prop::sample::select(vec!["/", "/a", "/a/b", "/a//b", "/a/b/c", "/b/1", "/c/b"]);
    let header = prop::sample::select(vec!["", "1", "2", "3"]);
    (path, header).prop_map(|(path, header)| Request::get(path).header("k", header))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_024, ..ProptestConfig::default() })]

    #[test]
    fn the_first_match_is_the_chosen_one(
        entries in any_entries(),
        requests in prop::collection::vec(any_request(), 1..6),
    ) {
        let forward = Linear::new(entries.clone());
        let backward = Linear::new(entries.iter().rev().cloned().collect());
        for request in &requests {
            let expected = ask_all_then_choose(&entries, request);
            prop_assert_eq!(chosen(&forward, request), expected);
            prop_assert_eq!(chosen(&backward, request), expected);
            let explained = forward.explain(request, |_| &[]);
            let told = explained.iter().find(|outcome| outcome.chosen);
            prop_assert_eq!(told.map(|outcome| outcome.id.as_str()), expected);
            for entry in &entries {
                // A path that could not match never does.
                prop_assert!(entry.could_apply(&request.path) || !entry.applies(request));
            }
        }
        let mut by_list_order: Vec<&Entry> = entries.iter().collect();
        by_list_order.sort_by(|a, b| a.list_order(b));
        let last = by_list_order.last().map(|entry| &*entry.id);
        prop_assert_eq!(forward.last_by_sort().map(|entry| &*entry.id), last);
    }
}
