//! A plain proxy route, as a scripted admin sends it.

use crate::fake_admin::Manners;

const RUNNING_MODE: &str = r#"{"eventType":"RUNNING_MODE","runningMode":"STANDALONE","isMaster":true,"masterUrl":"/websocket"}"#;

/// An admin that sends everything to one upstream, with the rule's settings of a new rule.
pub(crate) fn routed(upstream: &str) -> Manners {
    routed_by(upstream, r#"{"loadBalance":"roundRobin","retry":0,"timeout":3000}"#)
}

/// An admin that sends everything to upstreams (host:port, by commas) with this rule handle.
pub(crate) fn routed_by(upstreams: &str, handle: &str) -> Manners {
    let sequence = objects("divide", "/", upstreams, handle);
    Manners { running_mode: vec![RUNNING_MODE.into()], sequence, ..Manners::default() }
}

/// The frames for one plugin: a selector and a rule on paths that begin so.
pub(crate) fn objects(plugin: &str, start: &str, upstreams: &str, handle: &str) -> Vec<String> {
    let condition = serde_json::json!([
        {"paramType": "uri", "operator": "startsWith", "paramName": "/", "paramValue": start}
    ]);
    let list: Vec<serde_json::Value> = upstreams
        .split(',')
        .filter(|url| !url.is_empty())
        .map(|url| {
            serde_json::json!({"protocol": "http://", "url": url, "status": 0, "weight": 50, "props": "{\"warmup\":\"0\"}"})
        })
        .collect();
    let frame = |group: &str, event: &str, object: serde_json::Value| {
        serde_json::json!({"groupType": group, "eventType": event, "data": [object]}).to_string()
    };
    let (selector, rule) = (format!("s-{plugin}"), format!("r-{plugin}"));
    vec![
        frame(
            "PLUGIN",
            "MYSELF",
            serde_json::json!({"id": plugin, "name": plugin, "role": "Proxy", "enabled": true, "pluginJar": ""}),
        ),
        frame(
            "SELECTOR",
            "MYSELF",
            serde_json::json!({"id": selector, "pluginName": plugin, "name": "s", "matchMode": 0, "type": 1, "sort": 1,
                "enabled": true, "logged": false, "continued": true, "handle": "", "conditionList": condition}),
        ),
        frame(
            "RULE",
            "MYSELF",
            serde_json::json!({"id": rule, "name": "r", "pluginName": plugin, "selectorId": selector, "matchMode": 0,
                "sort": 1, "enabled": true, "loged": false, "handle": handle, "conditionDataList": condition}),
        ),
        frame(
            "DISCOVER_UPSTREAM",
            "UPDATE",
            serde_json::json!({"selectorId": selector, "pluginName": plugin, "selectorName": "s", "upstreamDataList": list}),
        ),
    ]
}
