//! Longmen itself: an admin with a database of its own, and one gateway with one worker.

use std::path::Path;

use anyhow::Context as _;

use super::Plan;
use crate::admin_api::{AdminApi, PathCondition, Rule};
use crate::client::Server;
use crate::stage::{Admin, Gateway, free_port};

/// Starts both and routes the path to the upstream by the public API. The gateway's control threads
/// count with its worker.
pub(super) async fn start_gateway(
    plan: &Plan,
    folder: &Path,
    upstream: &Server,
) -> anyhow::Result<(Admin, Gateway)> {
    let admin = Admin::start(&plan.binaries, &plan.other_cores, folder).await?;
    let routed = route(&mut admin.log_in().await?, &plan.path, upstream).await;
    routed.context("route the path to the upstream")?;
    let (port, log) = (free_port()?, folder.join("gateway.log"));
    let arguments = [format!("--shenyu.management.port={}", free_port()?)];
    let mut gateway =
        Gateway::spawn(&plan.binaries, &plan.proxy_cores, log, port, admin.port(), &arguments)?;
    gateway.serves(&plan.path).await?;
    Ok((admin, gateway))
}

async fn route(api: &mut AdminApi, path: &str, upstream: &Server) -> anyhow::Result<()> {
    let path = path.split('?').next().unwrap_or(path);
    let selector = api.create_selector("compared", 1, &PathCondition::equal(path)).await?;
    api.bind(&selector, "compared", &[upstream.authority().to_owned()]).await?;
    let (name, condition) = ("compared".to_owned(), PathCondition::equal(path));
    api.create_rule(&Rule { selector_id: selector, name, sort: 1, condition }).await
}
