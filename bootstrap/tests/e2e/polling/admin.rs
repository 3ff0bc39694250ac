//! Our own admin with polling switched on, which can be stopped and started again.

use std::net::Ipv4Addr;
use std::time::Duration;

use longmen_admin::config::{AdminConfig, StoreConfig};
use longmen_admin::{Admin, RunningAdmin};
use longmen_benchmark::origin::Origin;
use longmen_core::config::Secret;
use longmen_core::model::DEFAULT_NAMESPACE;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::client;

/// An admin, or the place where one was.
pub(super) struct OurAdmin {
    running: Option<RunningAdmin>,
    /// The port of the one that runs, or that ran last.
    pub(super) port: u16,
    /// How long its tokens live.
    life: Duration,
    folder: TempDir,
}

impl OurAdmin {
    pub(super) async fn start() -> Self {
        Self::with_tokens_of(Duration::from_secs(86_400)).await
    }

    pub(super) async fn with_tokens_of(life: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut admin = Self { running: None, port: 0, life, folder };
        admin.start_at(0).await;
        admin
    }

    /// Starts it on the same database, at this port or, for 0, at a free one.
    pub(super) async fn start_at(&mut self, port: u16) {
        let mut config = AdminConfig::default();
        config.server.address = Ipv4Addr::LOCALHOST.into();
        config.server.port = port;
        config.store = StoreConfig::Sqlite { path: self.folder.path().join("longmen.db") };
        config.security.admin_password = Some(Secret::new("123456"));
        config.security.admin_password_path = self.folder.path().join("admin-password");
        config.sync.token_path = self.folder.path().join("sync-token");
        config.security.token_lifetime = self.life;
        config.sync.http.enabled = true;
        let running = Admin::builder(config).start().await.unwrap();
        self.port = running.addr.port();
        self.running = Some(running);
    }

    pub(super) async fn stop(&mut self) {
        assert!(self.running.take().unwrap().stop().await);
    }

    pub(super) fn running(&self) -> &RunningAdmin {
        self.running.as_ref().unwrap()
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// A call by the super user, which must succeed; its data.
    pub(super) async fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let login = format!("{}/platform/login?userName=admin&password=123456", self.url());
        let login = client().get(login).send().await.unwrap().text().await.unwrap();
        let login: Value = serde_json::from_str(&login).unwrap();
        let request = client()
            .request(method.parse().unwrap(), format!("{}{path}", self.url()))
            .header("X-Access-Token", login["data"]["token"].as_str().unwrap())
            .header("content-type", "application/json")
            .body(body.to_string());
        let answer = request.send().await.unwrap().text().await.unwrap();
        let mut answer: Value = serde_json::from_str(&answer).unwrap();
        if path.starts_with("/v1/") {
            return answer;
        }
        assert_eq!(answer["code"], 200, "{method} {path}: {answer}");
        answer["data"].take()
    }

    /// Routes `/{name}/**` to an upstream; the id of the selector.
    pub(super) async fn route(&self, name: &str, origin: &Origin) -> String {
        let condition = json!([{"paramType": "uri", "operator": "startsWith", "paramName": "/",
            "paramValue": format!("/{name}/")}]);
        let selector = json!({"pluginId": "5", "name": name, "type": 1, "matchMode": 0, "sort": 1,
            "enabled": true, "loged": false, "continued": true, "matchRestful": false, "handle": "",
            "selectorConditions": condition, "namespaceId": DEFAULT_NAMESPACE});
        let id = self.call("POST", "/selector", &selector).await.as_str().unwrap().to_owned();
        let binding = json!({"selectorId": id, "name": name, "pluginName": "divide",
            "type": "local", "discovery": {"discoveryType": "local", "serverList": "", "props": "{}"},
            "discoveryUpstreams": [{"protocol": "http://", "url": origin.addr().to_string(),
                "status": 0, "weight": 50, "props": "{}", "namespaceId": DEFAULT_NAMESPACE}],
            "namespaceId": DEFAULT_NAMESPACE});
        self.call("POST", "/proxy-selector/binding", &binding).await;
        let rule = json!({"selectorId": id, "name": name, "matchMode": 0, "enabled": true,
            "loged": false, "sort": 1, "handle": "{\"timeout\":3000}", "ruleConditions": condition,
            "matchRestful": false, "namespaceId": DEFAULT_NAMESPACE});
        self.call("POST", "/rule", &rule).await;
        id
    }

    pub(super) async fn delete(&self, selector: &str) {
        let body = json!({"ids": [selector], "namespaceId": DEFAULT_NAMESPACE});
        self.call("DELETE", "/selector/batch", &body).await;
    }
}
