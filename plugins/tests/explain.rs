//! What is explained of requests, with the plugins of this build: whole answers, word for word.

use std::path::PathBuf;
use std::sync::Arc;

use longmen_core::explain::{Explanation, Options, explain, read};
use longmen_core::model::{Plugin, Rule, Selector, Upstream, UpstreamList};
use longmen_core::snapshot::{Position, Publisher, PublisherOptions, SnapshotStore};
use longmen_core::sync::{Event, Frame, Payload};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::runtime::Handle;

/// 2026-11-30 12:00:00 UTC.
const NOON: i64 = 1_796_040_000_000;

fn of<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn condition(param: &str, operator: &str, name: &str, value: &str) -> Value {
    json!({"paramType": param, "operator": operator, "paramName": name, "paramValue": value})
}

fn on(path: &str) -> Value {
    condition("uri", "match", "/", path)
}

/// What is configured.
#[derive(Default)]
struct Config(Vec<Frame>);

impl Config {
    fn put(&mut self, payload: Payload) {
        self.0.push(Frame { event: Event::Update, payload, mark: None });
    }

    fn plugin(&mut self, name: &str, role: &str, enabled: bool) {
        let plugin: Plugin = of(json!({"name": name, "role": role, "enabled": enabled}));
        self.put(Payload::Plugin(vec![plugin]));
    }

    fn selector(&mut self, plugin: &str, id: &str, more: &Value, conditions: &[Value]) {
        let mut selector = json!({"id": id, "pluginName": plugin, "name": format!("{id} name"),
            "type": 1, "matchMode": 0, "sort": 10, "enabled": true, "continued": true,
            "conditionList": conditions});
        for (name, value) in more.as_object().unwrap() {
            selector[name] = value.clone();
        }
        self.put(Payload::Selector(vec![of::<Selector>(selector)]));
    }

    fn rule(&mut self, selector: &str, id: &str, plugin: &str, handle: &Value, all: &[Value]) {
        let rule: Rule = of(json!({"id": id, "selectorId": selector, "pluginName": plugin,
            "name": format!("{id} name"), "matchMode": 0, "sort": 10, "enabled": true,
            "handle": handle.to_string(), "conditionDataList": all}));
        self.put(Payload::Rule(vec![rule]));
    }

    fn upstreams(&mut self, selector: &str, all: &[(&str, i32, i32)]) {
        let upstream = |(url, weight, status): &(&str, i32, i32)| -> Upstream {
            let props = r#"{"warmup":"0"}"#;
            of(json!({"url": url, "weight": weight, "status": status, "props": props}))
        };
        let list = UpstreamList {
            selector_id: selector.to_owned(),
            plugin_name: "divide".to_owned(),
            upstream_data_list: Some(all.iter().map(upstream).collect()),
            ..UpstreamList::default()
        };
        self.put(Payload::DiscoverUpstream(vec![list]));
    }

    fn publish(self) -> Publisher {
        let store = Arc::new(SnapshotStore::new());
        let mut publisher =
            Publisher::new(store, longmen_plugins::registry(), PublisherOptions::default());
        let position = Position { epoch: "e".to_owned(), version: 1289 };
        publisher.replace(&self.0, position, |_, _| {});
        publisher
    }
}

/// A shop: a prefix that is cut off, two versions by a header, a guard that this build lacks.
fn shop() -> Config {
    let mut config = Config::default();
    for (name, role, enabled) in [
        ("sign", "Authentication", true),
        ("waf", "HttpProcess", false),
        ("contextPath", "HttpProcess", true),
        ("mock", "Mock", true),
        ("divide", "Proxy", true),
    ] {
        config.plugin(name, role, enabled);
    }
    config.selector("sign", "sign-admin", &json!({}), &[on("/admin/**")]);
    config.selector("contextPath", "cut", &json!({}), &[on("/shop/**")]);
    let cut = json!({"contextPath": "/shop"});
    config.rule("cut", "cut-rule", "contextPath", &cut, &[on("/shop/**")]);
    let canary = condition("header", "=", "X-Canary", "1");
    config.selector("divide", "v2", &json!({}), &[on("/shop/pay/**"), canary]);
    config.selector("divide", "off", &json!({"enabled": false}), &[on("/shop/**")]);
    config.selector("divide", "v1", &json!({}), &[on("/shop/orders/**")]);
    for (selector, rule) in [("v2", "v2-rule"), ("off", "off-rule"), ("v1", "v1-rule")] {
        let handle = json!({"loadBalance": "random", "retry": 1, "timeout": 1000});
        config.rule(selector, rule, "divide", &handle, &[on("/shop/**")]);
    }
    config
        .upstreams("v1", &[("10.0.0.1:80", 30, 0), ("10.0.0.2:80", 10, 0), ("10.0.0.3:80", 5, 1)]);
    config.upstreams("v2", &[]);
    config
}

fn ask(publisher: &Publisher, question: &Value) -> Explanation {
    let options = Options::new(|| NOON, Handle::current());
    let question = question.to_string();
    let request = read(question.as_bytes(), "127.0.0.1".parse().unwrap());
    explain(publisher, &options, &request.unwrap()).unwrap()
}

/// Compares a whole answer with the file of that name; where it differs, what is there now is written
/// beside the test's target for a look.
fn check(name: &str, publisher: &Publisher, question: &Value) {
    let mut answer = serde_json::to_value(ask(publisher, question)).unwrap();
    answer["elapsedUs"] = json!(0);
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/explain");
    let expected = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap_or_default();
    let expected: Value = serde_json::from_str(&expected).unwrap_or_default();
    if answer != expected {
        let found = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.json"));
        std::fs::write(&found, serde_json::to_string_pretty(&answer).unwrap() + "\n").unwrap();
        panic!("{name}: the answer is another one, see {}", found.display());
    }
}

#[tokio::test]
async fn a_request_that_is_forwarded() {
    let line = "curl http://gw/shop/orders/7?token=t -H 'Authorization: Bearer x' -b s=1";
    check("forwarded", &shop().publish(), &json!({"curl": line}));
}

#[tokio::test]
async fn a_request_that_no_selector_takes() {
    let question = json!({"method": "POST", "url": "http://gw/shop/pay/1",
        "headers": {"X-Canary": "2"}, "expect": {"ruleId": "v2-rule"}});
    check("no-selector", &shop().publish(), &question);
}

#[tokio::test]
async fn a_request_that_a_missing_guard_was_meant_for() {
    check(
        "missing-guard",
        &shop().publish(),
        &json!({"url": "/%61dmin/x", "clientIp": "10.1.2.3"}),
    );
}

#[tokio::test]
async fn a_request_without_an_upstream_that_could_be_chosen() {
    let question = json!({"url": "http://gw/shop/pay/1", "headers": {"X-Canary": "1"},
        "expect": {"selectorId": "v1"}});
    check("no-upstream", &shop().publish(), &question);
}

#[tokio::test]
async fn chance_is_told_with_both_branches() {
    let mut config = Config::default();
    for (name, role) in
        [("contextPath", "HttpProcess"), ("rewrite", "HttpProcess"), ("divide", "Proxy")]
    {
        config.plugin(name, role, true);
    }
    let handle = json!({"contextPath": "/a", "rewriteContextPath": "/b", "percentage": 20});
    config.selector("contextPath", "cut", &json!({"type": 0}), &[]);
    config.rule("cut", "cut-rule", "contextPath", &handle, &[]);
    config.selector("rewrite", "write", &json!({"type": 0}), &[]);
    let handle = json!({"regex": "/x", "replace": "/y", "percentage": 90});
    config.rule("write", "write-rule", "rewrite", &handle, &[]);
    config.selector("divide", "of-a", &json!({}), &[on("/a/**")]);
    config.selector("divide", "of-b", &json!({"continued": false}), &[on("/b/**")]);
    config.rule("of-a", "of-a-rule", "divide", &json!({"loadBalance": "hash"}), &[]);
    config.upstreams("of-a", &[("10.0.0.1:80", 1, 0), ("10.0.0.2:80", 1, 0)]);
    config.upstreams("of-b", &[("10.0.0.9:80", 1, 0)]);
    let publisher = config.publish();
    let told = ask(&publisher, &json!({"url": "/a/x", "headers": {"Host": "gw"}}));
    let ways: Vec<(f64, &str, Option<&str>)> = std::iter::once(&told.way)
        .chain(&told.ways)
        .map(|way| {
            let sent = way.request.as_ref().map(|request| request.url.as_str());
            (way.chance.unwrap(), way.decided[0].as_str(), sent)
        })
        .collect();
    let as_came = "later plugins match on the path as it came";
    let instead = "later plugins match on \"/b\" and the rest of the path";
    // By the hash of the client's address.
    let of_a = told.way.request.as_ref().unwrap().url.strip_suffix("/a/y").unwrap().to_owned();
    assert_eq!(
        ways,
        [
            (72.0, as_came, Some(format!("{of_a}/a/y").as_str())),
            (18.0, instead, Some("http://10.0.0.9:80/b/y")),
            (8.0, as_came, Some(format!("{of_a}/x").as_str())),
            (2.0, instead, Some("http://10.0.0.9:80/x")),
        ]
    );
    let total: f64 = ways.iter().map(|(chance, ..)| chance).sum();
    assert!((total - 100.0).abs() < 1e-9);
}

#[tokio::test]
async fn limits_of_a_rule_and_odd_cases_of_selectors() {
    let mut config = Config::default();
    config.plugin("divide", "Proxy", true);
    config.plugin("websocket", "Proxy", true);
    config.selector("divide", "full", &json!({"type": 0}), &[on("/nowhere")]);
    let handle = json!({"requestMaxSize": 3});
    config.rule("full", "first", "divide", &handle, &[on("/here/**")]);
    config.rule("full", "last", "divide", &handle, &[on("/nowhere")]);
    config.upstreams("full", &[("10.0.0.1:80", 1, 0)]);
    let publisher = config.publish();
    let told = ask(
        &publisher,
        &json!({"curl": "curl gw/here/1 -d 1234",
        "expect": {"ruleId": "first"}}),
    );
    let outcome = &told.way.outcome;
    assert_eq!((outcome.status, outcome.reason), (Some(413), Some("body_too_large")));
    assert_eq!(told.way.steps[0].rule.as_ref().unwrap().id, "last");
    let expected = told.expected.unwrap();
    assert!(!expected.taken && expected.why.contains("its last rule by sort"), "{expected:?}");
    let told = ask(&publisher, &json!({"curl": "curl gw/here/1 -d 123"}));
    assert_eq!(told.way.outcome.text, "goes to http://10.0.0.1:80");
    // Half a handshake.
    let upgrade = json!({"url": "/a", "headers": {"Host": "gw", "Upgrade": "websocket"}});
    let told = ask(&publisher, &upgrade);
    assert_eq!(told.way.outcome.reason, Some("bad_request"), "{told:#?}");
    // A whole one, that no selector of the plugin takes.
    let upgrade = json!({"url": "/a", "headers": {"Host": "gw", "Upgrade": "websocket",
        "Connection": "Upgrade", "Sec-WebSocket-Version": 13,
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}});
    let told = ask(&publisher, &upgrade);
    assert_eq!(told.protocol, "websocket");
    assert_eq!(told.way.outcome.code, Some(-107));
}

#[tokio::test]
async fn secrets_are_nowhere_in_an_answer() {
    let mut config = shop();
    for (param, name) in [
        ("header", "Authorization"),
        ("header", "X-Api-Key"),
        ("cookie", "sid"),
        ("query", "access_token"),
    ] {
        let asked = [on("/shop/orders/**"), condition(param, "=", name, "configured-secret")];
        config.selector("divide", &format!("by-{name}"), &json!({}), &asked);
    }
    let line = "curl 'http://gw/shop/orders/1?access_token=sent-secret&a=1' \
        -H 'Authorization: Bearer sent-secret' -H 'X-Api-Key: sent-secret' -b 'sid=sent-secret' \
        -H 'appKey: sent-secret' -H 'X-Session: sent-secret'";
    let told = ask(&config.publish(), &json!({"curl": line}));
    let text = serde_json::to_string(&told).unwrap();
    assert!(!text.contains("sent-secret") && !text.contains("configured-secret"), "{text}");
    assert!(text.contains("access_token=******&a=1"), "{text}");
    assert_eq!(told.way.steps.last().unwrap().candidates.len(), 8);
}

#[tokio::test]
async fn questions_that_cannot_be_read_name_member_value_and_expectation() {
    let peer = "127.0.0.1".parse().unwrap();
    for (question, expected) in [
        ("{", "request body: EOF while parsing an object at line 1 column 1 is not a JSON object"),
        ("[]", "request body: [] is not a JSON object"),
        (
            "{}",
            "url: nothing is not an address such as http://host/path, or a curl line in the member \
             curl",
        ),
        (
            r#"{"uri":"/a"}"#,
            "uri: \"/a\" is not a member of a question, which are curl, method, url, headers, body, \
             clientIp or expect",
        ),
        (r#"{"url":7}"#, "url: 7 is not a text"),
        (
            r#"{"curl":"curl gw","method":"GET"}"#,
            "method: \"GET\" is not to be given beside curl, which says it already",
        ),
        (r#"{"url":"/a","method":"GE T"}"#, "method: GE T is not a method such as GET"),
        (
            r#"{"url":"/a","clientIp":"10.0.0.1:80"}"#,
            "clientIp: 10.0.0.1:80 is not an IPv4 or IPv6 address without a port",
        ),
        (r#"{"url":"/a","headers":{"X":{}}}"#, "headers.X: {} is not a text or a list of texts"),
        (r#"{"url":"/a","headers":{"X Y":"1"}}"#, "headers.X Y: X Y is not the name of a header"),
        (
            r#"{"url":"/a","headers":[{"name":"X"}]}"#,
            "headers[0]: {\"name\":\"X\"} is not an object with the texts name and value",
        ),
        (r#"{"url":"/a","expect":{"ruleId":""}}"#, "expect.ruleId: \"\" is not an id"),
        (r#"{"url":"/a","expect":{"rule":"1"}}"#, "expect.rule: \"1\" is not ruleId or selectorId"),
    ] {
        let fault = read(question.as_bytes(), peer).unwrap_err();
        assert_eq!(fault.to_string(), expected, "{question}");
    }
    let question = json!({"url": "/a", "expect": {"selectorId": "none"}}).to_string();
    let request = read(question.as_bytes(), peer).unwrap();
    let options = Options::new(|| NOON, Handle::current());
    let fault = explain(&shop().publish(), &options, &request).unwrap_err();
    let expected = "expect.selectorId: none is not the id of a selector of this configuration";
    assert_eq!(fault.to_string(), expected);
}
