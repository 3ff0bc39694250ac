//! The whole path: what is stored in the admin by its public API routes requests through a gateway.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use longmen_admin::config::{AdminConfig, StoreConfig};
use longmen_admin::{Admin, RunningAdmin};
use longmen_benchmark::origin::Origin;
use longmen_bootstrap::RunningGateway;
use longmen_core::config::Secret;
use longmen_core::model::DEFAULT_NAMESPACE;
use longmen_core::test_util::postgres::fresh_database;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::support::{Answer, LIMIT, client, gateway, get, stop, until, upstream};

/// An admin with a database of its own.
pub(crate) struct TestAdmin {
    pub(crate) admin: RunningAdmin,
    token: String,
    _folder: TempDir,
}

pub(crate) async fn admin(postgres: bool) -> TestAdmin {
    let folder = tempfile::tempdir().unwrap();
    let mut config = AdminConfig::default();
    config.server.address = Ipv4Addr::LOCALHOST.into();
    config.server.port = 0;
    config.store = if postgres {
        let made = tokio::task::spawn_blocking(fresh_database).await;
        StoreConfig::Postgres { url: Secret::new(made.unwrap()) }
    } else {
        StoreConfig::Sqlite { path: folder.path().join("longmen.db") }
    };
    config.security.admin_password = Some(Secret::new("123456"));
    config.security.admin_password_path = folder.path().join("admin-password");
    config.sync.token_path = folder.path().join("sync-token");
    let admin = Admin::builder(config).start().await.unwrap();
    let url = format!("http://{}/platform/login?userName=admin&password=123456", admin.addr);
    let login = client().get(url).send().await.unwrap().text().await.unwrap();
    let login: Value = serde_json::from_str(&login).unwrap();
    let token = login["data"]["token"].as_str().unwrap().to_owned();
    TestAdmin { admin, token, _folder: folder }
}

impl TestAdmin {
    pub(crate) async fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let url = format!("http://{}{path}", self.admin.addr);
        let request = client()
            .request(method.parse().unwrap(), url)
            .header("X-Access-Token", &self.token)
            .header("content-type", "application/json")
            .body(body.to_string());
        let answer = request.send().await.unwrap().text().await.unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["code"], 200, "{method} {path}: {answer}");
        answer["data"].clone()
    }

    /// A selector of divide for a path and what is below it, bound to upstreams, with one rule.
    /// Returns the ids of both.
    pub(crate) async fn route(&self, path: &str, origins: &[&Origin]) -> (String, String) {
        let pattern = format!("{path}/**");
        let selector = self.call("POST", "/selector", &selector(path, &pattern)).await;
        let selector = selector.as_str().unwrap().to_owned();
        let upstreams: Vec<Value> = origins
            .iter()
            .map(|origin| {
                json!({"protocol": "http://", "url": origin.addr().to_string(), "status": 0,
                    "weight": 50, "props": "{}", "namespaceId": DEFAULT_NAMESPACE})
            })
            .collect();
        let binding = json!({"selectorId": selector, "name": path, "pluginName": "divide",
            "type": "local", "discovery": {"discoveryType": "local", "serverList": "", "props": "{}"},
            "discoveryUpstreams": upstreams, "namespaceId": DEFAULT_NAMESPACE});
        self.call("POST", "/proxy-selector/binding", &binding).await;
        self.call("POST", "/rule", &rule(&selector, path, &pattern)).await;
        let list = format!(
            "/rule?selectorId={selector}&namespaceId={DEFAULT_NAMESPACE}&currentPage=1&pageSize=10"
        );
        let rules = self.call("GET", &list, &Value::Null).await;
        (selector, rules["dataList"][0]["id"].as_str().unwrap().to_owned())
    }
}

fn condition(pattern: &str) -> Value {
    json!([{"paramType": "uri", "operator": "match", "paramName": "/", "paramValue": pattern}])
}

fn selector(name: &str, pattern: &str) -> Value {
    json!({"pluginId": "5", "name": name, "type": 1, "matchMode": 0, "sort": 1, "enabled": true,
        "loged": false, "continued": true, "matchRestful": false, "handle": "",
        "selectorConditions": condition(pattern), "namespaceId": DEFAULT_NAMESPACE})
}

fn rule(selector: &str, name: &str, pattern: &str) -> Value {
    json!({"selectorId": selector, "name": name, "matchMode": 0, "enabled": true, "loged": false,
        "sort": 1, "handle": "{\"loadBalance\":\"roundRobin\",\"timeout\":3000}",
        "ruleConditions": condition(pattern), "matchRestful": false,
        "namespaceId": DEFAULT_NAMESPACE})
}

async fn gateway_of(address: std::net::SocketAddr) -> RunningGateway {
    gateway(&format!(
        "  compat: standard\n  sync:\n    websocket:\n      urls: ws://{address}/websocket\n      \
         reconnectInterval: 200\n"
    ))
    .await
}

/// Asks until the answer is as wanted; the way there takes the time of a change, not more.
async fn eventually(gateway: &RunningGateway, path: &str, wanted: impl Fn(&Answer) -> bool) {
    let asking = async {
        while !wanted(&get(gateway, path).await) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let in_time = tokio::time::timeout(LIMIT, asking).await;
    assert!(in_time.is_ok(), "{path}: {:?}", get(gateway, path).await);
}

fn served_by(name: &'static str) -> impl Fn(&Answer) -> bool {
    move |answer| answer.status == 200 && answer.upstream.as_deref() == Some(name)
}

async fn edits_take_effect(postgres: bool) {
    let (admin, u1) = (admin(postgres).await, upstream("U1"));
    let gateway = gateway_of(admin.admin.addr).await;
    until(&gateway, |ready, _| ready).await;
    let (selector, rule_id) = admin.route("/orders", &[&u1]).await;
    eventually(&gateway, "/orders/1?x=%2B", served_by("U1")).await;

    let mut moved = rule(&selector, "/orders", "/orders/new/**");
    moved["id"] = rule_id.as_str().into();
    admin.call("PUT", &format!("/rule/{rule_id}"), &moved).await;
    // The new path was served by the rule as it was, too: the old one tells.
    eventually(&gateway, "/orders/1", |answer| answer.status == 404).await;
    assert!(served_by("U1")(&get(&gateway, "/orders/new/1").await), "moved, not gone");

    let off = json!({"ids": [selector], "enabled": false, "namespaceId": DEFAULT_NAMESPACE});
    admin.call("POST", "/selector/batchEnabled", &off).await;
    eventually(&gateway, "/orders/new/1", |answer| answer.body.contains("-107")).await;
    let on = json!({"ids": [selector], "enabled": true, "namespaceId": DEFAULT_NAMESPACE});
    admin.call("POST", "/selector/batchEnabled", &on).await;
    eventually(&gateway, "/orders/new/1", served_by("U1")).await;

    let all = json!({"ids": [selector], "namespaceId": DEFAULT_NAMESPACE});
    admin.call("DELETE", "/selector/batch", &all).await;
    eventually(&gateway, "/orders/new/1", |answer| answer.body.contains("-107")).await;
    stop(gateway).await;
    assert!(admin.admin.stop().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_in_the_admin_take_effect_on_sqlite() {
    edits_take_effect(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_in_the_admin_take_effect_on_postgresql() {
    edits_take_effect(true).await;
}

/// A wire between two addresses that can be cut and mended.
struct Wire {
    address: std::net::SocketAddr,
    whole: watch::Sender<bool>,
}

impl Wire {
    async fn to(target: std::net::SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (whole, state) = watch::channel(true);
        let state = Arc::new(state);
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let mut state = (*state).clone();
                if !*state.borrow_and_update() {
                    continue;
                }
                tokio::spawn(async move {
                    let mut far = TcpStream::connect(target).await.unwrap();
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                        _ = state.wait_for(|whole| !whole) => {}
                    }
                });
            }
        });
        Self { address, whole }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_deleted_while_the_link_was_down_is_gone_after_it_returns() {
    let (admin, u1) = (admin(false).await, upstream("U1"));
    let wire = Wire::to(admin.admin.addr).await;
    let gateway = gateway_of(wire.address).await;
    let (first, _) = admin.route("/first", &[&u1]).await;
    admin.route("/second", &[&u1]).await;
    eventually(&gateway, "/first/1", served_by("U1")).await;
    eventually(&gateway, "/second/1", served_by("U1")).await;

    wire.whole.send_replace(false);
    let one = json!({"ids": [first], "namespaceId": DEFAULT_NAMESPACE});
    admin.call("DELETE", "/selector/batch", &one).await;
    assert_eq!(get(&gateway, "/first/1").await.status, 200, "what is in force stays in force");
    wire.whole.send_replace(true);
    eventually(&gateway, "/first/1", |answer| answer.body.contains("-107")).await;
    assert!(served_by("U1")(&get(&gateway, "/second/1").await));
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_that_was_emptied_empties_the_gateway_s() {
    let (admin, u1) = (admin(false).await, upstream("U1"));
    let wire = Wire::to(admin.admin.addr).await;
    let gateway = gateway_of(wire.address).await;
    let (only, _) = admin.route("/only", &[&u1]).await;
    eventually(&gateway, "/only/1", served_by("U1")).await;
    wire.whole.send_replace(false);
    let all = json!({"ids": [only], "namespaceId": DEFAULT_NAMESPACE});
    admin.call("DELETE", "/selector/batch", &all).await;
    // Everything again, not only what was missed.
    let sync = json!({"namespaceId": DEFAULT_NAMESPACE});
    admin.call("POST", "/namespace-plugin/syncPluginAll", &sync).await;
    wire.whole.send_replace(true);
    eventually(&gateway, "/only/1", |answer| answer.body.contains("-107")).await;
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_starts_before_its_admin_serves_once_it_is_there() {
    let (admin, u1) = (admin(false).await, upstream("U1"));
    let wire = Wire::to(admin.admin.addr).await;
    wire.whole.send_replace(false);
    let gateway = gateway_of(wire.address).await;
    admin.route("/late", &[&u1]).await;
    assert_eq!(get(&gateway, "/actuator/health").await.status, 503);
    wire.whole.send_replace(true);
    until(&gateway, |ready, position| ready && position.version > 0).await;
    assert!(served_by("U1")(&get(&gateway, "/late/1").await));
    assert_eq!(get(&gateway, "/actuator/health").await.status, 200);
    stop(gateway).await;
}
