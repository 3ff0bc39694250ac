//! The part of the admin's stock REST API that is needed to put routes in place.
//!
//! Source: the shapes of ShenYu 2.7.1, as its web console uses them.

mod condition;
mod plugin;

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};

use crate::client::{Connection, Server, json_headers};

pub use condition::PathCondition;
pub use plugin::Plugin;

/// The namespace every installation has.
pub const DEFAULT_NAMESPACE: &str = "649330b6-c2d7-4edc-be8e-8a54df9eb385";

/// The id of the plugin `divide` in the stock seed.
pub const DIVIDE: &str = "5";

const TOKEN: HeaderName = HeaderName::from_static("x-access-token");

/// A logged-in session over one connection.
#[derive(Debug)]
pub struct AdminApi {
    connection: Connection,
    headers: HeaderMap,
}

/// A rule of `divide` with one condition on the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The selector it belongs to.
    pub selector_id: String,
    /// Its name.
    pub name: String,
    /// Its precedence.
    pub sort: u32,
    /// Which requests it takes.
    pub condition: PathCondition,
}

impl AdminApi {
    /// Logs in.
    ///
    /// # Errors
    /// When the admin cannot be reached or refuses the password.
    pub async fn login(server: Server, user: &str, password: &str) -> anyhow::Result<Self> {
        let mut api = Self { connection: Connection::new(server), headers: json_headers() };
        let (user, password) = (encode(user), encode(password));
        let target = format!("/platform/login?userName={user}&password={password}");
        // The target carries the password, so it must not get into an error.
        let answer = api
            .connection
            .get(&target)
            .await
            .map_err(|error| anyhow::anyhow!("log in at the admin: {}", error.root_cause()))?;
        let data = payload(&answer.json()?).context("log in at the admin")?;
        let token = data["token"].as_str().context("the login's answer has no token")?;
        api.headers.insert(TOKEN, HeaderValue::from_str(token)?);
        Ok(api)
    }

    /// The same session at another admin on the same database, over a connection of its own.
    #[must_use]
    pub fn at(&self, server: Server) -> Self {
        Self { connection: Connection::new(server), headers: self.headers.clone() }
    }

    /// The JSON of an endpoint that answers without an envelope.
    ///
    /// # Errors
    /// When the connection fails, or the status is not 200.
    pub async fn get(&mut self, target: &str) -> anyhow::Result<Value> {
        let (headers, body) = (self.headers.clone(), Bytes::new());
        let answer = self.connection.send(Method::GET, target, headers, body).await?;
        if answer.status != http::StatusCode::OK {
            bail!("GET {target} is answered {}", answer.status);
        }
        answer.json()
    }

    /// Creates an enabled `divide` selector for the paths of `condition`; returns its id.
    ///
    /// # Errors
    /// When the admin refuses, as for the other calls.
    pub async fn create_selector(
        &mut self,
        name: &str,
        sort: u32,
        condition: &PathCondition,
    ) -> anyhow::Result<String> {
        let body = selector(name, sort, condition);
        let data = self.call(Method::POST, "/selector", Some(&body)).await?;
        Ok(data.as_str().context("the answer to POST /selector has no id")?.to_owned())
    }

    /// Gives a `divide` selector its upstreams, each `host:port`, all of equal weight and warmed up.
    ///
    /// # Errors
    /// When the admin refuses.
    pub async fn bind(
        &mut self,
        selector_id: &str,
        name: &str,
        upstreams: &[String],
    ) -> anyhow::Result<()> {
        self.bind_to(Plugin::DIVIDE, selector_id, name, upstreams).await
    }

    async fn bind_to(
        &mut self,
        plugin: Plugin,
        selector_id: &str,
        name: &str,
        upstreams: &[String],
    ) -> anyhow::Result<()> {
        let upstreams: Vec<Value> = upstreams
            .iter()
            .map(|url| {
                json!({
                    "protocol": plugin.protocol, "url": url, "status": 0, "weight": 50,
                    "props": "{\"warmup\":\"0\"}", "startupTime": "0",
                    "namespaceId": DEFAULT_NAMESPACE,
                })
            })
            .collect();
        let body = json!({
            "selectorId": selector_id, "name": name, "pluginName": plugin.name,
            "type": plugin.name, "forwardPort": null, "props": "{}", "listenerNode": "",
            "handler": "", "namespaceId": DEFAULT_NAMESPACE,
            "discovery": { "discoveryType": "local", "serverList": "", "props": "{}" },
            "discoveryUpstreams": upstreams,
        });
        self.call(Method::POST, "/proxy-selector/binding", Some(&body)).await.map(drop)
    }

    /// Creates a selector of a plugin with its upstreams, each `host:port`, and one rule with the same
    /// condition; returns the selector's id.
    ///
    /// # Errors
    /// When the admin refuses.
    pub async fn create_route(
        &mut self,
        plugin: Plugin,
        name: &str,
        condition: &Value,
        upstreams: &[String],
        handle: &Value,
    ) -> anyhow::Result<String> {
        let selector = json!({
            "pluginId": plugin.id, "name": name, "type": 1, "matchMode": 0, "sort": 1,
            "enabled": true, "loged": false, "continued": true, "matchRestful": false,
            "handle": "[]", "namespaceId": DEFAULT_NAMESPACE, "selectorConditions": [condition],
        });
        let id = self.call(Method::POST, "/selector", Some(&selector)).await?;
        let id = id.as_str().context("the answer to POST /selector has no id")?.to_owned();
        self.bind_to(plugin, &id, name, upstreams).await?;
        let rule = json!({
            "selectorId": id, "matchMode": 0, "name": name, "enabled": true, "loged": false,
            "sort": 1, "matchRestful": false, "namespaceId": DEFAULT_NAMESPACE,
            "handle": handle.to_string(), "ruleConditions": [condition],
        });
        self.call(Method::POST, "/rule", Some(&rule)).await?;
        Ok(id)
    }

    /// Switches a plugin on.
    ///
    /// # Errors
    /// When the admin refuses.
    pub async fn enable_plugin(&mut self, plugin: Plugin) -> anyhow::Result<()> {
        let body = json!({ "ids": [plugin.id], "enabled": true, "namespaceId": DEFAULT_NAMESPACE });
        let target = "/namespace-plugin/enabledByNamespace";
        self.call(Method::POST, target, Some(&body)).await.map(drop)
    }

    /// Gives a plugin another place in the order of plugins.
    ///
    /// # Errors
    /// When there is no such plugin, or the admin refuses.
    pub async fn sort_plugin(&mut self, plugin: Plugin, sort: u32) -> anyhow::Result<()> {
        let target = format!(
            "/namespace-plugin?name={}&namespaceId={DEFAULT_NAMESPACE}&currentPage=1&pageSize=50",
            plugin.name
        );
        let data = self.call(Method::GET, &target, None).await?;
        let rows = data["dataList"].as_array().context("the list of plugins has no dataList")?;
        let row = rows.iter().find(|row| row["name"] == plugin.name);
        let row = row.with_context(|| format!("there is no plugin {:?}", plugin.name))?;
        let id = row["id"].as_str().context("a plugin of the list has no id")?;
        let body = json!({
            "pluginId": row["pluginId"], "name": row["name"], "config": row["config"],
            "sort": sort, "enabled": row["enabled"], "namespaceId": DEFAULT_NAMESPACE,
        });
        let target = format!("/namespace-plugin/{}", encode(id));
        self.call(Method::PUT, &target, Some(&body)).await.map(drop)
    }

    /// The version of the configuration, and the lowest one that any gateway has in force, once one
    /// is connected.
    ///
    /// # Errors
    /// When the admin does not tell.
    pub async fn versions(&mut self) -> anyhow::Result<(u64, Option<u64>)> {
        let target = format!("/v1/gateways?namespace={DEFAULT_NAMESPACE}");
        let headers = self.headers.clone();
        let answer = self.connection.send(Method::GET, &target, headers, Bytes::new()).await?;
        ensure!(answer.status == StatusCode::OK, "GET {target}: {}", answer.excerpt());
        let list = answer.json()?;
        let stored = list["namespaces"][0]["version"].as_u64();
        let stored = stored.with_context(|| format!("{target}: no gateway is connected"))?;
        let rows = list["rows"].as_array().with_context(|| format!("{target}: no rows"))?;
        let connected = rows.iter().filter(|row| row["connected"] == true);
        let in_force = connected.map(|row| row["version"].as_u64().unwrap_or(0)).min();
        Ok((stored, in_force))
    }

    /// Replaces a selector by one for the paths of `condition`.
    ///
    /// # Errors
    /// When the admin refuses.
    pub async fn update_selector(
        &mut self,
        id: &str,
        name: &str,
        condition: &PathCondition,
        enabled: bool,
    ) -> anyhow::Result<()> {
        let mut body = selector(name, 1, condition);
        body["id"] = id.into();
        body["enabled"] = enabled.into();
        self.call(Method::PUT, &format!("/selector/{}", encode(id)), Some(&body)).await.map(drop)
    }

    /// The id of the discovery handler that a selector got when it was bound.
    ///
    /// # Errors
    /// When it has none.
    pub async fn discovery_handler(&mut self, selector_id: &str) -> anyhow::Result<String> {
        let target = format!("/selector/{}", encode(selector_id));
        let data = self.call(Method::GET, &target, None).await?;
        let id = data["discoveryHandler"]["id"].as_str();
        Ok(id.with_context(|| format!("selector {selector_id} is not bound"))?.to_owned())
    }

    /// Replaces the upstreams of a discovery handler, each `host:port` with its weight.
    ///
    /// # Errors
    /// When the admin refuses.
    pub async fn replace_upstreams(
        &mut self,
        plugin: Plugin,
        handler: &str,
        upstreams: &[(String, u32)],
    ) -> anyhow::Result<()> {
        let upstreams: Vec<Value> = upstreams
            .iter()
            .map(|(url, weight)| {
                json!({
                    "discoveryHandlerId": handler, "protocol": plugin.protocol, "url": url,
                    "status": 0, "weight": weight, "props": "{\"warmup\":\"0\"}",
                    "namespaceId": DEFAULT_NAMESPACE,
                })
            })
            .collect();
        let target = format!("/discovery-upstream/{}", encode(handler));
        self.call(Method::PUT, &target, Some(&Value::from(upstreams))).await.map(drop)
    }

    /// Sends everything to all gateways once more.
    ///
    /// # Errors
    /// When the admin refuses.
    pub async fn sync_all(&mut self) -> anyhow::Result<()> {
        let body = json!({ "namespaceId": DEFAULT_NAMESPACE });
        self.call(Method::POST, "/namespace-plugin/syncPluginAll", Some(&body)).await.map(drop)
    }

    /// Creates an enabled rule. The stock answer does not tell its id; see [`Self::rule_id`].
    ///
    /// # Errors
    /// When the admin refuses.
    pub async fn create_rule(&mut self, rule: &Rule) -> anyhow::Result<()> {
        self.call(Method::POST, "/rule", Some(&rule.to_json(None))).await.map(drop)
    }

    /// Creates an enabled rule with a handle of its own.
    ///
    /// # Errors
    /// When the admin refuses.
    pub async fn create_rule_with(&mut self, rule: &Rule, handle: &Value) -> anyhow::Result<()> {
        let mut body = rule.to_json(None);
        body["handle"] = handle.to_string().into();
        self.call(Method::POST, "/rule", Some(&body)).await.map(drop)
    }

    /// The id of the rule of that name in a selector.
    ///
    /// # Errors
    /// When there is none, or more than one.
    pub async fn rule_id(&mut self, selector_id: &str, name: &str) -> anyhow::Result<String> {
        let target = format!(
            "/rule?selectorId={}&name={}&namespaceId={DEFAULT_NAMESPACE}&currentPage=1&pageSize=50",
            encode(selector_id),
            encode(name)
        );
        let data = self.call(Method::GET, &target, None).await?;
        let rows = data["dataList"].as_array().context("the list of rules has no dataList")?;
        let mut ids =
            rows.iter().filter(|row| row["name"] == name).filter_map(|row| row["id"].as_str());
        match (ids.next(), ids.next()) {
            (Some(id), None) => Ok(id.to_owned()),
            (None, _) => bail!("selector {selector_id} has no rule {name:?}"),
            (Some(_), Some(_)) => bail!("selector {selector_id} has several rules {name:?}"),
        }
    }

    /// Replaces a rule.
    ///
    /// # Errors
    /// When the admin refuses.
    pub async fn update_rule(&mut self, id: &str, rule: &Rule) -> anyhow::Result<()> {
        let target = format!("/rule/{}", encode(id));
        self.call(Method::PUT, &target, Some(&rule.to_json(Some(id)))).await.map(drop)
    }

    /// Switches a rule on or off.
    ///
    /// # Errors
    /// When the admin refuses.
    pub async fn enable_rule(&mut self, id: &str, enabled: bool) -> anyhow::Result<()> {
        let body = json!({ "ids": [id], "enabled": enabled, "namespaceId": DEFAULT_NAMESPACE });
        self.call(Method::POST, "/rule/batchEnabled", Some(&body)).await.map(drop)
    }

    /// Deletes a rule.
    ///
    /// # Errors
    /// When the admin refuses.
    pub async fn delete_rule(&mut self, id: &str) -> anyhow::Result<()> {
        let body = json!({ "ids": [id], "namespaceId": DEFAULT_NAMESPACE });
        self.call(Method::DELETE, "/rule/batch", Some(&body)).await.map(drop)
    }

    /// Deletes selectors with their rules and upstreams.
    ///
    /// # Errors
    /// When the admin refuses.
    pub async fn delete_selectors(&mut self, ids: &[String]) -> anyhow::Result<()> {
        let body = json!({ "ids": ids, "namespaceId": DEFAULT_NAMESPACE });
        self.call(Method::DELETE, "/selector/batch", Some(&body)).await.map(drop)
    }

    /// Sends a call and returns the `data` of its answer.
    ///
    /// # Errors
    /// When the connection fails or the envelope's code is not 200; the message names the call and
    /// gives the admin's own.
    pub async fn call(
        &mut self,
        method: Method,
        target: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Value> {
        let bytes = match body {
            Some(body) => Bytes::from(serde_json::to_vec(body)?),
            None => Bytes::new(),
        };
        let what = format!("{method} {target}");
        let answer = self.connection.send(method, target, self.headers.clone(), bytes).await?;
        answer.json().and_then(|envelope| payload(&envelope)).context(what)
    }
}

impl Rule {
    fn to_json(&self, id: Option<&str>) -> Value {
        // Handles are JSON inside a JSON text.
        let handle = json!({
            "loadBalance": "roundRobin", "retryStrategy": "current", "retry": 3, "timeout": 3_000,
            "headerMaxSize": 10_240, "requestMaxSize": 102_400,
        });
        let mut rule = json!({
            "selectorId": self.selector_id, "matchMode": 0, "name": self.name, "enabled": true,
            "loged": false, "sort": self.sort, "matchRestful": false,
            "namespaceId": DEFAULT_NAMESPACE, "handle": handle.to_string(),
            "ruleConditions": [self.condition.to_json()],
        });
        if let Some(id) = id {
            rule["id"] = id.into();
        }
        rule
    }
}

/// An enabled `divide` selector.
fn selector(name: &str, sort: u32, condition: &PathCondition) -> Value {
    json!({
        "pluginId": DIVIDE, "name": name, "type": 1, "matchMode": 0, "sort": sort,
        "enabled": true, "loged": false, "continued": true, "matchRestful": false,
        "handle": "[]", "namespaceId": DEFAULT_NAMESPACE,
        "selectorConditions": [condition.to_json()],
    })
}

/// The `data` of an envelope of code 200.
fn payload(envelope: &Value) -> anyhow::Result<Value> {
    if envelope["code"] == 200 {
        return Ok(envelope["data"].clone());
    }
    bail!("the admin answered code {}: {}", envelope["code"], envelope["message"])
}

/// Escapes everything but letters, digits and `-._~`.
fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_values_are_escaped() {
        assert_eq!(encode("a-Z_9.~"), "a-Z_9.~");
        assert_eq!(encode("p&s w=é%"), "p%26s%20w%3D%C3%A9%25");
    }

    #[test]
    fn refusals_carry_the_admins_words() {
        let refused = json!({ "code": 500, "message": "selector is not existed", "data": null });
        let error = payload(&refused).expect_err("code 500 is a refusal").to_string();
        assert_eq!(error, "the admin answered code 500: \"selector is not existed\"");
        assert_eq!(payload(&json!({ "code": 200, "data": "7" })).expect("accepted"), "7");
    }

    #[test]
    fn a_rule_has_the_stock_shape() {
        let rule = Rule {
            selector_id: "11".into(),
            name: "one".into(),
            sort: 3,
            condition: PathCondition::equal("/a"),
        };
        let json = rule.to_json(Some("12"));
        assert_eq!(json["id"], "12");
        assert_eq!(json["loged"], false);
        assert_eq!(json["ruleConditions"][0]["paramValue"], "/a");
        let handle = json["handle"].as_str().expect("the handle is a text");
        let handle: Value = serde_json::from_str(handle).expect("the handle's text is JSON");
        assert_eq!(handle["loadBalance"], "roundRobin");
    }
}
