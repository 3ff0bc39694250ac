//! Cases in which gateways chose wrongly in practice, by list, by index, and by index with caches.

use std::sync::Arc;

use super::{frame, plugins, publisher};
use crate::condition::tests::{Request, condition};
use crate::matcher::{IndexOptions, MatchCacheOptions};
use crate::model::{Condition, Rule, Selector};
use crate::snapshot::{Position, Publisher, SnapshotStore};
use crate::sync::{Event, Payload};

struct Gateway {
    name: &'static str,
    publisher: Publisher,
    store: Arc<SnapshotStore>,
}

/// Runs a case on each way of finding things.
fn each(case: impl Fn(&mut Gateway)) {
    let (off, on) = (MatchCacheOptions::off(), MatchCacheOptions::default());
    for (name, linear_up_to, cache) in
        [("list", usize::MAX, off), ("index", 0, off), ("index and caches", 0, on)]
    {
        let (publisher, store) = publisher(IndexOptions { linear_up_to, dear_ns: 0, cache });
        let mut gateway = Gateway { name, publisher, store };
        gateway.publisher.apply(&[plugins(true)], Position::default());
        case(&mut gateway);
    }
}

impl Gateway {
    fn selectors(&mut self, event: Event, list: &[Selector]) {
        let frames = [frame(event, Payload::Selector(list.to_vec()))];
        self.publisher.apply(&frames, Position::default());
    }

    fn rules(&mut self, list: &[Rule]) {
        let frames = [frame(Event::Update, Payload::Rule(list.to_vec()))];
        self.publisher.apply(&frames, Position::default());
    }

    /// Asks three times, so that caches have something to remember.
    #[track_caller]
    fn expect(&self, plugin: &str, request: &Request, expected: &str) {
        for _ in 0..3 {
            let snapshot = self.store.load();
            let part = snapshot.plugins.iter().find(|part| &*part.name == plugin).unwrap();
            let found = super::choice(part, request);
            assert_eq!(found, expected, "{}: {request:?}", self.name);
        }
    }
}

fn selector(id: &str, plugin: &str, sort: i32, conditions: Vec<Condition>) -> Selector {
    Selector {
        id: id.into(),
        plugin_name: plugin.into(),
        selector_type: 1,
        enabled: true,
        continued: true,
        sort: Some(sort),
        condition_list: Some(conditions),
        ..Selector::default()
    }
}

fn rule(id: &str, selector: &str, conditions: Vec<Condition>) -> Rule {
    Rule {
        id: id.into(),
        selector_id: selector.into(),
        enabled: true,
        condition_list: Some(conditions),
        ..Rule::default()
    }
}

fn on(pattern: &str) -> Condition {
    condition("uri", "match", "/", pattern)
}

fn from(ip: &str) -> Request {
    Request { ip: ip.into(), ..Request::get("/app/x") }
}

#[test]
fn c01_an_answer_that_nothing_matched_is_not_kept_by_path_alone() {
    each(|gateway| {
        gateway.selectors(Event::Create, &[selector("s", "wall", 1, vec![on("/app/**")])]);
        let by_ip = condition("ip", "startsWith", "", "192.0.2.");
        gateway.rules(&[rule("r", "s", vec![by_ip])]);
        gateway.expect("wall", &from("192.0.2.10"), "s r");
        gateway.expect("wall", &from("198.51.100.7"), "s without rule");
        gateway.expect("wall", &from("192.0.2.10"), "s r");
        gateway.rules(&[rule("r", "s", vec![condition("query", "=", "mode", "full")])]);
        for (mode, expected) in [("full", "s r"), ("brief", "s without rule"), ("full", "s r")] {
            gateway.expect("wall", &Request::get(&format!("/app/x?mode={mode}")), expected);
        }
    });
}

#[test]
fn c02_an_old_path_is_not_active_after_an_edit() {
    each(|gateway| {
        gateway.selectors(Event::Create, &[selector("s", "wall", 1, vec![on("/**")])]);
        gateway.rules(&[rule("r", "s", vec![on("/api/post/hi")])]);
        gateway.expect("wall", &Request::get("/api/post/hi"), "s r");
        gateway.expect("wall", &Request::get("/api/post/other"), "s without rule");
        gateway.rules(&[rule("r", "s", vec![on("/api/post/other")])]);
        gateway.expect("wall", &Request::get("/api/post/hi"), "s without rule");
        gateway.expect("wall", &Request::get("/api/post/other"), "s r");
    });
}

#[test]
fn c03_more_conditions_then_sort_then_id_decide_every_time() {
    each(|gateway| {
        let header = || condition("header", "=", "k", "v");
        let a = selector("a", "way", 1, vec![on("/x/**")]);
        let b = selector("b", "way", 50, vec![on("/x/**"), header()]);
        let (with, without) = (Request::get("/x/1").header("k", "v"), Request::get("/x/1"));
        gateway.rules(&[rule("ra", "a", vec![on("/**")]), rule("rb", "b", vec![on("/**")])]);
        for order in [[a.clone(), b.clone()], [b.clone(), a.clone()]] {
            gateway.selectors(Event::Delete, &order);
            order.into_iter().for_each(|one| gateway.selectors(Event::Create, &[one]));
            gateway.expect("way", &with, "b rb");
            gateway.expect("way", &without, "a ra");
        }
        // Equal in all but the id.
        let twin = Selector { sort: Some(1), condition_list: a.condition_list.clone(), ..b };
        gateway.selectors(Event::Update, &[twin]);
        gateway.expect("way", &with, "a ra");
        gateway.selectors(Event::Update, &[Selector { sort: Some(2), ..a }]);
        gateway.expect("way", &with, "b rb");
    });
}

#[test]
fn c04_a_selector_for_another_host_changes_nothing() {
    each(|gateway| {
        let host = |name: &str| condition("domain", "=", "", name);
        let mut list = vec![
            selector("wide", "way", 9, vec![host("foo.test"), on("/**")]),
            selector("narrow", "way", 1, vec![host("foo.test"), on("/v1/**")]),
        ];
        gateway.selectors(Event::Create, &list);
        gateway.rules(&["wide", "narrow", "other"].map(|id| rule("r", id, vec![on("/**")])));
        let request = Request { domain: "foo.test".into(), ..Request::get("/v1/x") };
        gateway.expect("way", &request, "narrow r");
        let regex = condition("uri", "regex", "/", "/.*");
        for sort in [0, 5, 100] {
            let other = selector("other", "way", sort, vec![host("bar.test"), regex.clone()]);
            gateway.selectors(Event::Update, std::slice::from_ref(&other));
            gateway.expect("way", &request, "narrow r");
            list.push(other);
        }
        gateway.selectors(Event::Delete, &list[2..3]);
        gateway.expect("way", &request, "narrow r");
    });
}

#[test]
fn c05_contains_looks_for_the_configured_text_as_it_is() {
    each(|gateway| {
        gateway.selectors(
            Event::Create,
            &[
                selector("u", "way", 3, vec![condition("uri", "contains", "/", "n/find")]),
                selector("x", "way", 2, vec![condition("header", "contains", "x", "a.b+c(1)")]),
                selector("y", "way", 1, vec![condition("header", "startsWith", "y", "v[1]")]),
            ],
        );
        gateway.rules(&["u", "x", "y"].map(|id| rule("r", id, vec![on("/**")])));
        for (request, expected) in [
            (Request::get("/demo/n/findById"), "u r"),
            (Request::get("/n"), "none"),
            (Request::get("/z").header("x", "zz-a.b+c(1)-zz"), "x r"),
            (Request::get("/z").header("x", "aXb+c(1)"), "none"),
            (Request::get("/z").header("y", "v[1].2"), "y r"),
            (Request::get("/z").header("y", "v1.2"), "none"),
        ] {
            gateway.expect("way", &request, expected);
        }
    });
}

#[test]
fn c06_empty_and_partial_lists_have_one_meaning() {
    each(|gateway| {
        let header = || condition("header", "=", "k", "1");
        let (with, without) = (Request::get("/e").header("k", "1"), Request::get("/e"));
        let blank = || condition("header", "=", "k", "");
        // Of a selector: full or not, match mode, conditions; then with the header and without it.
        for (full, mode, conditions, hit, miss) in [
            (false, 0, vec![], false, false),
            (false, 1, vec![], false, false),
            (false, 0, vec![header()], true, false),
            (false, 1, vec![header(), on("/nowhere")], true, false),
            (false, 0, vec![blank()], false, false),
            (false, 1, vec![blank()], false, false),
            (true, 0, vec![header()], true, true),
        ] {
            let one = Selector {
                selector_type: i32::from(!full),
                match_mode: mode,
                ..selector("s", "way", 1, conditions)
            };
            gateway.selectors(Event::Update, &[one]);
            gateway.rules(&[rule("r", "s", vec![on("/**")])]);
            for (request, taken) in [(&with, hit), (&without, miss)] {
                gateway.expect("way", request, if taken { "s r" } else { "none" });
            }
        }
        // The last rule of a full selector is used whatever its conditions; of another, as they say.
        for (full, mode, conditions, hit, miss) in [
            (false, 0, vec![], true, true),
            (false, 1, vec![], false, false),
            (false, 0, vec![header()], true, false),
            (false, 1, vec![header(), on("/nowhere")], true, false),
            (false, 0, vec![blank()], false, false),
            (true, 0, vec![header()], true, true),
            (true, 1, vec![], true, true),
        ] {
            let one = selector("s", "way", 1, vec![on("/**")]);
            gateway
                .selectors(Event::Update, &[Selector { selector_type: i32::from(!full), ..one }]);
            gateway.rules(&[Rule { match_mode: mode, ..rule("r", "s", conditions) }]);
            for (request, taken) in [(&with, hit), (&without, miss)] {
                gateway.expect("way", request, if taken { "s r" } else { "s without rule" });
            }
        }
    });
}
