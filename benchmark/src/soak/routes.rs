//! The routes of a soak, put in place by the admin's API.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::{Value, json};

use super::Plan;
use super::wire::ROUTE;
use crate::admin_api::{AdminApi, Plugin};
use crate::client::{Connection, Server};
use crate::origin::Origin;

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
        routes.add(Plugin::DIVIDE, &name, &good, &handle).await?;
        let handle = json!({ "loadBalance": "random", "retry": 0, "timeout": 500 });
        routes.add(Plugin::DIVIDE, &format!("{name}-rude"), &[rude.to_string()], &handle).await?;
        let handle = json!({ "loadBalance": "roundRobin" });
        routes.add(Plugin::WEBSOCKET, &name, &good, &handle).await?;
        Ok(routes)
    }

    async fn add(
        &mut self,
        plugin: Plugin,
        name: &str,
        upstreams: &[String],
        handle: &Value,
    ) -> anyhow::Result<()> {
        let condition = json!({
            "paramType": "header", "operator": "=", "paramName": ROUTE, "paramValue": name,
        });
        let id = self.api.create_route(plugin, name, &condition, upstreams, handle).await?;
        self.selectors.push(id);
        Ok(())
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
