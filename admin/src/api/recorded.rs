//! Recordings of a stock admin, for unit tests: calls with their answers, and the frames that they
//! caused.

use serde_json::Value;

use crate::error::ApiError;
use crate::extract::Violations;

/// One recorded call.
#[derive(Debug)]
pub(crate) struct Call {
    /// Position over all recordings.
    pub(crate) seq: u64,
    /// `POST /selector`; ids are placeholders.
    pub(crate) what: String,
    /// The body, if it is JSON.
    pub(crate) body: Value,
    /// `message` of the answer.
    pub(crate) message: String,
    /// `code` of the answer.
    pub(crate) code: i64,
    /// Data of the frames that it caused, with their group.
    pub(crate) frames: Vec<(String, Value)>,
}

const CALLS: [&str; 3] = [
    include_str!("../../tests/golden/admin-rest/selectors.jsonl"),
    include_str!("../../tests/golden/admin-rest/rules.jsonl"),
    include_str!("../../tests/golden/admin-rest/metadata-appauth.jsonl"),
];
const FRAMES: &str = include_str!("../../tests/golden/websocket/changes.jsonl");

/// The recorded calls whose method and path begin with `what`.
pub(crate) fn calls(what: &str) -> Vec<Call> {
    let lines = CALLS.iter().flat_map(|file| file.lines());
    let calls: Vec<Call> = lines.map(call).filter(|call| call.what.starts_with(what)).collect();
    assert!(!calls.is_empty(), "{what} was not recorded");
    calls
}

fn call(line: &str) -> Call {
    let line: Value = serde_json::from_str(line).unwrap();
    let request = &line["request"];
    let body = request["body"].as_str().unwrap_or_default();
    Call {
        seq: line["seq"].as_u64().unwrap(),
        what: format!(
            "{} {}",
            request["method"].as_str().unwrap(),
            request["path"].as_str().unwrap()
        ),
        body: serde_json::from_str(body).unwrap_or_default(),
        message: line["body"]["message"].as_str().unwrap_or_default().to_owned(),
        code: line["body"]["code"].as_i64().unwrap_or_default(),
        frames: frames_of(request),
    }
}

/// The frames that followed the same request on the websocket.
fn frames_of(request: &Value) -> Vec<(String, Value)> {
    let mut lines = FRAMES.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut frames = Vec::new();
    if !lines.any(|line| line.get("request") == Some(request)) {
        return frames;
    }
    for line in lines.take_while(|line| line.get("text").is_some()) {
        let frame: Value = serde_json::from_str(line["text"].as_str().unwrap()).unwrap();
        let group = frame["groupType"].as_str().unwrap().to_owned();
        frames.extend(frame["data"].as_array().unwrap().iter().map(|d| (group.clone(), d.clone())));
    }
    frames
}

/// The violated field rules in an answer, sorted, without those that ask the store.
pub(crate) fn without_look_ups(message: &str) -> Vec<String> {
    let Some(list) = message.strip_prefix("Request error! invalid argument [") else {
        return Vec::new();
    };
    let list = list.trim_end_matches(']').split("| ").map(str::to_owned);
    let mut list: Vec<String> = list.filter(|text| !text.ends_with("is not existed")).collect();
    list.sort();
    list
}

/// What our field rules say, in the same form.
pub(crate) fn violated(rules: Violations) -> Vec<String> {
    let answer = rules.into_body_result();
    answer.err().map_or_else(Vec::new, |error: ApiError| without_look_ups(&error.client_message()))
}
