//! The things compared: the gateway, nginx, the upstream itself, and what else was named.

use std::path::Path;

use super::{Plan, UPSTREAM, check, gateway, nginx};
use crate::client::Server;
use crate::stage::start_origin;

/// One of the things compared.
#[derive(Debug, Clone)]
pub struct Target {
    /// Its name in tables.
    pub name: String,
    /// Where it listens.
    pub server: Server,
    /// The process whose processor time is counted, where that is asked for.
    pub pid: Option<u32>,
}

impl Target {
    /// The whole address of a path.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.authority())
    }
}

/// Starts all targets, calls `measure`, stops them again.
pub(super) async fn with_all<T>(
    plan: &Plan,
    folder: &Path,
    measure: impl FnOnce(&[Target]) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let (_origin, upstream) =
        start_origin(&plan.binaries, &plan.other_cores, folder, UPSTREAM, plan.upstream.as_deref())
            .await?;
    let nginx = nginx::start_nginx(plan, folder, &upstream).await?;
    let (_admin, gateway) = gateway::start_gateway(plan, folder, &upstream).await?;
    let mut targets = vec![
        Target {
            name: "longmen".into(),
            server: gateway.server.clone(),
            pid: Some(gateway.process.id()),
        },
        Target { name: "nginx".into(), server: nginx.server.clone(), pid: Some(nginx.worker) },
        Target { name: "direct".into(), server: upstream, pid: None },
    ];
    for (name, url) in &plan.others {
        targets.push(Target { name: name.clone(), server: Server::parse(url)?, pid: None });
    }
    for target in &targets {
        check(target, &plan.path).await?;
    }
    measure(&targets)
}
