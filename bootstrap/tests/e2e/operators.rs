//! The data in force, and the local admin API.

use longmen_benchmark::origin::Origin;
use longmen_bootstrap::RunningGateway;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha512};

use crate::fake_admin::FakeAdmin;
use crate::standard::routed;
use crate::support::{client, gateway, get, stop, until, upstream};

pub(crate) const KEY: &str = "open sesame";

pub(crate) fn local_keys(more: &str) -> String {
    let hash: String = Sha512::digest(KEY).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("  compat: standard\n  local:\n    enabled: true\n    sha512Key: {hash}\n{more}")
}

/// Calls a gateway with the key, or another one.
pub(crate) async fn call_as(
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

pub(crate) async fn post(gateway: &RunningGateway, path: &str, body: &Value) -> String {
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

pub(crate) fn uri(path: &str) -> Value {
    json!([{"paramType": "uri", "operator": "match", "paramName": "/", "paramValue": path}])
}

pub(crate) fn handler(origin: &Origin) -> String {
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
    let answer = look(&gateway, &path).await;
    assert_eq!(answer, format!("Error: can not find rule data by selector id :{id}"));

    assert_eq!(look(&gateway, "/shenyu/cleanPlugin?name=divide").await, "success");
    assert_eq!(get(&gateway, "/one/a").await.status, 404);
    let answer = look(&gateway, "/shenyu/plugin/findByName?name=divide").await;
    assert_eq!(answer, "can not find this plugin : divide");
    let answer = look(&gateway, "/shenyu/plugin/selector/findList?pluginName=divide").await;
    assert_eq!(answer, "Error: can not find selector data by pluginName :divide");
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
    assert!(text.starts_with(r#"{"code":400,"message":"request body: "#), "{text}");
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
    for name in [
        "divide.DividePlugin",
        "global.GlobalPlugin",
        "uri.URIPlugin",
        "response.ResponsePlugin",
        "httpclient.NettyHttpClientPlugin",
    ] {
        assert!(known(&format!("org.apache.shenyu.plugin.{name}@")), "{name}: {classes}");
    }
    // With the key also on the public port.
    let public: Value =
        serde_json::from_str(&look(&gateway, "/actuator/pluginData").await).unwrap();
    assert_eq!(public, plugins);
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_missing_is_said_in_the_words_of_the_reference() {
    let gateway = gateway(&local_keys("")).await;
    let nothing = json!({});
    let answer = post(&gateway, "/shenyu/plugin/selector/saveOrUpdate", &nothing).await;
    assert_eq!(answer, "Error: please add pluginName!");
    let answer = post(&gateway, "/shenyu/plugin/rule/saveOrUpdate", &nothing).await;
    assert_eq!(answer, "Error: please add selectorId!");
    // Nothing is taken away by a call that does not say what.
    let selector = json!({"pluginName": "divide", "conditionList": uri("/a/**")});
    post(&gateway, "/shenyu/plugin/selector/saveOrUpdate", &selector).await;
    let path = "/shenyu/plugin/selector/delete?pluginName=divide";
    let (status, text) = call_as(&gateway, Some(KEY), "GET", path, None).await;
    assert_eq!(
        (status, text.as_str()),
        (400, r#"{"code":400,"message":"parameter id: expected a value, found none"}"#)
    );
    let path = "/shenyu/plugin/selector/findList?pluginName=divide";
    let found: Value = serde_json::from_str(&look(&gateway, path).await).unwrap();
    assert_eq!(found.as_array().unwrap().len(), 1);
    assert_eq!(look(&gateway, &format!("{path}&id=another")).await, "[]");
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_and_metadata_outlive_a_clean_of_everything() {
    let gateway = gateway(&local_keys("")).await;
    let divide = json!({"name": "divide"});
    post(&gateway, "/shenyu/plugin/saveOrUpdate", &divide).await;
    let plugins = managed(&gateway, "/actuator/pluginData").await;
    assert_eq!(plugins[0]["divide"]["enabled"], true, "what does not say otherwise is on");
    let meta = json!({"id": "m", "appName": "a", "path": "/p", "rpcType": "http", "enabled": true});
    post(&gateway, "/shenyu/meta/saveOrUpdate", &meta).await;
    let auth = json!({"appKey": "k", "appSecret": "s", "enabled": true, "open": true});
    assert_eq!(post(&gateway, "/shenyu/auth/saveOrUpdate", &auth).await, "success");
    assert_eq!(look(&gateway, "/shenyu/cleanAll").await, "success");
    assert_eq!(managed(&gateway, "/actuator/pluginData").await, json!([{}]));
    assert_eq!(managed(&gateway, "/actuator/metadata").await[0]["/p"]["id"], "m");
    assert_eq!(look(&gateway, "/shenyu/meta/delete?id=m").await, "success");
    assert_eq!(managed(&gateway, "/actuator/metadata").await, json!([{}]));
    assert_eq!(look(&gateway, "/shenyu/auth/delete?appKey=k").await, "success");
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_written_here_is_counted_and_goes_with_the_next_full_refresh() {
    let origin = upstream("U1");
    let admin = FakeAdmin::start(routed(&origin.addr().to_string())).await;
    let keys = format!(
        "  sync:\n    websocket:\n      urls: {}\n      reconnectInterval: 200\n",
        admin.url()
    );
    let gateway = gateway(&local_keys(&keys)).await;
    until(&gateway, |ready, _| ready).await;
    let sync = managed(&gateway, "/v1/sync").await;
    assert_eq!((&sync["source"], &sync["localChanges"]), (&json!("stockAdmin"), &json!(0)));
    let local = upstream("L1");
    let together = json!({"pluginName": "divide", "selectorHandler": handler(&local),
        "conditionDataList": uri("/one/**"), "ruleHandler": "{}", "sort": 0});
    post(&gateway, "/shenyu/plugin/selectorAndRule", &together).await;
    assert_eq!(get(&gateway, "/one/a").await.upstream.as_deref(), Some("L1"));
    assert_eq!(managed(&gateway, "/v1/sync").await["localChanges"], 1);
    admin.close(1001);
    let waiting = async {
        while managed(&gateway, "/v1/sync").await["localChanges"] != 0 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(crate::support::LIMIT, waiting).await.expect("another full refresh");
    assert_eq!(get(&gateway, "/one/a").await.upstream.as_deref(), Some("U1"));
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_reads_on_the_public_port_only_where_that_is_asked_for() {
    for (asked, expected) in [(false, 404), (true, 200)] {
        let text = format!(
            "server:\n  port: 0\n  address: 127.0.0.1\nshenyu:\n  management:\n    port: 0\n    \
             onPublicPort: {asked}\n  shutdown:\n    delay: 0\n"
        );
        let config = longmen_bootstrap::config::GatewayConfig::from_yaml(&text).unwrap();
        let registry = longmen_plugins::registry();
        let starting = tokio::task::spawn_blocking(move || {
            longmen_bootstrap::Gateway::builder(config).registry(registry).start()
        });
        let gateway = starting.await.unwrap().unwrap();
        let kinds = ["plugins", "pluginData", "selectorData", "ruleData", "metadata"];
        for what in
            kinds.into_iter().chain(["metadataCache", "selectorMatchCache", "ruleMatchCache"])
        {
            let (status, text) =
                call_as(&gateway, None, "GET", &format!("/actuator/{what}"), None).await;
            assert_eq!(status, expected, "{what}: {text}");
            if expected == 404 {
                assert_eq!(
                    text,
                    format!(r#"{{"code":404,"message":"No static resource actuator/{what}."}}"#)
                );
            }
        }
        let (status, _) = call_as(&gateway, None, "GET", "/actuator/info", None).await;
        assert_eq!(status, 200);
        stop(gateway).await;
    }
}
