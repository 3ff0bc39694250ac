//! Objects of a stock sequence that cannot be read: what was known of them stays.

use std::time::Duration;

use crate::fake_admin::{FakeAdmin, Manners};
use crate::support::{LIMIT, gateway, get, stop, until, upstream};

const STANDALONE: &str = r#"{"eventType":"RUNNING_MODE","runningMode":"STANDALONE","isMaster":true,"masterUrl":"/websocket"}"#;

fn frame(group: &str, data: &[String]) -> String {
    format!(r#"{{"groupType":"{group}","eventType":"MYSELF","data":[{}]}}"#, data.join(","))
}

fn rule(name: &str, sort: &str) -> String {
    format!(
        r#"{{"id":"{name}","name":"{name}","pluginName":"divide","selectorId":"s","matchMode":0,"sort":{sort},"enabled":true,"loged":false,"handle":"{{}}","conditionDataList":[{{"paramType":"uri","operator":"startsWith","paramName":"/","paramValue":"/{name}"}}]}}"#
    )
}

/// One selector for everything, and the given rules.
fn sequence(upstream: &str, rules: &[String]) -> Vec<String> {
    let plugin =
        r#"{"id":"5","name":"divide","config":"","role":"Proxy","enabled":true,"sort":200}"#;
    let selector = r#"{"id":"s","pluginName":"divide","name":"s","matchMode":0,"type":1,"sort":1,"enabled":true,"logged":false,"continued":true,"handle":"","conditionList":[{"paramType":"uri","operator":"match","paramName":"/","paramValue":"/**"}]}"#;
    vec![
        frame("PLUGIN", &[plugin.to_owned()]),
        frame("SELECTOR", &[selector.to_owned()]),
        frame("RULE", rules),
        format!(
            r#"{{"groupType":"DISCOVER_UPSTREAM","eventType":"UPDATE","data":[{{"selectorId":"s","pluginName":"divide","selectorName":"s","upstreamDataList":[{{"id":"u1","protocol":"http://","url":"{upstream}","status":0,"weight":50,"props":"{{}}"}}]}}]}}"#
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreadable_rule_of_a_refresh_stays_as_it_was_and_the_others_count() {
    let origin = upstream("U1");
    let address = origin.addr().to_string();
    let manners = |rules: &[String]| Manners {
        running_mode: vec![STANDALONE.into()],
        sequence: sequence(&address, rules),
        ..Manners::default()
    };
    let admin = FakeAdmin::start(manners(&[rule("a", "1"), rule("b", "2")])).await;
    let yaml = format!(
        "  sync:\n    websocket:\n      urls: {}\n      reconnectInterval: 100\n",
        admin.url()
    );
    let gateway = gateway(&yaml).await;
    until(&gateway, |ready, _| ready).await;
    let served = async |path: &str| get(&gateway, path).await.upstream.is_some();
    assert!(served("/a").await && served("/b").await && !served("/c").await);

    // `b` cannot be read, `c` is new, `a` is gone.
    admin.behave(manners(&[rule("b", "7.5"), rule("c", "3")]));
    admin.close(1000);
    let in_force = async {
        while !served("/c").await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(LIMIT, in_force).await;
    assert!(waited.is_ok(), "what can be read of the frame is in force");
    assert!(served("/b").await, "what cannot be read stays as it was");
    assert!(!served("/a").await, "what is gone is gone");
    stop(gateway).await;
}
