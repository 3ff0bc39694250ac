//! The examples of the API document, made one after the other.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use longmen_admin::openapi::{Example, examples};
use longmen_admin::{api, openapi};
use longmen_db::Actor;
use serde_json::Value;

use crate::support::{Answer, TestAdmin};

/// Answers that have no envelope with a code.
const BARE: [&str; 9] = [
    "GET /actuator/health",
    "GET /v1/gateways",
    "POST /shenyu-client/register-metadata",
    "POST /shenyu-client/register-uri",
    "POST /shenyu-client/register-apiDoc",
    "POST /shenyu-client/offline",
    "POST /shenyu-client/register-discoveryConfig",
    "POST /shenyu-client/register-mcp",
    "POST /instance/beat",
];

/// Operations that answer pages and files, take the connection over, or speak to gateways that poll.
const WITHOUT: [&str; 7] = [
    "get /",
    "get /configs/fetch",
    "post /configs/listener",
    "get /swagger-ui.html",
    "get /swagger-ui/{file}",
    "get /v3/api-docs",
    "get /websocket",
];

/// What stands in the examples for what an admin makes by itself.
struct Names {
    /// Actual values by those in the examples.
    actual: BTreeMap<String, String>,
    /// The other way round.
    shown: BTreeMap<String, String>,
    /// The first id that was made here; smaller ones are the catalogue's and always the same.
    first_id: u64,
}

impl Names {
    fn bind(&mut self, shown: &str, actual: &str) {
        self.actual.insert(shown.to_owned(), actual.to_owned());
        self.shown.insert(actual.to_owned(), shown.to_owned());
    }

    /// A call as it is really made.
    fn real(&self, text: &str) -> String {
        self.actual.iter().fold(text.to_owned(), |text, (shown, real)| text.replace(shown, real))
    }

    /// An answer as it is shown.
    fn show(&mut self, answer: Value) -> Value {
        match answer {
            Value::Array(list) => list.into_iter().take(1).map(|one| self.show(one)).collect(),
            Value::Object(members) => Value::Object(
                members.into_iter().map(|(name, value)| (name, self.show(value))).collect(),
            ),
            Value::String(text) => Value::String(self.show_text(&text)),
            Value::Number(number) if is_time(&number.to_string()) => 1_796_040_000_000_u64.into(),
            other => other,
        }
    }

    fn show_text(&mut self, text: &str) -> String {
        if let Some(shown) = self.shown.get(text) {
            return shown.clone();
        }
        let mut out = String::new();
        for piece in text.split_inclusive(|c: char| !c.is_ascii_digit()) {
            let digits = piece.trim_end_matches(|c: char| !c.is_ascii_digit());
            let rest = &piece[digits.len()..];
            out.push_str(&self.show_digits(digits));
            out.push_str(rest);
        }
        without_dates(&out)
    }

    fn show_digits(&mut self, digits: &str) -> String {
        if is_time(digits) {
            return "1796040000000".to_owned();
        }
        if digits.len() < 17 || digits.parse().is_ok_and(|id: u64| id < self.first_id) {
            return digits.to_owned();
        }
        let next = format!("19900000000000001{:02}", self.shown.len());
        self.shown.entry(digits.to_owned()).or_insert(next).clone()
    }
}

/// Milliseconds since 1970 of these years.
fn is_time(digits: &str) -> bool {
    digits.len() == 13 && (digits.starts_with("17") || digits.starts_with("18"))
}

/// Dates of all forms wherever they stand, made one and the same.
fn without_dates(text: &str) -> String {
    const FORMS: [(&str, &str); 3] = [
        ("0000-00-00 00:00:00", "2026-11-30 12:00:00"),
        ("00-00 00:00:00", "11-30 12:00:00"),
        ("0000-00-00T00:00:00.000+00:00", "2026-11-30T12:00:00.000+00:00"),
    ];
    FORMS.iter().fold(text.to_owned(), |text, (form, shown)| replaced(&text, form, shown))
}

/// The text with `shown` in all places of `form`, in which a zero stands for any digit.
fn replaced(text: &str, form: &str, shown: &str) -> String {
    let fits = |window: &[u8]| {
        window.iter().zip(form.bytes()).all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            b'+' => matches!(byte, b'+' | b'-'),
            other => *byte == other,
        })
    };
    let Some(at) = text.as_bytes().windows(form.len()).position(fits) else {
        return text.to_owned();
    };
    let rest = replaced(&text[at + form.len()..], form, shown);
    format!("{}{shown}{rest}", &text[..at])
}

async fn call(admin: &TestAdmin, token: &str, example: &Example, names: &Names) -> Answer {
    let (method, _) = example.operation.split_once(' ').unwrap();
    let is_form = method != "GET"
        && example.operation.contains("/plugin-template")
        && example.body.as_ref().is_some_and(|body| body.get("config").is_some());
    let kind = if is_form { "application/x-www-form-urlencoded" } else { "application/json" };
    let body =
        example.body.as_ref().map(|body| if is_form { form(body) } else { body.to_string() });
    let headers = [
        ("X-Access-Token".to_owned(), token.to_owned()),
        ("Content-Type".to_owned(), kind.to_owned()),
    ];
    let body = body.map(|body| names.real(&body));
    admin.call(method, &names.real(example.target()), &headers, body).await
}

/// An object as a form.
fn form(body: &Value) -> String {
    let pairs = body.as_object().unwrap().iter().map(|(name, value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let escaped = text.bytes().map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        });
        format!("{name}={}", escaped.collect::<String>())
    });
    pairs.collect::<Vec<_>>().join("&")
}

#[tokio::test]
async fn every_example_is_accepted_and_answered_as_shown() {
    let admin = TestAdmin::start().await;
    let uow = admin.running().state().store().begin(Actor::system()).await.unwrap();
    let first_id = uow.next_id().unwrap().parse().unwrap();
    drop(uow);
    let (actual, shown) = (BTreeMap::new(), BTreeMap::new());
    let mut names = Names { actual, shown, first_id };
    let update = std::env::var_os("UPDATE_EXAMPLES").is_some();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/openapi/examples.json");
    let mut written: Vec<Value> = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let mut token = String::new();
    for (example, written) in examples().iter().zip(&mut written) {
        let operation = &example.operation;
        let answer = call(&admin, &token, example, &names).await;
        assert_eq!(answer.status, 200, "{operation}: {}", answer.text);
        let answer = answer.json.unwrap_or_else(|| answer.text.into());
        if !BARE.contains(&operation.as_str()) {
            assert_eq!(answer["code"], 200, "{operation}: {answer}");
        }
        for (place, shown) in &example.bind {
            let found = answer.pointer(place).and_then(Value::as_str);
            let found = found.unwrap_or_else(|| panic!("{operation}: no {place} in {answer}"));
            names.bind(shown, found);
            if place == "/data/token" {
                found.clone_into(&mut token);
            }
        }
        let answer = names.show(answer);
        if update {
            written["answer"] = answer;
        } else {
            assert_eq!(example.answer, answer, "{operation}: run with UPDATE_EXAMPLES=1 if meant");
        }
    }
    if update {
        let text = serde_json::to_string_pretty(&written).unwrap();
        fs::write(&file, text + "\n").unwrap();
    }
    admin.stop().await;
}

/// Every operation has them, and every body.
#[test]
fn every_operation_has_its_examples() {
    let document = serde_json::to_value(openapi::document(&api::routes())).unwrap();
    let mut without = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let has = |content: &Value| {
                content.as_object().unwrap().values().all(|one| one.get("example").is_some())
            };
            let answer = has(&operation["responses"]["200"]["content"]);
            let body = operation.get("requestBody").is_none_or(|body| has(&body["content"]));
            if !(answer && body) {
                without.push(format!("{method} {path}"));
            }
        }
    }
    assert_eq!(without, WITHOUT);
}
