//! `POST /shenyu/explain` on a gateway that serves.

use longmen_benchmark::origin::Origin;
use longmen_bootstrap::RunningGateway;
use serde_json::{Value, json};

use crate::operators::{KEY, call_as, local_keys, post, uri};
use crate::support::{client, gateway, get, stop, upstream};

const PATH: &str = "/shenyu/explain";

async fn explained(gateway: &RunningGateway, question: &Value) -> Value {
    let (status, text) = call_as(gateway, Some(KEY), "POST", PATH, Some(question)).await;
    assert_eq!(status, 200, "{question}: {text}");
    serde_json::from_str(&text).unwrap()
}

/// What is refused, with its status.
async fn refused(gateway: &RunningGateway, question: &Value) -> Value {
    let (status, text) = call_as(gateway, Some(KEY), "POST", PATH, Some(question)).await;
    assert_eq!(status, 400, "{question}: {text}");
    serde_json::from_str(&text).unwrap()
}

fn handler(origins: &[&Origin]) -> String {
    let one = |origin: &&Origin| {
        json!({"protocol": "http://", "upstreamUrl": origin.addr().to_string(), "weight": 50,
            "status": true, "warmup": 0, "healthCheckEnabled": false})
    };
    Value::Array(origins.iter().map(one).collect()).to_string()
}

/// A prefix that is cut off, and a proxy that takes turns between two upstreams.
async fn configured(gateway: &RunningGateway, origins: &[&Origin]) {
    for (name, role) in [("divide", "Proxy"), ("contextPath", "HttpProcess")] {
        let plugin = json!({"name": name, "role": role, "enabled": true});
        assert_eq!(post(gateway, "/shenyu/plugin/saveOrUpdate", &plugin).await, "success");
    }
    let cut = json!({"pluginName": "contextPath", "conditionDataList": uri("/shop/**"),
        "selectorName": "cut", "ruleHandler": "{\"contextPath\":\"/shop\"}"});
    post(gateway, "/shenyu/plugin/selectorAndRule", &cut).await;
    let shop = json!({"pluginName": "divide", "selectorName": "shop",
    "selectorHandler": handler(origins), "conditionDataList": uri("/shop/**"),
    "ruleDataList": [
        {"ruleName": "orders", "ruleHandler": "{\"loadBalance\":\"roundRobin\"}",
            "conditionDataList": uri("/shop/orders/**")},
    ]});
    post(gateway, "/shenyu/plugin/selectorAndRules", &shop).await;
}

fn step<'e>(explanation: &'e Value, plugin: &str) -> &'e Value {
    let steps = explanation["steps"].as_array().unwrap();
    steps.iter().find(|step| step["plugin"] == plugin).unwrap_or_else(|| panic!("{explanation:#}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_says_what_a_request_comes_to_and_it_does() {
    let (gateway, one, two) = (gateway(&local_keys("")).await, upstream("U1"), upstream("U2"));
    configured(&gateway, &[&one, &two]).await;
    let url = format!("http://{}/shop/orders/7?a=1", gateway.address);
    let told = explained(&gateway, &json!({"curl": format!("curl {url} -H 'X-A: b'")})).await;
    assert_eq!(told["outcome"]["ending"], "forwarded", "{told:#}");
    assert_eq!(step(&told, "contextPath")["effect"], "the upstream's path becomes \"/orders/7\"");
    let divide = step(&told, "divide");
    assert_eq!((&divide["state"], &divide["considered"]), (&json!("matched"), &json!(2)));
    assert_eq!(divide["selector"]["name"], "shop");
    assert_eq!(divide["rule"]["name"], "orders");
    let next = told["upstreams"].as_array().unwrap().iter().find(|one| one["next"] == true);
    let next = next.unwrap()["url"].as_str().unwrap().to_owned();
    assert_eq!(told["upstreams"][0]["chance"], 50.0);
    assert_eq!(told["request"]["url"], format!("http://{next}/orders/7?a=1"));

    // What is told to be the next is the next, however often that is asked.
    let mut turns = Vec::new();
    for _ in 0..6 {
        let mut told = Value::Null;
        for _ in 0..3 {
            told = explained(&gateway, &json!({"curl": format!("curl {url}")})).await;
        }
        let all = told["upstreams"].as_array().unwrap();
        let next = all.iter().position(|one| one["next"] == true).unwrap();
        let answer = get(&gateway, "/shop/orders/7").await;
        assert_eq!(answer.upstream.as_deref(), Some(["U1", "U2"][next]), "{told:#}");
        turns.push(next);
    }
    assert!(turns.contains(&0) && turns.contains(&1), "{turns:?}");
    assert_eq!(one.requests() + two.requests(), 6, "nothing was sent to explain");
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_are_told_as_they_are_made() {
    let (gateway, one) = (gateway(&local_keys("")).await, upstream("U1"));
    configured(&gateway, &[&one]).await;
    for path in ["/none", "/shop/other", "/shop/orders/..;/x", "/shop/%zz", "/actuator/health"] {
        let told = explained(&gateway, &json!({"url": path, "headers": {"Host": "h"}})).await;
        let url = format!("http://{}{path}", gateway.address);
        let answer = client().get(url).send().await.unwrap();
        assert_eq!(told["outcome"]["status"], answer.status().as_u16(), "{path}: {told:#}");
        let body: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        if told["outcome"]["ending"] == "refused" {
            assert_eq!(told["outcome"]["code"], body["code"], "{path}: {told:#}");
            assert_eq!(told["outcome"]["text"], body["message"], "{path}: {told:#}");
        } else {
            assert_eq!(path, "/actuator/health", "{told:#}");
        }
        assert_eq!(told["request"], Value::Null);
    }
    let told = explained(&gateway, &json!({"curl": "curl gw/shop/other"})).await;
    let rule = &step(&told, "divide")["candidates"][1];
    assert_eq!(rule["kind"], "rule");
    assert_eq!(
        rule["why"],
        "condition 1 does not hold: uri match \"/shop/orders/**\", got \"/shop/other\""
    );
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_needs_the_key_and_a_question_that_can_be_read() {
    let gateway = gateway(&local_keys("")).await;
    let question = json!({"url": "/a"});
    for key in [None, Some("another")] {
        let (status, text) = call_as(&gateway, key, "POST", PATH, Some(&question)).await;
        assert_eq!(status, 403, "{text}");
    }
    let (status, _) = call_as(&gateway, Some(KEY), "GET", PATH, None).await;
    assert_eq!(status, 404, "only by POST");
    let told = refused(&gateway, &json!({"curl": "curl 'http://gw/a"})).await;
    assert_eq!(
        told,
        json!({"code": 400, "field": "curl", "at": 6,
            "message": "curl, character 6: ' is not a quote that is closed again"})
    );
    let told = refused(&gateway, &json!({"url": "/a", "expect": {"ruleId": "7"}})).await;
    assert_eq!(
        told,
        json!({"code": 400, "field": "expect.ruleId", "at": null,
            "message": "expect.ruleId: 7 is not the id of a rule of this configuration"})
    );
    // Who names no address is the one who asks; nothing is configured.
    let told = explained(&gateway, &json!({"url": "/a"})).await;
    assert_eq!(told["clientIp"], "127.0.0.1");
    assert_eq!(told["outcome"]["reason"], "no_target");
    let told = explained(&gateway, &json!({"url": "/a", "clientIp": "10.0.0.9"})).await;
    assert_eq!(told["clientIp"], "10.0.0.9");
    stop(gateway).await;
}
