//! The routes of a soak, put in place by the admin's API.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::{Value, json};

use super::Plan;
use super::wire::ROUTE;
use crate::admin_api::{AdminApi, DEFAULT_NAMESPACE, DIVIDE};
use crate::client::{Connection, Server};
use crate::origin::Origin;

/// The id of the plugin `websocket` in the stock seed.
const WEBSOCKET: &str = "26";

/// The routes of one soak: all requests with its header.
pub(super) struct Routes {
    /// The value of the header.
    pub(super) name: Arc<str>,
    api: AdminApi,
    selectors: Vec<String>,
}

impl Routes {
    pub(super) async fn create(
        plan: &Plan,
        upstreams: &[Origin],
        rude: SocketAddr,
    ) -> anyhow::Result<Self> {
        let server = Server::parse(&plan.admin)?;
        let api = AdminApi::login(server, &plan.user, &plan.password).await?;
        let name = format!("soak-{:x}", jiff::Timestamp::now().as_millisecond());
        let mut routes = Self { name: name.clone().into(), api, selectors: Vec::new() };
        let good: Vec<String> = upstreams.iter().map(|origin| origin.addr().to_string()).collect();
        let handle = json!({ "loadBalance": "roundRobin", "retry": 1, "timeout": 10_000 });
        routes.add(DIVIDE, "divide", &name, &good, &handle).await?;
        let handle = json!({ "loadBalance": "random", "retry": 0, "timeout": 500 });
        routes.add(DIVIDE, "divide", &format!("{name}-rude"), &[rude.to_string()], &handle).await?;
        let handle = json!({ "loadBalance": "roundRobin" });
        routes.add(WEBSOCKET, "websocket", &name, &good, &handle).await?;
        Ok(routes)
    }

    async fn add(
        &mut self,
        plugin_id: &str,
        plugin: &str,
        name: &str,
        upstreams: &[String],
        handle: &Value,
    ) -> anyhow::Result<()> {
        let condition = json!({
            "paramType": "header", "operator": "=", "paramName": ROUTE, "paramValue": name,
        });
        let selector = json!({
            "pluginId": plugin_id, "name": name, "type": 1, "matchMode": 0, "sort": 1,
            "enabled": true, "loged": false, "continued": true, "matchRestful": false,
            "handle": "[]", "namespaceId": DEFAULT_NAMESPACE, "selectorConditions": [condition],
        });
        let id = self.api.call(Method::POST, "/selector", Some(&selector)).await?;
        let id = id.as_str().context("the answer to POST /selector has no id")?.to_owned();
        self.selectors.push(id.clone());
        let protocol = if plugin == "websocket" { "ws://" } else { "http://" };
        let upstreams: Vec<Value> = upstreams
            .iter()
            .map(|url| {
                json!({
                    "protocol": protocol, "url": url, "status": 0, "weight": 50,
                    "props": "{\"warmup\":\"0\"}", "startupTime": "0",
                    "namespaceId": DEFAULT_NAMESPACE,
                })
            })
            .collect();
        let binding = json!({
            "selectorId": id, "name": name, "pluginName": plugin, "type": plugin,
            "forwardPort": null, "props": "{}", "listenerNode": "", "handler": "",
            "namespaceId": DEFAULT_NAMESPACE,
            "discovery": { "discoveryType": "local", "serverList": "", "props": "{}" },
            "discoveryUpstreams": upstreams,
        });
        self.api.call(Method::POST, "/proxy-selector/binding", Some(&binding)).await?;
        let rule = json!({
            "selectorId": id, "matchMode": 0, "name": name, "enabled": true, "loged": false,
            "sort": 1, "matchRestful": false, "namespaceId": DEFAULT_NAMESPACE,
            "handle": handle.to_string(), "ruleConditions": [condition],
        });
        self.api.call(Method::POST, "/rule", Some(&rule)).await.map(drop)
    }

    /// Waits until the gateway serves them.
    pub(super) async fn wait(&self, gateway: &Server) -> anyhow::Result<()> {
        let mut connection = Connection::new(gateway.clone());
        let headers = HeaderMap::from_iter([(ROUTE.parse()?, HeaderValue::from_str(&self.name)?)]);
        let mut last = String::new();
        for _ in 0..200 {
            match connection.send(Method::GET, "/hello", headers.clone(), Bytes::new()).await {
                Ok(answer) if answer.status == StatusCode::OK => return Ok(()),
                Ok(answer) => last = format!("status {}: {}", answer.status, answer.excerpt()),
                Err(error) => last = format!("{error:#}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        bail!("the gateway does not serve the routes of the soak: {last}")
    }

    pub(super) async fn remove(mut self) -> anyhow::Result<()> {
        self.api.delete_selectors(&self.selectors).await
    }
}
