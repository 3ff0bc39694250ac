//! What is explained of a request is what the driver makes of it.

use bytes::Bytes;
use http::HeaderMap;

use super::harness::Harness;
use crate::explain::{Ending, Explanation, Options, Request, State, Step, explain};

fn explained(harness: &Harness, method: &str, path: &str) -> Explanation {
    let mut headers = HeaderMap::new();
    headers.insert("host", "h".parse().unwrap());
    headers.insert("content-length", "0".parse().unwrap());
    let request = Request {
        method: method.parse().unwrap(),
        uri: path.parse().unwrap(),
        headers,
        body: Bytes::new(),
        peer: "127.0.0.1".parse().unwrap(),
        expect: None,
        remarks: Vec::new(),
    };
    let options = Options::new(|| 0, tokio::runtime::Handle::current());
    explain(&harness.publisher, &options, &request).unwrap()
}

fn step<'e>(explanation: &'e Explanation, plugin: &str) -> &'e Step {
    let steps = explanation.way.steps.iter();
    let mut of_plugin = steps.filter(|step| step.plugin == plugin);
    of_plugin.next_back().unwrap_or_else(|| panic!("{plugin}: {explanation:#?}"))
}

#[tokio::test]
async fn outcomes_are_those_of_the_driver() {
    let plugins: [&[(&'static str, &'static str)]; 6] = [
        &[],
        &[("guard", "{}")],
        &[("canned", "{}"), ("header-edit", "{}")],
        &[("mover", "{}"), ("guard", "{}")],
        &[("slow-call", "{}"), ("counter", "{}")],
        &[("header-edit", "{}"), ("retry-around", "{}"), ("body-rewrite", "{}")],
    ];
    let (mut forwarded, mut refused, mut answered) = (0, 0, 0);
    for plugins in plugins {
        let harness = Harness::with(plugins);
        for path in [
            "/a",
            "/unmatched/a",
            "/internal/a",
            "/%69nternal/a",
            "//internal/a;x",
            "/moved/internal/a",
            "/moved/%69nternal/a?b=1",
        ] {
            let told = explained(&harness, "GET", path);
            assert!(harness.upstream.heads().is_empty(), "{path}: nothing is sent");
            assert_eq!(harness.watch.held(), 0);
            assert!(harness.watch.completions().is_empty());
            let (status, ..) = harness.get(path).await;
            let outcome = &told.way.outcome;
            let sent = harness.upstream.heads();
            match outcome.ending {
                Ending::Forwarded => {
                    assert_eq!(
                        (status, sent.len()),
                        (http::StatusCode::OK, 1),
                        "{plugins:?} {path}"
                    );
                    let request = told.way.request.as_ref().unwrap();
                    assert_eq!(request.url, format!("http://127.0.0.1:9{}", sent[0].uri));
                    let lines = sent[0].headers.iter();
                    let mut lines: Vec<(&str, &str)> = lines
                        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
                        .collect();
                    let told = request.headers.iter();
                    let mut told: Vec<(&str, &str)> =
                        told.map(|line| (line.name.as_str(), line.value.as_str())).collect();
                    // The rewritten body has another length.
                    lines.retain(|(name, _)| *name != "content-length");
                    told.retain(|(name, _)| *name != "content-length");
                    lines.sort_unstable();
                    told.sort_unstable();
                    assert_eq!(told, lines, "{plugins:?} {path}");
                    forwarded += 1;
                }
                Ending::Answered | Ending::Refused => {
                    assert_eq!(outcome.status, Some(status.as_u16()), "{plugins:?} {path}");
                    assert!(sent.is_empty() && told.way.request.is_none());
                    refused += u32::from(outcome.ending == Ending::Refused);
                    answered += u32::from(outcome.ending == Ending::Answered);
                }
            }
            harness.upstream.forget();
            harness.watch.forget();
        }
    }
    assert!(forwarded > 10 && refused > 5 && answered > 5, "{forwarded} {refused} {answered}");
}

#[tokio::test]
async fn a_guard_is_asked_for_both_forms_of_a_path() {
    let harness = Harness::new("guard", "{}");
    let told = explained(&harness, "GET", "/%69nternal/a");
    let of_guard: Vec<&Step> =
        told.way.steps.iter().filter(|step| step.plugin == "guard").collect();
    let seen: Vec<_> = of_guard
        .iter()
        .map(|step| (step.state, step.canonical, step.path.as_deref(), step.ends))
        .collect();
    assert_eq!(
        seen,
        [
            (State::NoSelector, false, Some("/%69nternal/a"), false),
            (State::Matched, true, Some("/internal/a"), true),
        ]
    );
    assert_eq!(told.way.outcome.reason, Some("plugin_refused"));
    assert_eq!(of_guard[1].effect, "runs guard; refuses the request: not for you");
    let proxy = step(&told, "proxy");
    assert_eq!((proxy.state, proxy.ends), (State::NotReached, false));
    assert_eq!(proxy.effect, "the request ends before, at guard");
}

#[tokio::test]
async fn later_plugins_see_what_earlier_ones_did_and_calls_are_named_not_made() {
    let harness = Harness::with(&[("mover", "{}"), ("slow-call", r#"{"millis":60000}"#)]);
    let told = explained(&harness, "GET", "/moved/a?b=1");
    assert_eq!(step(&told, "mover").path.as_deref(), Some("/moved/a"));
    assert_eq!(step(&told, "proxy").path.as_deref(), Some("/a"));
    assert_eq!(step(&told, "slow-call").external, ["an external service"]);
    assert_eq!(told.way.request.unwrap().url, "http://127.0.0.1:9/a?b=1");
    assert_eq!(told.way.upstreams.len(), 1);
    // The path rules stand before everything.
    let told = explained(&harness, "GET", "/a/..;/b");
    assert_eq!(told.way.outcome.reason, Some("bad_path"));
    assert_eq!(step(&told, "pathRules").state, State::Edge);
    assert!(told.way.steps.iter().skip(1).all(|step| step.state == State::NotReached));
}
