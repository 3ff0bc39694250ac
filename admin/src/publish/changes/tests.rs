//! Rows against what a stock admin was recorded to send for the same writes.

use std::collections::HashMap;

use longmen_core::model::DEFAULT_NAMESPACE;
use longmen_core::sync::{Inbound, decode};
use longmen_db::Binding;
use serde_json::{Value, json};

use super::*;
use crate::publish::sequence::{State, answer_to_myself, full_refresh, refresh};

const RECORDED: &str = include_str!("../../../tests/golden/websocket/changes.jsonl");

/// One REST call and the frames that it caused.
struct Step {
    name: String,
    frames: Vec<Value>,
    /// Frames of the admin's own upstream check, which spoke up right after.
    unrelated: Vec<Value>,
}

fn steps() -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in RECORDED.lines() {
        let mut line: Value = serde_json::from_str(line).unwrap();
        if let Some(name) = line["step"].as_str() {
            steps.push(Step { name: name.to_owned(), frames: Vec::new(), unrelated: Vec::new() });
        } else {
            let text = line["text"].take();
            let frame = serde_json::from_str(text.as_str().unwrap()).unwrap();
            steps.last_mut().unwrap().frames.push(frame);
        }
    }
    for step in &mut steps {
        let from = match step.name.as_str() {
            "tcp-delete" => 1,
            "auth-apply-no-paths" => 0,
            _ => continue,
        };
        step.unrelated = step.frames.split_off(from);
    }
    steps
}

fn identity(group: &str, object: &Value) -> String {
    let member = match group {
        "APP_AUTH" => "appKey",
        "DISCOVER_UPSTREAM" => "selectorId",
        "AI_PROXY_API_KEY" => "proxyApiKey",
        _ => "id",
    };
    object[member].as_str().unwrap().to_owned()
}

/// The rows that a write leaves behind, told from the frames it caused and from what the objects
/// were before.
#[derive(Default)]
struct Tables {
    objects: HashMap<(String, String), Value>,
}

/// A row as the log has it; what frames do not depend on is left empty.
fn log_row(kind: &str, id: &str, operation: Operation, event: Option<Event>) -> ChangeRow {
    ChangeRow {
        position: 0,
        kind: kind.to_owned(),
        object_id: id.to_owned(),
        operation,
        event,
        before: None,
        after: None,
        actor: String::new(),
        source: String::new(),
        address: String::new(),
        at_ms: 0,
    }
}

impl Tables {
    fn apply(&mut self, frame: &Value) -> Vec<ChangeRow> {
        let group = frame["groupType"].as_str().unwrap();
        let event = Event::from_name(frame["eventType"].as_str().unwrap()).unwrap();
        let objects = frame["data"].as_array().unwrap().iter();
        objects.map(|object| self.row(group, event, object.clone())).collect()
    }

    fn row(&mut self, group: &str, event: Event, mut object: Value) -> ChangeRow {
        let id = identity(group, &object);
        let key = (group.to_owned(), id.clone());
        let before = self.objects.get(&key).map(Value::to_string);
        let members = object.as_object_mut().unwrap();
        members.remove("beforeConditionList");
        members.remove("beforeConditionDataList");
        let deleted = event == Event::Delete;
        let after = (!deleted).then(|| object.to_string());
        if deleted {
            self.objects.remove(&key);
        } else {
            self.objects.insert(key, object.clone());
        }
        let operation = match (&before, deleted) {
            (_, true) => Operation::Delete,
            (None, false) => Operation::Create,
            (Some(_), false) => Operation::Update,
        };
        let before = before.or_else(|| deleted.then(|| object.to_string()));
        ChangeRow { before, after, ..log_row(group, &id, operation, Some(event)) }
    }
}

fn texts(parts: &[Part]) -> Vec<Value> {
    let frames = parts.iter().flat_map(|part| match part {
        Part::Frames(frames) => frames.iter(),
        Part::Refresh(kind) => panic!("unexpected refresh: {kind:?}"),
    });
    frames.map(|text| serde_json::from_str(text).unwrap()).collect()
}

#[test]
fn rows_become_the_frames_of_a_stock_admin() {
    let mut tables = Tables::default();
    let mut compared = 0;
    for mut step in steps() {
        match step.name.as_str() {
            // Stored, but its frame went to the other namespace's gateways.
            "selector-update-other-namespace" => {
                let key = ("SELECTOR".to_owned(), "<id4>".to_owned());
                let object = tables.objects.get_mut(&key).unwrap();
                object["conditionList"].as_array_mut().unwrap().truncate(1);
            }
            // Stored, but not told.
            "tcp-update" => {
                let key = ("PROXY_SELECTOR".to_owned(), "<id20>".to_owned());
                let object = tables.objects.get_mut(&key).unwrap();
                object["forwardPort"] = json!(9498);
                object["props"] = json!({"loadBalance": "random"});
            }
            // Ours names the namespace, so that these reach the right gateways.
            "meta-update" | "auth-delete" => {
                step.frames[0]["data"][0]["namespaceId"] = json!(DEFAULT_NAMESPACE);
            }
            "plugin-sync" | "meta-sync" | "auth-sync" | "sync-all" => continue,
            _ => {}
        }
        let rows: Vec<ChangeRow> =
            step.frames.iter().flat_map(|frame| tables.apply(frame)).collect();
        let (parts, faults) = stock(DEFAULT_NAMESPACE, &rows, &Jars::new());
        assert!(faults.is_empty(), "{}: {faults:?}", step.name);
        assert_eq!(texts(&parts), step.frames, "{}", step.name);
        compared += step.frames.len();
        step.unrelated.iter().for_each(|frame| drop(tables.apply(frame)));
    }
    assert!(compared > 45, "only {compared} frames compared");
}

#[test]
fn refreshes_have_the_recorded_order() {
    let cases = [
        ("plugin-sync", Scope::Plugin("5".to_owned())),
        ("meta-sync", Scope::Group(Group::MetaData)),
        ("auth-sync", Scope::Group(Group::AppAuth)),
        ("proxy-selector-fetch", Scope::Upstreams("<id4>".to_owned())),
        ("sync-all", Scope::Namespace),
    ];
    let steps = steps();
    for (name, scope) in cases {
        let step = steps.iter().find(|step| step.name == name).unwrap();
        let frames = refresh(DEFAULT_NAMESPACE, &state(&step.frames), &scope);
        let frames: Vec<Value> =
            frames.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        assert_eq!(frames, step.frames, "{name}");
    }
}

#[test]
fn the_answer_to_myself_has_the_recorded_order() {
    const FRESH: &str = include_str!("../../../tests/golden/websocket/full-refresh-fresh.jsonl");
    const FILLED: &str =
        include_str!("../../../tests/golden/websocket/full-refresh-with-data.jsonl");
    for (recorded, expected) in [(FRESH, 1), (FILLED, 8)] {
        // The first sequence: from the first data frame to the next answer about the mode.
        let texts = recorded.lines().filter_map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            let text = line["text"].as_str().filter(|_| line["dir"] == "<")?;
            Some(serde_json::from_str::<Value>(text).unwrap())
        });
        let frames: Vec<Value> =
            texts.skip(1).take_while(|frame| frame["groupType"].is_string()).collect();
        assert_eq!(frames.len(), expected);
        let ours = answer_to_myself(DEFAULT_NAMESPACE, &state(&frames));
        let ours: Vec<Value> =
            ours.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
        assert_eq!(ours, frames);
    }
}

#[test]
fn a_full_refresh_of_ours_holds_every_group_and_ends_with_its_mark() {
    let all = steps().into_iter().find(|step| step.name == "sync-all").unwrap();
    let texts = full_refresh(DEFAULT_NAMESPACE, "e", 9, &state(&all.frames));
    let mut groups = Vec::new();
    for text in &texts {
        match decode(text).unwrap() {
            Inbound::Data(frame) => {
                assert_eq!(frame.event, Event::Myself);
                let mark = frame.mark.unwrap();
                assert!(mark.refresh && !mark.last && mark.version == 9);
                groups.push(frame.payload.group());
            }
            Inbound::Mark(mark) => assert!(mark.refresh && mark.last && mark.epoch == "e"),
            other => panic!("{other:?}"),
        }
    }
    // No raw port is left in that state; the announcement of a bound selector is not for ours.
    assert_eq!(groups.len(), texts.len() - 1);
    groups.sort();
    let expected = Group::ALL.into_iter().filter(|group| *group != Group::ProxySelector);
    assert!(groups.iter().copied().eq(expected), "{groups:?}");
}

/// The state that the frames of a sequence tell of.
fn state(frames: &[Value]) -> State {
    use longmen_core::sync::Payload;
    let mut state = State::default();
    for frame in frames {
        let Inbound::Data(frame) = decode(&frame.to_string()).unwrap() else { panic!("no data") };
        match frame.payload {
            Payload::AppAuth(objects) => state.app_auths.extend(objects),
            Payload::Plugin(objects) => state.plugins.extend(objects),
            Payload::Rule(objects) => state.rules.extend(objects),
            Payload::Selector(objects) => state.selectors.extend(objects),
            Payload::MetaData(objects) => state.metadata.extend(objects),
            Payload::ProxySelector(objects) => {
                let bindings = objects.into_iter().map(|announcement| Binding {
                    announcement,
                    upstreams: UpstreamList::default(),
                });
                state.bindings.extend(bindings);
            }
            Payload::AiProxyApiKey(objects) => state.api_keys.extend(objects),
            Payload::DiscoverUpstream(objects) => {
                for upstreams in objects {
                    let is_of =
                        |binding: &&mut Binding| binding.announcement.id == upstreams.selector_id;
                    match state.bindings.iter_mut().find(is_of) {
                        Some(binding) => binding.upstreams = upstreams,
                        // Some of the recorded sequences have no announcement in front.
                        None => state
                            .bindings
                            .push(Binding { announcement: ProxySelector::default(), upstreams }),
                    }
                }
            }
        }
    }
    state
}

fn row(kind: &str, operation: Operation, event: Option<Event>) -> ChangeRow {
    let after = Some(r#"{"id":"7","name":"n"}"#.to_owned());
    ChangeRow { after, ..log_row(kind, "7", operation, event) }
}

fn only_frames(parts: Vec<Part>) -> Vec<axum::extract::ws::Utf8Bytes> {
    match <[Part; 1]>::try_from(parts) {
        Ok([Part::Frames(frames)]) => frames,
        other => panic!("{other:?}"),
    }
}

#[test]
fn rows_without_an_event_and_of_other_kinds_reach_no_stock_gateway() {
    let rows = [
        row("PLUGIN", Operation::Create, None),
        row("NAMESPACE", Operation::Update, Some(Event::Update)),
    ];
    assert_eq!(stock("ns", &rows, &Jars::new()).0, []);
    let frames = only_frames(ours("ns", "e", 2, &rows).0);
    assert_eq!(frames.len(), 1);
    let Inbound::Data(frame) = decode(&frames[0]).unwrap() else { panic!("no data") };
    assert_eq!((frame.event, frame.payload.len()), (Event::Update, 1));
}

#[test]
fn a_set_without_objects_still_moves_our_version() {
    let (parts, _) = ours("ns", "e", 2, &[row("NAMESPACE", Operation::Update, None)]);
    let frames = only_frames(parts);
    assert!(matches!(decode(&frames[0]).unwrap(), Inbound::Mark(mark) if mark.last));
}

#[test]
fn a_refresh_row_splits_the_frames_around_it() {
    let rows = [
        row("PLUGIN", Operation::Update, Some(Event::Update)),
        row("", Operation::Refresh, Some(Event::Refresh)),
        row("PLUGIN", Operation::Update, Some(Event::Update)),
    ];
    let (parts, _) = stock("ns", &rows, &Jars::new());
    assert!(matches!(
        &parts[..],
        [Part::Frames(_), Part::Refresh(Kind::Again(Scope::Namespace)), Part::Frames(_)]
    ));
    assert_eq!(ours("ns", "e", 2, &rows).0, vec![Part::Refresh(Kind::Ours)]);
}

#[test]
fn an_unreadable_row_is_named_and_costs_our_gateways_nothing() {
    let rows = [
        ChangeRow {
            after: Some("not json".to_owned()),
            ..row("RULE", Operation::Update, Some(Event::Update))
        },
        ChangeRow { after: None, ..row("RULE", Operation::Update, Some(Event::Update)) },
        row("RULE", Operation::Update, Some(Event::Update)),
    ];
    let (parts, faults) = stock("ns", &rows, &Jars::new());
    assert_eq!(texts(&parts).len(), 1);
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert!(faults[0].starts_with("change of RULE 7: stored object is not wire JSON: "));
    assert!(faults[1].starts_with("change of RULE 7: no object stored"), "{faults:?}");
    assert_eq!(ours("ns", "e", 2, &rows).0, vec![Part::Refresh(Kind::Ours)]);
}

#[test]
fn our_gateways_get_no_jars_and_no_old_conditions() {
    let plugin = json!({"id": "5", "name": "divide", "pluginJar": "AAAA"}).to_string();
    let rule = json!({"id": "7", "conditionDataList": [], "beforeConditionDataList": []});
    let rule = rule.to_string();
    let rows = [
        ChangeRow { after: Some(plugin), ..row("PLUGIN", Operation::Update, Some(Event::Update)) },
        ChangeRow {
            before: Some(rule.clone()),
            after: Some(rule),
            ..row("RULE", Operation::Update, Some(Event::Update))
        },
    ];
    let frames = only_frames(ours("ns", "e", 2, &rows).0);
    assert!(!frames[0].contains("AAAA") && !frames[1].contains("before"));
}

/// The log is without jars: they are added to what stock gateways get, but for what goes.
#[test]
fn stock_gateways_get_the_jars_that_the_log_leaves_out() {
    let plugin = |id: &str| json!({"id": id, "name": "mine"}).to_string();
    let of = |id: &str, operation, event| ChangeRow {
        object_id: id.to_owned(),
        before: Some(plugin(id)),
        after: Some(plugin(id)),
        ..row("PLUGIN", operation, Some(event))
    };
    let rows = [
        of("5", Operation::Update, Event::Update),
        of("6", Operation::Update, Event::Update),
        of("7", Operation::Delete, Event::Delete),
        ChangeRow { event: None, ..of("8", Operation::Create, Event::Create) },
    ];
    assert_eq!(with_jars(&rows), ["5", "6"]);
    let jars =
        Jars::from([("5".to_owned(), "AAAA".to_owned()), ("7".to_owned(), "BBBB".to_owned())]);
    let frames = only_frames(stock("ns", &rows, &jars).0);
    let sent: Vec<serde_json::Value> =
        frames.iter().map(|frame| serde_json::from_str(frame).unwrap()).collect();
    assert_eq!(sent[0]["data"][0]["pluginJar"], "AAAA");
    assert_eq!(sent[0]["data"][1]["pluginJar"], "");
    assert_eq!(sent[1]["data"][0]["pluginJar"], "");
}
