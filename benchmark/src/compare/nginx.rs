//! nginx as a plain proxy: one worker, connections kept on both sides, no access log.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::Plan;
use crate::client::Server;
use crate::process::{Process, only_child};
use crate::stage::{free_port, start};

/// Debian keeps it where the path of an ordinary user does not lead.
const PLACES: [&str; 3] = ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx"];

/// A running nginx.
#[derive(Debug)]
pub(super) struct Nginx {
    pub(super) server: Server,
    /// Id of its only worker, which does all the work.
    pub(super) worker: u32,
    _master: Process,
}

pub(super) async fn start_nginx(
    plan: &Plan,
    folder: &Path,
    upstream: &Server,
) -> anyhow::Result<Nginx> {
    let program = PLACES.iter().map(PathBuf::from).find(|path| path.is_file());
    let program = program.context("nginx is not installed; run `make setup`")?;
    let address = format!("127.0.0.1:{}", free_port()?);
    let server = Server::parse(&format!("http://{address}"))?;
    let config = folder.join("nginx.conf");
    std::fs::write(&config, configuration(folder, &address, upstream.authority(), plan))
        .with_context(|| format!("write {}", config.display()))?;
    let (prefix, config) = (folder.display().to_string(), config.display().to_string());
    let arguments = ["-p", &prefix, "-c", &config].map(ToOwned::to_owned);
    let cores = &plan.proxy_cores;
    let master = start("nginx", cores, folder, &program, &arguments, &server, "/hello").await?;
    Ok(Nginx { server, worker: only_child(master.id())?, _master: master })
}

fn configuration(folder: &Path, address: &str, upstream: &str, plan: &Plan) -> String {
    let folder = folder.display();
    let idle = plan.connections * 2;
    format!(
        "worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/nginx-error.log error;
worker_rlimit_nofile 65536;
events {{ worker_connections 16384; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    client_body_temp_path {folder}/nginx-body;
    proxy_temp_path {folder}/nginx-proxy;
    fastcgi_temp_path {folder}/nginx-fastcgi;
    uwsgi_temp_path {folder}/nginx-uwsgi;
    scgi_temp_path {folder}/nginx-scgi;
    upstream origin {{
        server {upstream};
        keepalive {idle};
        keepalive_requests 1000000000;
    }}
    server {{
        listen {address} backlog=4096;
        location / {{
            proxy_pass http://origin;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
        }}
    }}
}}
"
    )
}
