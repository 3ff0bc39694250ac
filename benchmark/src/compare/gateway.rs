//! Longmen itself: an admin with a database of its own, and one gateway with one worker.

use std::path::Path;

use anyhow::Context as _;

use super::targets::start;
use super::{Plan, free_port};
use crate::admin_api::{AdminApi, PathCondition, Rule};
use crate::client::Server;
use crate::process::Process;

const PASSWORD: &str = "of-this-run-1-Only!";

/// A running gateway and the admin it gets its routes from.
#[derive(Debug)]
pub(super) struct Gateway {
    pub(super) server: Server,
    process: Process,
    _admin: Process,
}

impl Gateway {
    /// Id of the gateway's process; its control threads count with its worker.
    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }
}

/// Starts both and routes the path to the upstream by the public API.
pub(super) async fn start_gateway(
    plan: &Plan,
    folder: &Path,
    upstream: &Server,
) -> anyhow::Result<Gateway> {
    let admin_port = free_port()?;
    let admin_server = Server::parse(&format!("http://127.0.0.1:{admin_port}"))?;
    let admin = start(
        "admin",
        &plan.other_cores,
        folder,
        &plan.binaries.join("longmen-admin"),
        &[
            &format!("--server.port={admin_port}"),
            &format!("--shenyu.database.path={}", folder.join("longmen.db").display()),
            &format!("--shenyu.sync.tokenPath={}", folder.join("sync-token").display()),
            &format!("--shenyu.admin.password={PASSWORD}"),
        ],
        &admin_server,
        "/actuator/health",
    )
    .await?;
    route(admin_server, &plan.path, upstream).await.context("route the path to the upstream")?;
    let gateway_port = free_port()?;
    let server = Server::parse(&format!("http://127.0.0.1:{gateway_port}"))?;
    let process = start(
        "gateway",
        &plan.proxy_cores,
        folder,
        &plan.binaries.join("longmen-bootstrap"),
        &[
            &format!("--server.port={gateway_port}"),
            &format!("--shenyu.management.port={}", free_port()?),
            &format!("--shenyu.sync.websocket.urls=ws://127.0.0.1:{admin_port}/websocket"),
            "--shenyu.netty.http.workerCount=1",
            "--shenyu.compat=standard",
        ],
        &server,
        &plan.path,
    )
    .await?;
    Ok(Gateway { server, process, _admin: admin })
}

async fn route(admin: Server, path: &str, upstream: &Server) -> anyhow::Result<()> {
    let mut api = AdminApi::login(admin, "admin", PASSWORD).await?;
    let path = path.split('?').next().unwrap_or(path);
    let selector = api.create_selector("compared", 1, &PathCondition::equal(path)).await?;
    api.bind(&selector, "compared", &[upstream.authority().to_owned()]).await?;
    let (name, condition) = ("compared".to_owned(), PathCondition::equal(path));
    api.create_rule(&Rule { selector_id: selector, name, sort: 1, condition }).await
}
