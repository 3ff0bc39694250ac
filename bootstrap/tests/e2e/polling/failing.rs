//! Admins that fail, and gateways that end.

use std::time::{Duration, Instant};

use longmen_core::model::DEFAULT_NAMESPACE;
use longmen_core::sync::Group;
use serde_json::{Value, json};

use super::scripted::Scripted;
use super::{eventually, polling, served_by};
use crate::support::{get, stop, upstream};

/// A fetch of everything: `/polled/**` goes to the upstream. The digests are the time.
pub(super) fn everything(upstream: &str, time: i64) -> String {
    let condition = json!([{"paramType": "uri", "operator": "startsWith", "paramName": "/", "paramValue": "/polled/"}]);
    let of = |group: Group| match group {
        Group::Plugin => json!([{"id": "5", "name": "divide", "role": "Proxy", "enabled": true,
            "sort": 200, "namespaceId": DEFAULT_NAMESPACE}]),
        Group::Selector => json!([
            {"id": "s", "pluginName": "divide", "name": "s", "matchMode": 0, "type": 1, "sort": 2,
             "enabled": true, "logged": false, "continued": true, "handle": "",
             "conditionList": condition, "namespaceId": DEFAULT_NAMESPACE},
            // A stock admin hands out those of all namespaces.
            {"id": "f", "pluginName": "divide", "name": "f", "matchMode": 0, "type": 1, "sort": 1,
             "enabled": true, "logged": false, "continued": false, "handle": "",
             "conditionList": condition, "namespaceId": "another"}]),
        Group::Rule => json!([{"id": "r", "pluginName": "divide", "selectorId": "s", "name": "r",
            "matchMode": 0, "sort": 1, "enabled": true, "loged": false,
            "handle": "{\"timeout\":3000}", "conditionDataList": condition,
            "namespaceId": DEFAULT_NAMESPACE}]),
        Group::DiscoverUpstream => json!([{"selectorId": "s", "pluginName": "divide",
            "selectorName": "s", "upstreamDataList": [{"id": "u", "protocol": "http://",
            "url": upstream, "status": 0, "weight": 50, "props": "{}", "namespaceId": null}],
            "namespaceId": null}]),
        _ => json!([]),
    };
    let mut data = serde_json::Map::new();
    for group in Group::ALL {
        let value = json!({"md5": time.to_string(), "lastModifyTime": time, "data": of(group)});
        data.insert(group.name().to_owned(), value);
    }
    json!({"code": 200, "message": "success", "data": Value::Object(data)}).to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_admin_does_not_keep_the_gateway_from_the_other() {
    let origin = upstream("U1");
    let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nowhere = dead.local_addr().unwrap();
    drop(dead);
    let mut admin = Scripted::start().await;
    let gateway = polling(&format!("http://{nowhere},{}", admin.url()), "").await;
    admin.let_in("t").await;
    admin.next().await.json(&everything(&origin.addr().to_string(), 1));
    eventually(&gateway, "/polled/x", served_by("U1")).await;
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_while_a_question_is_held_is_quick() {
    let origin = upstream("U1");
    let mut admin = Scripted::start().await;
    let gateway = polling(&admin.url(), "").await;
    admin.let_in("t").await;
    admin.next().await.json(&everything(&origin.addr().to_string(), 1));
    let held = admin.next().await;
    assert!(held.target.starts_with("/configs/listener?"));
    let begun = Instant::now();
    stop(gateway).await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

/// An answer larger than allowed, one that is cut off, and one that is no JSON.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_cannot_be_taken_leave_what_is_in_force() {
    let origin = upstream("U1");
    let address = origin.addr().to_string();
    let mut admin = Scripted::start().await;
    let gateway = polling(&admin.url(), "      maxBodySize: 1MB\n").await;
    admin.let_in("t").await;
    admin.next().await.json(&everything(&address, 1));
    let changed = r#"{"code":200,"message":"success","data":["RULE"]}"#;
    let large = format!(r#"{{"code":200,"data":{{}},"x":"{}"}}"#, "x".repeat(1_200_000));
    for bad in [large.as_str(), "{\"code\":200,\"data\":{\"RULE\":", "<html>"] {
        admin.next().await.json(changed);
        let fetch = admin.next().await;
        assert!(fetch.target.starts_with("/configs/fetch?groupKeys=RULE&"), "{}", fetch.target);
        fetch.json(bad);
    }
    // The connection is cut in the middle of it all.
    drop(admin.next().await);
    let asked = admin.next().await;
    assert!(asked.target.contains("RULE=1,1&"), "{}", asked.target);
    assert!(served_by("U1")(&get(&gateway, "/polled/x").await));
    // A group that is no list is told once, and not asked for again for ever.
    asked.json(changed);
    admin.next().await.json(
        r#"{"code":200,"data":{"RULE":{"md5":"2","lastModifyTime":2,"data":{"no":"list"}}}}"#,
    );
    let asked = admin.next().await;
    assert!(asked.target.contains("RULE=2,2&"), "{}", asked.target);
    assert!(served_by("U1")(&get(&gateway, "/polled/x").await));
    stop(gateway).await;
}

#[test]
fn two_channels_at_once_are_refused() {
    let refused = |yaml: &str| {
        longmen_bootstrap::config::GatewayConfig::from_yaml(yaml).unwrap_err().to_string()
    };
    let both = "shenyu:\n  sync:\n    websocket:\n      urls: ws://a/websocket\n    http:\n      \
                url: http://a\n      username: u\n";
    assert!(refused(both).contains("shenyu.sync.http.url"), "{}", refused(both));
    let nobody = "shenyu:\n  sync:\n    http:\n      url: http://a\n";
    assert!(refused(nobody).contains("shenyu.sync.http.username"), "{}", refused(nobody));
    let short = "shenyu:\n  sync:\n    http:\n      url: http://a\n      username: u\n      \
                 aesSecretKey: sssssecret\n      aesSecretIv: 6075877187097700\n";
    let told = refused(short);
    assert!(told.contains("10 bytes") && !told.contains("sssssecret"), "{told}");
}
