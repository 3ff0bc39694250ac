//! The data in force, and the local admin API.

use longmen_benchmark::origin::Origin;
use longmen_bootstrap::RunningGateway;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha512};

use crate::support::{client, gateway, get, stop, upstream};

const KEY: &str = "open sesame";

fn local_keys(more: &str) -> String {
    let hash: String = Sha512::digest(KEY).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("  compat: standard\n  local:\n    enabled: true\n    sha512Key: {hash}\n{more}")
}

/// Calls a gateway with the key, or another one.
async fn call_as(
    gateway: &RunningGateway,
    key: Option<&str>,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> (u16, String) {
    let url = format!("http://{}{path}", gateway.address);
    let mut request = client().request(method.parse().unwrap(), url);
    if let Some(key) = key {
        request = request.header("localKey", key);
    }
    if let Some(body) = body {
        request = request.body(body.to_string());
    }
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

async fn post(gateway: &RunningGateway, path: &str, body: &Value) -> String {
    let (status, text) = call_as(gateway, Some(KEY), "POST", path, Some(body)).await;
    assert_eq!(status, 200, "{path}: {text}");
    text
}

async fn look(gateway: &RunningGateway, path: &str) -> String {
    let (status, text) = call_as(gateway, Some(KEY), "GET", path, None).await;
    assert_eq!(status, 200, "{path}: {text}");
    text
}

async fn managed(gateway: &RunningGateway, path: &str) -> Value {
    let url = format!("http://{}{path}", gateway.management);
    let answer = client().get(url).send().await.unwrap();
    assert_eq!(answer.status(), 200, "{path}");
    serde_json::from_str(&answer.text().await.unwrap()).unwrap()
}

fn uri(path: &str) -> Value {
    json!([{"paramType": "uri", "operator": "match", "paramName": "/", "paramValue": path}])
}

fn handler(origin: &Origin) -> String {
    let url = origin.addr().to_string();
    json!([{"upstreamHost": "localhost", "protocol": "http://", "upstreamUrl": url, "weight": 50,
        "status": true, "timestamp": 0, "warmup": 0}])
    .to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_route_is_made_and_taken_away_without_an_admin() {
    let (gateway, origin) = (gateway(&local_keys("")).await, upstream("L1"));
    let divide = json!({"name": "divide", "role": "Proxy", "enabled": true});
    assert_eq!(post(&gateway, "/shenyu/plugin/saveOrUpdate", &divide).await, "success");
    let together = json!({"pluginName": "divide", "selectorHandler": handler(&origin),
        "conditionDataList": uri("/one/**"), "ruleHandler": "{}"});
    assert_eq!(post(&gateway, "/shenyu/plugin/selectorAndRule", &together).await, "success");
    // In force at once.
    assert_eq!(get(&gateway, "/one/a").await.upstream.as_deref(), Some("L1"));
    let several = json!({"pluginName": "divide", "selectorName": "several",
    "selectorHandler": handler(&origin), "conditionDataList": uri("/two/**"),
    "ruleDataList": [
        {"ruleName": "a", "ruleHandler": "{}", "conditionDataList": uri("/two/a")},
        {"ruleName": "b", "ruleHandler": "{}", "conditionDataList": uri("/two/b")},
    ]});
    assert_eq!(post(&gateway, "/shenyu/plugin/selectorAndRules", &several).await, "success");
    assert_eq!(get(&gateway, "/two/b").await.upstream.as_deref(), Some("L1"));
    assert_eq!(get(&gateway, "/two/c").await.status, 404);

    let selector = json!({"pluginName": "divide", "name": "alone", "type": 1, "matchMode": 0,
        "handle": handler(&origin), "conditionList": uri("/three/**")});
    let id = post(&gateway, "/shenyu/plugin/selector/saveOrUpdate", &selector).await;
    assert!(id.parse::<u64>().is_ok(), "the answer is the id: {id:?}");
    let rule = json!({"pluginName": "divide", "selectorId": id, "handle": "{}",
        "conditionDataList": uri("/three/**")});
    let rule_id = post(&gateway, "/shenyu/plugin/rule/saveOrUpdate", &rule).await;
    assert_eq!(get(&gateway, "/three/x").await.upstream.as_deref(), Some("L1"));

    let path = format!("/shenyu/plugin/selector/findList?pluginName=divide&id={id}");
    let found: Value = serde_json::from_str(&look(&gateway, &path).await).unwrap();
    assert_eq!(found[0]["sort"], 10, "the place of what does not say its own");
    assert_eq!(found[0]["enabled"], true);
    let path = format!("/shenyu/plugin/rule/findList?selectorId={id}");
    let found: Value = serde_json::from_str(&look(&gateway, &path).await).unwrap();
    assert_eq!(found[0]["id"], rule_id);
    let path = format!("/shenyu/plugin/rule/delete?selectorId={id}&id={rule_id}&pluginName=divide");
    assert_eq!(look(&gateway, &path).await, "success");
    assert_eq!(get(&gateway, "/three/x").await.status, 404);
    let path = format!("/shenyu/plugin/rule/findList?selectorId={id}");
    assert!(look(&gateway, &path).await.starts_with("Error: "));

    assert_eq!(look(&gateway, "/shenyu/cleanPlugin?name=divide").await, "success");
    assert_eq!(get(&gateway, "/one/a").await.status, 404);
    assert_eq!(look(&gateway, "/shenyu/plugin/findByName?name=divide").await, "null");
    assert_eq!(managed(&gateway, "/actuator/pluginData").await, json!([{}]));
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_gets_in_without_the_key() {
    let gateway = gateway(&local_keys("")).await;
    let body = json!({"name": "divide", "enabled": true});
    for key in [None, Some(""), Some("open Sesame"), Some("123456")] {
        for (method, path) in [
            ("POST", "/shenyu/plugin/saveOrUpdate"),
            ("GET", "/shenyu/cleanAll"),
            ("GET", "/shenyu/unknown"),
            // In another spelling.
            ("POST", "//shenyu/plugin/saveOrUpdate"),
            ("POST", "/%73henyu/plugin/saveOrUpdate"),
        ] {
            let (status, text) = call_as(&gateway, key, method, path, Some(&body)).await;
            assert_eq!(status, 403, "{key:?} {path}: {text}");
            assert!(text.contains("The key is not correct."), "{text}");
        }
        let (status, _) = call_as(&gateway, key, "GET", "/actuator/pluginData", None).await;
        assert_eq!(status, 404, "data without the key");
    }
    assert_eq!(managed(&gateway, "/actuator/pluginData").await, json!([{}]), "nothing was written");
    let (status, text) = call_as(&gateway, Some(KEY), "GET", "/shenyu/unknown", None).await;
    assert_eq!(status, 404, "{text}");
    let broken = Value::String("{".into());
    let path = "/shenyu/plugin/saveOrUpdate";
    let (status, text) = call_as(&gateway, Some(KEY), "POST", path, Some(&broken)).await;
    assert_eq!(status, 400);
    assert!(text.starts_with("request body: "), "{text}");
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_off_unless_it_is_switched_on() {
    let hash: String = Sha512::digest(KEY).iter().map(|byte| format!("{byte:02x}")).collect();
    for keys in [String::new(), format!("  local:\n    sha512Key: {hash}\n")] {
        let gateway = gateway(&keys).await;
        let (status, text) = call_as(&gateway, Some(KEY), "GET", "/shenyu/cleanAll", None).await;
        // As any other path that nobody routes.
        assert!(text.contains("Can not find url"), "{status} {text}");
        stop(gateway).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_data_in_force_are_shown_where_they_may_be() {
    let gateway = gateway(&local_keys("")).await;
    let origin = upstream("L1");
    let divide = json!({"name": "divide", "enabled": true, "config": "{\"password\":\"s3cret\"}"});
    post(&gateway, "/shenyu/plugin/saveOrUpdate", &divide).await;
    let together = json!({"pluginName": "divide", "selectorHandler": handler(&origin),
        "conditionDataList": uri("/one/**"), "ruleHandler": "{}"});
    post(&gateway, "/shenyu/plugin/selectorAndRule", &together).await;
    let meta = json!({"appName": "a", "path": "/p", "rpcType": "http", "enabled": true});
    post(&gateway, "/shenyu/meta/saveOrUpdate", &meta).await;

    let plugins = managed(&gateway, "/actuator/pluginData").await;
    assert_eq!(plugins[0]["divide"]["config"], "{\"password\":\"******\"}");
    let selectors = managed(&gateway, "/actuator/selectorData").await;
    let selector = selectors[0]["divide"][0]["id"].as_str().unwrap().to_owned();
    let rules = managed(&gateway, "/actuator/ruleData").await;
    assert_eq!(rules[0][&selector][0]["conditionDataList"][0]["paramValue"], "/one/**");
    assert_eq!(managed(&gateway, "/actuator/metadata").await[0]["/p"]["appName"], "a");
    for cache in ["metadataCache", "selectorMatchCache", "ruleMatchCache"] {
        assert_eq!(managed(&gateway, &format!("/actuator/{cache}")).await, json!([{}]));
    }
    let classes = managed(&gateway, "/actuator/plugins").await;
    let known =
        |name: &str| classes[0].as_object().unwrap().keys().any(|key| key.starts_with(name));
    assert!(known("org.apache.shenyu.plugin.divide.DividePlugin@"), "{classes}");
    // With the key also on the public port.
    let public: Value =
        serde_json::from_str(&look(&gateway, "/actuator/pluginData").await).unwrap();
    assert_eq!(public, plugins);
    stop(gateway).await;
}
