//! The part of the admin's stock REST API that is needed to put routes in place.
//!
//! Source: the shapes of ShenYu 2.7.1, as its web console uses them.

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Method};
use serde_json::{Value, json};

use crate::client::{Connection, Server, json_headers};

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

/// A condition on the path of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathCondition {
    /// The operator, such as `=` or `pathPattern`.
    pub operator: &'static str,
    /// The path or pattern.
    pub value: String,
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
        let body = json!({
            "pluginId": DIVIDE, "name": name, "type": 1, "matchMode": 0, "sort": sort,
            "enabled": true, "loged": false, "continued": true, "matchRestful": false,
            "handle": "[]", "namespaceId": DEFAULT_NAMESPACE,
            "selectorConditions": [condition.to_json()],
        });
        let data = self.call(Method::POST, "/selector", Some(&body)).await?;
        Ok(data.as_str().context("the answer to POST /selector has no id")?.to_owned())
    }

    /// Gives a selector its upstreams, each `host:port`, all of equal weight and warmed up.
    ///
    /// # Errors
    /// When the admin refuses.
    pub async fn bind(
        &mut self,
        selector_id: &str,
        name: &str,
        upstreams: &[String],
    ) -> anyhow::Result<()> {
        let upstreams: Vec<Value> = upstreams
            .iter()
            .map(|url| {
                json!({
                    "protocol": "http://", "url": url, "status": 0, "weight": 50,
                    "props": "{\"warmup\":\"0\"}", "startupTime": "0",
                    "namespaceId": DEFAULT_NAMESPACE,
                })
            })
            .collect();
        let body = json!({
            "selectorId": selector_id, "name": name, "pluginName": "divide", "type": "divide",
            "forwardPort": null, "props": "{}", "listenerNode": "", "handler": "",
            "namespaceId": DEFAULT_NAMESPACE,
            "discovery": { "discoveryType": "local", "serverList": "", "props": "{}" },
            "discoveryUpstreams": upstreams,
        });
        self.call(Method::POST, "/proxy-selector/binding", Some(&body)).await.map(drop)
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

impl PathCondition {
    /// Exactly this path.
    #[must_use]
    pub fn equal(path: impl Into<String>) -> Self {
        Self { operator: "=", value: path.into() }
    }

    /// All paths of a pattern such as `/orders/**`.
    #[must_use]
    pub fn pattern(pattern: impl Into<String>) -> Self {
        Self { operator: "pathPattern", value: pattern.into() }
    }

    fn to_json(&self) -> Value {
        json!({
            "paramType": "uri", "operator": self.operator, "paramName": "/",
            "paramValue": self.value,
        })
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
