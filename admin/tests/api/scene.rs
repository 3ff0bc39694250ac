//! Tests that run on both stores: an admin with its token, and the change log behind it.

use longmen_admin::config::StoreConfig;
use longmen_core::config::Secret;
use longmen_core::model::DEFAULT_NAMESPACE;
use longmen_core::test_util::postgres;
use longmen_db::repository::{namespace, permission, role, user};
use longmen_db::{Actor, ChangeRow, Since, Store, current_version, since};
use serde_json::{Value, json};

use crate::support::{Answer, PASSWORD, TestAdmin};

/// The plugin `divide`, as the seed has it.
pub(crate) const DIVIDE: &str = "5";

/// An admin on a fresh database, and the token of its super user.
pub(crate) struct Scene {
    pub(crate) admin: TestAdmin,
    token: String,
}

/// Runs each of the functions once on SQLite and once on PostgreSQL.
macro_rules! on_both_stores {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $name() {
                let scene = crate::scene::Scene::sqlite().await;
                super::$name(&scene).await;
                scene.stop().await;
            })+
        }
        mod postgres {
            $(#[tokio::test]
            async fn $name() {
                let scene = crate::scene::Scene::postgres().await;
                super::$name(&scene).await;
                scene.stop().await;
            })+
        }
    };
}
pub(crate) use on_both_stores;

impl Scene {
    pub(crate) async fn sqlite() -> Self {
        Self::of(TestAdmin::start().await).await
    }

    pub(crate) async fn postgres() -> Self {
        let made = tokio::task::spawn_blocking(postgres::fresh_database);
        let url = Secret::new(made.await.unwrap());
        Self::of(TestAdmin::with(|config| config.store = StoreConfig::Postgres { url }).await).await
    }

    pub(crate) async fn of(admin: TestAdmin) -> Self {
        let token = admin.token("admin", PASSWORD).await;
        Self { admin, token }
    }

    pub(crate) async fn stop(self) {
        self.admin.stop().await;
    }

    /// The whole answer.
    pub(crate) async fn call(&self, method: &str, path: &str, body: Value) -> Value {
        self.call_as(&self.token, method, path, body).await
    }

    pub(crate) async fn call_as(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: Value,
    ) -> Value {
        let body = (!body.is_null()).then_some(body);
        self.admin.api(token, method, path, body).await
    }

    /// The answer to a call that answers a bare text.
    pub(crate) async fn text(&self, method: &str, path: &str, body: &Value) -> Answer {
        let headers = [
            ("X-Access-Token".to_owned(), self.token.clone()),
            ("Content-Type".to_owned(), "application/json; charset=utf-8".to_owned()),
        ];
        self.admin.call(method, path, &headers, Some(body.to_string())).await
    }

    /// The data of a call that must succeed.
    pub(crate) async fn ok(&self, method: &str, path: &str, body: Value) -> Value {
        let mut answer = self.call(method, path, body).await;
        assert_eq!(answer["code"], 200, "{method} {path}: {answer}");
        answer["data"].take()
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.ok("GET", path, Value::Null).await
    }

    /// The text of a call that must be refused; nothing may have changed.
    pub(crate) async fn refused(&self, method: &str, path: &str, body: Value) -> String {
        let before = self.version().await;
        let answer = self.call(method, path, body).await;
        assert_eq!(answer["code"], 500, "{method} {path}: {answer}");
        assert_eq!(self.version().await, before, "{method} {path} changed something");
        answer["message"].as_str().unwrap_or_default().to_owned()
    }

    /// The token of its super user.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    pub(crate) fn store(&self) -> &Store {
        self.admin.running().state().store()
    }

    /// The version of the default namespace.
    pub(crate) async fn version(&self) -> u64 {
        self.version_of(DEFAULT_NAMESPACE).await
    }

    pub(crate) async fn version_of(&self, namespace: &str) -> u64 {
        let mut tx = self.store().read().await.unwrap();
        current_version(&mut tx, namespace).await.unwrap()
    }

    /// The rows of the change sets after `version` in the default namespace.
    pub(crate) async fn changes_after(&self, version: u64) -> Vec<ChangeRow> {
        self.changes_of(DEFAULT_NAMESPACE, version).await
    }

    pub(crate) async fn changes_of(&self, namespace: &str, version: u64) -> Vec<ChangeRow> {
        let mut tx = self.store().read().await.unwrap();
        match since(&mut tx, namespace, version, 10_000).await.unwrap() {
            Since::Sets(sets) => sets.into_iter().flat_map(|set| set.rows).collect(),
            Since::Gap => panic!("there is no gap after version {version}"),
        }
    }

    /// Creates a selector of divide for `/{name}/**`; its id.
    pub(crate) async fn selector(&self, name: &str) -> String {
        let id = self.ok("POST", "/selector", selector(name)).await;
        id.as_str().unwrap().to_owned()
    }

    /// Creates a rule in a selector; its id.
    pub(crate) async fn rule(&self, selector_id: &str, name: &str) -> String {
        let version = self.version().await;
        assert_eq!(self.ok("POST", "/rule", rule(selector_id, name)).await, 1);
        self.changes_after(version).await[0].object_id.clone()
    }

    /// Binds a selector to upstreams at the ports; the id of its discovery handler.
    pub(crate) async fn bind(&self, selector_id: &str, name: &str, ports: &[u16]) -> String {
        self.ok("POST", "/proxy-selector/binding", binding(selector_id, name, ports)).await;
        let detail = self.get(&format!("/selector/{selector_id}")).await;
        detail["discoveryHandler"]["id"].as_str().unwrap().to_owned()
    }

    /// A user with a role that grants the permission strings; their id and token.
    pub(crate) async fn user(&self, name: &str, permissions: &[&str]) -> (String, String) {
        let mut uow = self.store().begin(Actor::system()).await.unwrap();
        let admin = user::find_by_name(&mut uow, "admin").await.unwrap().unwrap();
        let new = user::NewUser {
            user_name: name.to_owned(),
            password: admin.password.clone(),
            role: 1,
            enabled: true,
        };
        let id = user::insert(&mut uow, &new).await.unwrap();
        let role_id = role::insert(&mut uow, name, None).await.unwrap();
        role::assign(&mut uow, &id, &role_id).await.unwrap();
        for wanted in permissions {
            let row = permission::find_resource_by_perms(&mut uow, wanted).await.unwrap();
            role::grant(&mut uow, &role_id, &row.unwrap().id).await.unwrap();
        }
        namespace::add_member(&mut uow, DEFAULT_NAMESPACE, &id).await.unwrap();
        uow.commit().await.unwrap();
        (id, self.admin.token(name, PASSWORD).await)
    }

    /// A second namespace; its id.
    pub(crate) async fn other_namespace(&self) -> String {
        let body = json!({"name": "other", "description": "another"});
        let made = self.ok("POST", "/namespace/insertOrUpdate", body).await;
        made["namespaceId"].as_str().unwrap().to_owned()
    }
}

/// The body of a selector of divide for `/{name}/**`.
pub(crate) fn selector(name: &str) -> Value {
    json!({
        "pluginId": DIVIDE, "name": name, "type": 1, "matchMode": 0, "sort": 1, "enabled": true,
        "loged": true, "continued": true, "matchRestful": false, "handle": "[]",
        "namespaceId": DEFAULT_NAMESPACE,
        "selectorConditions": [{"paramType": "uri", "operator": "startsWith", "paramName": "/",
                                "paramValue": format!("/{name}/")}],
    })
}

/// The body of a rule.
pub(crate) fn rule(selector_id: &str, name: &str) -> Value {
    json!({
        "selectorId": selector_id, "matchMode": 0, "name": name, "enabled": true, "loged": true,
        "sort": 1, "matchRestful": false, "namespaceId": DEFAULT_NAMESPACE,
        "handle": "{\"timeout\":3000}",
        "ruleConditions": [
            {"paramType": "uri", "operator": "pathPattern", "paramName": "/",
             "paramValue": format!("/{name}/**")},
            {"paramType": "header", "operator": "=", "paramName": "x", "paramValue": "1"},
        ],
    })
}

/// The body of a binding to upstreams at the ports.
pub(crate) fn binding(selector_id: &str, name: &str, ports: &[u16]) -> Value {
    let upstreams: Vec<Value> = ports
        .iter()
        .map(|port| {
            json!({"protocol": "http://", "url": format!("127.0.0.1:{port}"), "status": 0,
                   "weight": 50, "props": "{\"warmup\":\"10\"}", "startupTime": "0"})
        })
        .collect();
    json!({
        "selectorId": selector_id, "name": name, "pluginName": "divide", "type": "divide",
        "forwardPort": null, "props": "{}", "listenerNode": "", "handler": "",
        "namespaceId": DEFAULT_NAMESPACE,
        "discovery": {"discoveryType": "local", "serverList": "", "props": "{}"},
        "discoveryUpstreams": upstreams,
    })
}

/// A body with members replaced.
pub(crate) fn with(mut body: Value, members: Value) -> Value {
    let Value::Object(members) = members else { panic!("an object of members") };
    for (name, value) in members {
        body[name] = value;
    }
    body
}

/// Kind, operation and stock event of each row, such as `SELECTOR create UPDATE`.
pub(crate) fn outline(rows: &[ChangeRow]) -> Vec<String> {
    rows.iter()
        .map(|row| {
            let event = row.event.map_or("-", longmen_core::sync::Event::name);
            format!("{} {} {event}", row.kind, row.operation.name())
        })
        .collect()
}

/// The object before or after, as JSON.
pub(crate) fn object(text: &Option<String>) -> Value {
    serde_json::from_str(text.as_deref().unwrap_or("null")).unwrap()
}
