//! The recorded cases on matching: what is chosen after each object that was applied, by list, by
//! index, and by index with caches; and what the reference chose.

use http::{HeaderName, HeaderValue};
use serde_json::Value;

use super::{choices, frame};
use crate::chain::Registry;
use crate::condition::tests::Request;
use crate::matcher::{IndexOptions, MatchCacheOptions};
use crate::snapshot::{MatchingOptions, Position, Publisher, PublisherOptions, SnapshotStore};
use crate::sync::{Event, Frame, Payload};

/// What the reference answers where divide has no selector, and where it has no rule.
const NO_SELECTOR: &str = "\"code\":-107";
const NO_RULE: &str = "\"code\":-102";

fn records() -> Vec<Value> {
    let folder = std::env::var("GOLDEN_DIR").unwrap_or_else(|_| {
        concat!(env!("CARGO_MANIFEST_DIR"), "/../bootstrap/tests/golden").to_owned()
    });
    let text = std::fs::read_to_string(format!("{folder}/gateway/matching.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn object(entry: &Value) -> Option<Frame> {
    let mut value = entry[1].clone();
    // What the local API of the reference fills in.
    for (member, default) in [("enabled", Value::Bool(true)), ("matchMode", 0.into())] {
        if value.get(member).is_some_and(Value::is_null) {
            value[member] = default;
        }
    }
    let payload = match entry[0].as_str()? {
        "PLUGIN" => Payload::Plugin(vec![serde_json::from_value(value).ok()?]),
        "SELECTOR" => Payload::Selector(vec![serde_json::from_value(value).ok()?]),
        "RULE" => Payload::Rule(vec![serde_json::from_value(value).ok()?]),
        _ => return None,
    };
    Some(frame(Event::Update, payload))
}

fn request(exchange: &Value) -> Option<Request> {
    let text = exchange["sent"]["text"].as_str()?;
    let mut lines = text.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let method = words.next()?.to_owned();
    let mut request = Request { method, ..Request::get(words.next()?) };
    for (name, value) in lines.map_while(|line| line.split_once(": ")) {
        if name.eq_ignore_ascii_case("host") {
            value.clone_into(&mut request.domain);
        }
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        request.headers.append(name, HeaderValue::from_str(value).ok()?);
    }
    Some(request)
}

#[test]
fn recorded_cases_are_chosen_alike_and_as_recorded() {
    let (off, on) = (MatchCacheOptions::off(), MatchCacheOptions::default());
    let shapes = [(usize::MAX, off), (0, off), (0, on)];
    let (mut compared, mut judged) = (0, 0);
    for record in records() {
        let objects: Vec<Frame> =
            record["config"].as_array().unwrap().iter().filter_map(object).collect();
        let names = objects.iter().filter_map(|frame| match &frame.payload {
            Payload::Plugin(list) => Some(list[0].name.clone()),
            _ => None,
        });
        let names: Vec<String> = names.collect();
        let exchanges = record["exchanges"].as_array().unwrap();
        let requests: Vec<Request> = exchanges.iter().filter_map(request).collect();
        let mut gateways = shapes.map(|(linear_up_to, cache)| {
            let mut registry = Registry::default();
            names.iter().for_each(|name| registry.add(super::idle(name)));
            let index = IndexOptions { linear_up_to, dear_ns: 0, cache };
            let matching = MatchingOptions { selectors: index, rules: index };
            let options = PublisherOptions { matching, ..PublisherOptions::default() };
            let store = std::sync::Arc::new(SnapshotStore::new());
            (Publisher::new(std::sync::Arc::clone(&store), registry, options), store)
        });
        for object in &objects {
            let object = std::slice::from_ref(object);
            let found = gateways.each_mut().map(|(publisher, store)| {
                publisher.apply(object, Position::default());
                let asked = (0..3).flat_map(|_| &requests);
                asked.map(|request| choices(&store.load(), request)).collect::<Vec<_>>()
            });
            assert!(found.iter().all(|other| *other == found[0]), "{}: {found:?}", record["id"]);
            compared += found[0].len();
        }
        // What is chosen at the end is what the only exchange saw.
        let (1, [exchange]) = (requests.len(), &exchanges[..]) else { continue };
        let told = choices(&gateways[2].1.load(), &requests[0]);
        let divide = told.iter().find(|(plugin, _)| plugin == "divide");
        let Some((_, chosen)) = divide.filter(|_| names.len() == 1) else { continue };
        let body = exchange["got"]["body"].as_str().unwrap_or_default();
        let same = match chosen.as_str() {
            "none" => body.contains(NO_SELECTOR),
            text if text.ends_with("without rule") => body.contains(NO_RULE),
            _ => !body.contains(NO_SELECTOR) && !body.contains(NO_RULE),
        };
        assert!(same, "{}: {chosen} and {body}", record["id"]);
        judged += 1;
    }
    assert!(compared > 100 && judged >= 3, "{compared} and {judged}");
}
