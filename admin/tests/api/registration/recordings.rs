//! Replays what the SDKs of the reference sent, and compares what gateways are told.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use longmen_core::model::DEFAULT_NAMESPACE;
use longmen_db::ChangeRow;
use serde_json::Value;

use super::rows::rows;
use crate::golden;
use crate::scene::Scene;
use crate::support::PASSWORD;

/// The recorded clients, and the context path of each.
const CLIENTS: [(&str, &str); 3] = [
    ("client-2.7.1.jsonl", "/http"),
    ("client-2.6.1.jsonl", "/items261"),
    ("client-go.jsonl", "/golang"),
];

/// The page in `docs` that shows what differs.
const PAGE: &str = "../docs/golden-registration.md";

/// Frames of the reference that ours does not send, or sends in another form.
struct Difference {
    what: &'static str,
    why: &'static str,
    is: fn(&Frame) -> bool,
}

const ON_PURPOSE: &[Difference] = &[
    Difference {
        what: "SELECTOR with the instances in its settings",
        why: "the list of upstreams is what counts; stock gateways read that of these plugins, too",
        is: |frame| frame.group == "SELECTOR" && frame.data["handle"] != "",
    },
    Difference {
        what: "DISCOVER_UPSTREAM made from the settings of the selector",
        why: "says again what the one made from the rows says; ours sends that one only",
        is: |frame| frame.settings == Some("healthCheckEnabled"),
    },
    Difference {
        what: "DISCOVER_UPSTREAM/REFRESH at each heartbeat",
        why: "says nothing new; ours tells gateways of a heartbeat only when it brings an address back",
        is: |frame| frame.event == "REFRESH",
    },
    Difference {
        what: "DISCOVER_UPSTREAM with the same empty list again after the good-bye",
        why: "from the reference's check, which looks at the settings of the selector",
        is: |frame| {
            frame.group == "DISCOVER_UPSTREAM"
                && frame.data["upstreamDataList"] == Value::Array(vec![])
        },
    },
    Difference {
        what: "RULE of a path with a variable",
        why: "the SDK escapes the braces, and the reference leaves `= /save/%7Bid%7D`, which matches \
              no request; ours is `pathPattern /save/**`",
        is: |frame| {
            frame.group == "RULE"
                && frame.data["name"].as_str().is_some_and(|name| name.contains('{'))
        },
    },
];

/// What one frame says, without ids and times.
#[derive(Debug, Clone, PartialEq)]
struct Frame {
    group: String,
    event: String,
    data: Value,
    /// What the settings of the first upstream begin with.
    settings: Option<&'static str>,
}

impl Frame {
    fn new(group: &str, event: &str, mut data: Value) -> Self {
        let list = data["upstreamDataList"].as_array();
        let props = list.and_then(|list| list.first()).and_then(|one| one["props"].as_str());
        let settings = props
            .map(|props| if props.contains("healthCheck") { "healthCheckEnabled" } else { "" });
        without_ids(&mut data);
        Self { group: group.to_owned(), event: event.to_owned(), data, settings }
    }

    /// Whether it is about something below a context path.
    fn is_below(&self, context_path: &str) -> bool {
        let names = ["selectorName", "name", "path"].map(|member| self.data[member].as_str());
        names
            .into_iter()
            .flatten()
            .any(|name| name == context_path || name.starts_with(&format!("{context_path}/")))
    }
}

/// Takes out what differs from run to run.
fn without_ids(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for name in [
                "id",
                "selectorId",
                "discoveryHandlerId",
                "dateCreated",
                "dateUpdated",
                "beforeConditionList",
                "beforeConditionDataList",
            ] {
                members.remove(name);
            }
            members.retain(|_, value| !value.is_null());
            members.values_mut().for_each(without_ids);
        }
        Value::Array(list) => list.iter_mut().for_each(without_ids),
        _ => {}
    }
}

/// One recorded call.
struct Call {
    method: String,
    path: String,
    body: String,
    answer: Value,
}

impl Call {
    /// The operation that a description is of.
    fn operation(&self) -> Option<String> {
        let body: Value = serde_json::from_str(&self.body).ok()?;
        let described = self.path.ends_with("/register-apiDoc");
        described.then(|| format!("{} {}", body["httpMethod"], body["apiPath"]))
    }
}

fn calls(file: &str) -> Vec<Call> {
    let lines = golden::lines(&format!("registration/{file}"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    lines
        .into_iter()
        .map(|line| Call {
            method: text(&line["request"]["method"]),
            path: text(&line["request"]["path"]),
            body: text(&line["request"]["body"]).replace("<ms>", "1753000500123"),
            answer: line["response"].clone(),
        })
        .collect()
}

/// The frames that the recorded admin sent.
fn recorded_frames() -> Vec<Frame> {
    let mut frames = Vec::new();
    for line in golden::lines("registration/frames.jsonl") {
        let text = line["text"].as_str().unwrap_or_default().replace("<ms>", "0");
        let Ok(frame) = serde_json::from_str::<Value>(&text) else { continue };
        let Some(group) = frame["groupType"].as_str() else { continue };
        for data in frame["data"].as_array().into_iter().flatten() {
            let event = frame["eventType"].as_str().unwrap_or_default();
            frames.push(Frame::new(group, event, data.clone()));
        }
    }
    assert!(frames.len() > 50, "only {} recorded frames", frames.len());
    frames
}

fn our_frames(rows: &[ChangeRow]) -> Vec<Frame> {
    let frame = |row: &ChangeRow| {
        let event = row.event.map_or("-", longmen_core::sync::Event::name);
        let text = row.after.as_deref().or(row.before.as_deref()).unwrap_or("null");
        Frame::new(&row.kind, event, serde_json::from_str(text).unwrap())
    };
    rows.iter().map(frame).collect()
}

/// Sends a recorded call; the answer must be the recorded one.
async fn replay(scene: &Scene, call: &Call) {
    let told = format!("{} {} {}", call.method, call.path, call.body);
    if call.path.starts_with("/platform/login") {
        let ours = scene.admin.log_in("admin", PASSWORD, "").await;
        let theirs: Value = serde_json::from_str(call.answer["body"].as_str().unwrap()).unwrap();
        let members = |answer: &Value| -> Vec<String> {
            answer["data"].as_object().unwrap().keys().cloned().collect()
        };
        assert_eq!((&ours["code"], &ours["message"]), (&theirs["code"], &theirs["message"]));
        assert_eq!(members(&ours), members(&theirs));
        return;
    }
    let body: Value = serde_json::from_str(&call.body).unwrap();
    let answer = scene.text(&call.method, &call.path, &body).await;
    assert_eq!(answer.status, call.answer["status"], "{told}");
    assert_eq!(answer.text, call.answer["body"].as_str().unwrap(), "{told}");
    assert_eq!(answer.headers["content-type"], call.answer["contentType"].as_str().unwrap());
}

/// How the recordings of one client compare.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    calls: usize,
    equal: usize,
    on_purpose: BTreeMap<&'static str, usize>,
    faults: Vec<String>,
}

/// Each recorded frame must be one of ours, or differ on purpose; and the other way round.
fn compare(recorded: Vec<Frame>, mut ours: Vec<Frame>) -> Outcome {
    let mut outcome = Outcome::default();
    let explained = |frame: &Frame| ON_PURPOSE.iter().find(|difference| (difference.is)(frame));
    for frame in recorded {
        if let Some(at) = ours.iter().position(|one| *one == frame) {
            ours.remove(at);
            outcome.equal += 1;
        } else if let Some(difference) = explained(&frame) {
            *outcome.on_purpose.entry(difference.what).or_default() += 1;
        } else {
            outcome.faults.push(format!("not sent: {frame:?}"));
        }
    }
    let unknown = ours.iter().filter(|frame| explained(frame).is_none());
    outcome.faults.extend(unknown.map(|frame| format!("sent besides: {frame:?}")));
    outcome
}

pub(super) async fn the_recorded_clients_are_served(scene: &Scene) {
    let recorded = recorded_frames();
    let (mut outcomes, mut operations) = (Vec::new(), BTreeSet::new());
    for (file, context_path) in CLIENTS {
        let version = scene.version().await;
        let calls = calls(file);
        for call in &calls {
            replay(scene, call).await;
            operations.extend(call.operation());
        }
        let ours = our_frames(&scene.changes_after(version).await);
        assert!(ours.iter().all(|frame| frame.is_below(context_path)), "{ours:?}");
        let theirs = recorded.iter().filter(|frame| frame.is_below(context_path));
        let theirs: Vec<Frame> = theirs.cloned().collect();
        let outcome = if theirs.is_empty() {
            // The frames of the Go client were not recorded.
            Outcome::default()
        } else {
            compare(theirs, ours)
        };
        assert!(outcome.faults.is_empty(), "{file}:\n{}", outcome.faults.join("\n"));
        outcomes.push((file, Outcome { calls: calls.len(), ..outcome }));
    }
    let docs = scene.get("/api?currentPage=1&pageSize=12").await;
    let docs = docs["dataList"].as_array().unwrap().clone();
    assert_eq!(docs.len(), operations.len(), "one for each operation that was registered");
    assert!(docs.iter().all(|doc| doc["state"] == 2), "both said good-bye");

    let made = rows(scene).await;
    assert_eq!(
        made.upstreams,
        ["divide /golang http:// 127.0.0.1:8080 0 50 {\"warmupTime\":\"10\"}"]
    );
    let go = made.rules.iter().find(|rule| rule.starts_with("divide /golang ")).unwrap();
    assert!(go.contains(" /golang/your/path uri = /golang/your/path {"), "{go}");
    assert!(made.meta_data.iter().all(|one| !one.contains("/golang")), "Go asks for none");
    assert!(made.meta_data.iter().all(|one| one.contains(DEFAULT_NAMESPACE)));
    check_page(&page(&outcomes));
}

/// The page must say what the run found. `UPDATE_GOLDEN_COVERAGE=1` writes it.
fn check_page(page: &str) {
    if !golden::folder().1 {
        return;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    if std::env::var_os("UPDATE_GOLDEN_COVERAGE").is_some() {
        fs::write(&path, page).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(stored, page, "{PAGE} is old: run the test with UPDATE_GOLDEN_COVERAGE=1");
}

fn page(outcomes: &[(&str, Outcome)]) -> String {
    let mut page = "# Recordings of registering clients\n\n\
        Written by the test `registration::recordings`, which sends every recorded call of the \
        reference's SDKs to our admin,\non SQLite and on PostgreSQL, and compares each answer, and \
        what gateways are told with the frames of a stock admin\n(without ids, times and their order: \
        two clients overlap in the recording). All answers are equal. The frames of the Go\nclient \
        were not recorded.\n\n\
        | recording | calls, all answered alike | frames alike | different on purpose |\n\
        |---|---|---|---|\n"
        .to_owned();
    for (file, outcome) in outcomes {
        let different: usize = outcome.on_purpose.values().sum();
        let Outcome { calls, equal, .. } = outcome;
        let _ = writeln!(page, "| `{file}` | {calls} | {equal} | {different} |");
    }
    page.push_str("\n## Different on purpose\n\n| frames of the reference | how many | why |\n|---|---|---|\n");
    for Difference { what, why, .. } in ON_PURPOSE {
        let count = |outcome: &Outcome| outcome.on_purpose.get(what).copied().unwrap_or_default();
        let sum: usize = outcomes.iter().map(|(_, outcome)| count(outcome)).sum();
        assert!(sum > 0, "{what}: does not occur any more");
        let _ = writeln!(page, "| {what} | {sum} | {why} |");
    }
    page
}
