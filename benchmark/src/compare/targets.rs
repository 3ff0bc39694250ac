//! The things compared: the gateway, nginx, the upstream itself, and what else was named.

use std::path::Path;
use std::time::Duration;

use http::StatusCode;

use super::{Plan, UPSTREAM, check, free_port, gateway, nginx};
use crate::client::{Server, wait_for};
use crate::process::{Cores, Process};

/// How long a program may take until it serves.
pub(super) const START_LIMIT: Duration = Duration::from_secs(20);

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
    let (_origin, upstream) = start_upstream(plan, folder).await?;
    let nginx = nginx::start_nginx(plan, folder, &upstream).await?;
    let gateway = gateway::start_gateway(plan, folder, &upstream).await?;
    let mut targets = vec![
        Target { name: "longmen".into(), server: gateway.server.clone(), pid: Some(gateway.pid()) },
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

async fn start_upstream(plan: &Plan, folder: &Path) -> anyhow::Result<(Process, Server)> {
    let address = match &plan.upstream {
        Some(address) => address.clone(),
        None => format!("127.0.0.1:{}", free_port()?),
    };
    let arguments = ["origin", "--name", UPSTREAM, "--workers", "1", "--bind", &address];
    let server = Server::parse(&format!("http://{address}"))?;
    let program = plan.binaries.join("longmen-bench");
    let process =
        start("upstream", &plan.other_cores, folder, &program, &arguments, &server, "/hello")
            .await?;
    Ok((process, server))
}

/// Starts a program and waits until it answers `path` with 200.
pub(super) async fn start(
    name: &str,
    cores: &Cores,
    folder: &Path,
    program: &Path,
    arguments: &[&str],
    server: &Server,
    path: &str,
) -> anyhow::Result<Process> {
    let log = folder.join(format!("{name}.log"));
    let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    let mut process = Process::start(name, cores, &log, program, &arguments)?;
    let served = wait_for(server, path, StatusCode::OK, START_LIMIT).await;
    process.ensure_running(&log)?;
    served?;
    Ok(process)
}
