//! Every frame of the specification's transcripts and every frame a stock admin was recorded to
//! send: read, written again, the same JSON value.

use serde::Deserialize;
use serde_json::Value;

use super::{Event, Frame, Inbound, Payload, decode, encode};
use crate::model::Plugin;

/// The frames of the specification's transcripts, values invented there.
const TRANSCRIPTS: &str = include_str!("../../tests/golden/sync-transcripts.jsonl");
/// What a stock 2.7.1 admin sent: full refreshes, and the frames after each write of its API.
const STOCK_FRAMES: &str = include_str!("../../tests/golden/stock-frames.jsonl");

#[derive(Deserialize)]
struct Recorded {
    case: String,
    text: String,
}

fn recorded(file: &str) -> Vec<Recorded> {
    file.lines().map(|line| serde_json::from_str(line).expect("fixture line")).collect()
}

/// Drops null members at every depth: absent and null are the same on this wire.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .filter(|(_, member)| !member.is_null())
                .map(|(name, member)| (name, without_nulls(member)))
                .collect(),
        ),
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

fn parsed(text: &str) -> Value {
    without_nulls(serde_json::from_str(text).expect("JSON"))
}

fn rewrite(case: &str, text: &str) -> String {
    match decode(text).unwrap_or_else(|error| panic!("{case}: {error}")) {
        Inbound::Data(frame) => encode(&frame),
        Inbound::RunningMode(mode) => serde_json::to_string(&mode).expect("plain data"),
        other => panic!("{case}: read as {other:?}"),
    }
}

fn assert_round_trips(file: &str, at_least: usize, left_out: &str) {
    let frames = recorded(file);
    assert!(frames.len() >= at_least, "only {} fixtures", frames.len());
    for Recorded { case, text } in frames.iter().filter(|frame| frame.case != left_out) {
        assert_eq!(parsed(&rewrite(case, text)), parsed(text), "{case}");
    }
}

#[test]
fn transcripts_of_the_specification_round_trip() {
    // T40 is about spellings that are read and never written; it has its own test.
    assert_round_trips(TRANSCRIPTS, 29, "T40");
}

#[test]
fn frames_of_a_stock_admin_round_trip() {
    assert_round_trips(STOCK_FRAMES, 70, "");
    let groups: std::collections::BTreeSet<_> = recorded(STOCK_FRAMES)
        .iter()
        .filter_map(|frame| match decode(&frame.text) {
            Ok(Inbound::Data(frame)) => Some(frame.payload.group()),
            _ => None,
        })
        .collect();
    assert_eq!(groups.len(), 8, "all groups are covered: {groups:?}");
}

#[test]
fn three_spellings_of_one_plugin_load_alike() {
    let transcripts = recorded(TRANSCRIPTS);
    let plugins = |case: &str| -> Vec<Vec<Plugin>> {
        let of_case = transcripts.iter().filter(|frame| frame.case == case);
        of_case
            .map(|frame| match decode(&frame.text).expect("a frame") {
                Inbound::Data(Frame { payload: Payload::Plugin(plugins), event, .. }) => {
                    assert!(matches!(event, Event::Create | Event::Myself));
                    plugins
                }
                other => panic!("{case}: read as {other:?}"),
            })
            .collect()
    };
    let expected = &plugins("T06")[0][0];
    let spellings = plugins("T40");
    assert_eq!(spellings.len(), 3);
    for spelling in spellings {
        assert_eq!(spelling, std::slice::from_ref(expected));
    }
}
