//! The recorded talk between a stock gateway and its admin, with ours in the gateway's place.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::scripted::{Asked, Scripted};
use super::{eventually, is_gone, polling, served_by};
use crate::support::{get, recording, stop, upstream};

/// The page in `docs` that shows what differs.
const PAGE: &str = "../docs/golden-polling-gateway.md";

/// Headers that ours leaves out or adds, and why.
const ON_PURPOSE: &[(&str, &str)] = &[
    ("accept-encoding", "answers are not asked for in compressed form"),
    ("user-agent", "a gateway of Longmen is not `okhttp`"),
    ("connection", "HTTP/1.1 keeps connections without being told"),
    ("x-longmen-sync", "asks our admin for the version of its answers; a stock one ignores it"),
    ("x-longmen-gateway", "names the process, so that admins tell it from its predecessor"),
];

/// Headers whose values are compared.
const COMPARED: [&str; 3] = ["content-type", "content-length", "x-access-token"];

/// A target without its times.
fn timeless(target: &str) -> String {
    let pairs = target.split('&').map(|pair| match pair.rsplit_once(',') {
        Some((rest, time))
            if !time.is_empty() && time.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            format!("{rest},<ms>")
        }
        _ => pair.to_owned(),
    });
    pairs.collect::<Vec<_>>().join("&")
}

/// The times of a question, group by group.
fn times(target: &str) -> Vec<i64> {
    let pairs = target.split('&').filter_map(|pair| pair.rsplit_once(','));
    pairs.map(|(_, time)| time.parse().unwrap()).collect()
}

/// What was compared.
#[derive(Default)]
struct Seen {
    requests: usize,
    alike: usize,
    differing: std::collections::BTreeSet<String>,
}

impl Seen {
    fn compare(&mut self, number: usize, recorded: &Value, asked: &Asked) {
        self.requests += 1;
        let path = recorded["path"].as_str().unwrap();
        assert_eq!(asked.method, recorded["method"].as_str().unwrap(), "line {number}");
        assert_eq!(timeless(&asked.target), timeless(path), "line {number}");
        let theirs = recorded["headers"].as_object().unwrap();
        let theirs = |name: &str| {
            let found = theirs.iter().find(|(known, _)| known.to_lowercase() == name);
            found.and_then(|(_, value)| value.as_str())
        };
        for name in COMPARED {
            let wanted = theirs(name).map(|value| value.replace("<token>", "recorded-token"));
            assert_eq!(asked.headers.get(name), wanted.as_ref(), "line {number}: {name}");
        }
        let names = recorded["headers"].as_object().unwrap().keys().map(|name| name.to_lowercase());
        let missing = names.filter(|name| !asked.headers.contains_key(name));
        let added = asked.headers.keys().filter(|name| theirs(name).is_none()).cloned();
        self.differing.extend(missing.chain(added));
        self.alike += 1;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_recorded_answers_of_a_stock_admin_are_taken_in() {
    let origin = upstream("U1");
    let mut admin = Scripted::start().await;
    let gateway = polling(&admin.url(), "").await;
    let mut seen = Seen::default();
    let mut clock = 1_753_000_000_000_i64;
    // The first line is by hand, to see that the proxy works.
    let lines = recording("http-polling/gateway.jsonl");
    for (line, number) in lines.iter().zip(1..).skip(1) {
        let asked = admin.next().await;
        seen.compare(number, &line["request"], &asked);
        if asked.target.starts_with("/configs/listener") {
            assert!(times(&asked.target).iter().all(|time| (1..=clock).contains(time)));
            assert_eq!(asked.headers["x-real-port"], gateway.address.port().to_string());
            let info: Value =
                serde_json::from_str(&asked.headers["bootstrapinstanceinfo"]).unwrap();
            let recorded = &line["request"]["headers"]["bootstrapInstanceInfo"];
            let recorded: Value = serde_json::from_str(recorded.as_str().unwrap()).unwrap();
            let names = |of: &Value| -> Vec<String> {
                let mut names: Vec<_> = of.as_object().unwrap().keys().cloned().collect();
                names.sort();
                names
            };
            assert_eq!(names(&info), names(&recorded));
        }
        match number {
            // What is asked now follows from what was put in force before.
            13 => {
                eventually(&gateway, "/followed/x", served_by("U1")).await;
            }
            17 => {
                eventually(&gateway, "/followed/x", is_gone).await;
            }
            _ => {}
        }
        clock += 1000;
        let response = &line["response"];
        let body = response["body"].as_str().unwrap();
        let body = body
            .replace("<token>", "recorded-token")
            .replace("<ms>", &clock.to_string())
            .replace("127.0.0.1:9481", &origin.addr().to_string());
        let status = u16::try_from(response["status"].as_u64().unwrap()).unwrap();
        asked.answer(status, response["contentType"].as_str().unwrap(), &body);
    }
    assert_eq!(seen.requests, lines.len() - 1);
    let expected: Vec<&str> = ON_PURPOSE.iter().map(|(name, _)| *name).collect();
    let mut found: Vec<&str> = seen.differing.iter().map(String::as_str).collect();
    found.sort_by_key(|name| expected.iter().position(|known| known == name));
    assert_eq!(found, expected);
    check_page(&page(&seen));
    stop(gateway).await;
}

/// Answers that say no: none may pass for "nothing has changed", and none may make the gateway ask
/// again without a pause.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_refusals_are_not_taken_for_no_change() {
    let origin = upstream("U1");
    let mut admin = Scripted::start().await;
    let gateway = polling(&admin.url(), "").await;
    admin.let_in("first").await;
    admin.next().await.json(&super::failing::everything(&origin.addr().to_string(), 1));
    let lines = recording("http-polling/fetch-and-listen.jsonl");
    let refusals: Vec<&Value> = lines
        .iter()
        .filter(|line| line["id"] != "websocket-off" && line["body"]["data"].is_null())
        .filter(|line| line["request"]["path"].as_str().unwrap().starts_with("/configs/"))
        .filter(|line| line["body"].is_object())
        .collect();
    assert!(refusals.len() >= 7, "only {} refusals are recorded", refusals.len());
    for refusal in refusals {
        let asked = admin.next().await;
        assert!(asked.target.starts_with("/configs/listener?"), "{}", asked.target);
        let status = u16::try_from(refusal["status"].as_u64().unwrap()).unwrap();
        asked.json_with(status, &refusal["body"].to_string());
        if status == 401 {
            // Logged in again at once, and asked again with the new token.
            admin.let_in("second").await;
            let asked = admin.next().await;
            assert_eq!(asked.headers["x-access-token"], "second");
            asked.json_with(503, "{}");
        }
    }
    assert!(served_by("U1")(&get(&gateway, "/polled/x").await), "what was in force stays");
    stop(gateway).await;
}

impl Asked {
    fn json_with(self, status: u16, body: &str) {
        self.answer(status, "application/json", body);
    }
}

/// The page must say what the run found. `UPDATE_GOLDEN_COVERAGE=1` writes it.
fn check_page(page: &str) {
    if std::env::var_os("GOLDEN_DIR").is_some() {
        return;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    if std::env::var_os("UPDATE_GOLDEN_COVERAGE").is_some() {
        fs::write(&path, page).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(stored, page, "{PAGE} is old: run the test with UPDATE_GOLDEN_COVERAGE=1");
}

fn page(seen: &Seen) -> String {
    let mut page = "# Recordings of polling, the gateway's side\n\n\
        Written by the test `polling::recorded`, in which our gateway polls a scripted admin that gives the \
        recorded answers of a\nstock one, byte for byte but for times and the address of the upstream. Every \
        request must be the one that a stock\ngateway sent at that point, and what it was told must be in \
        force. The refusals of `fetch-and-listen.jsonl` are answered\nto questions: none may pass for \"nothing \
        has changed\". The other side: [golden-polling.md](golden-polling.md).\n\n\
        | recording | requests | alike |\n|---|---|---|\n"
        .to_owned();
    let _ = writeln!(page, "| `gateway.jsonl` | {} | {} |", seen.requests, seen.alike);
    page.push_str("\nHeaders that differ on purpose, all others are the same:\n\n| header | why |\n|---|---|\n");
    for (name, why) in ON_PURPOSE {
        let _ = writeln!(page, "| `{name}` | {why} |");
    }
    page.push_str(
        "\nAfter an answer that brings nothing new (`PROXY_SELECTOR`, whose list is and stays empty) a stock \
         gateway pauses five\nseconds; ours 100 ms, and longer only if that goes on.\n",
    );
    page
}
