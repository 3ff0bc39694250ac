//! An admin and its gateways as processes of one measurement, in a folder of their own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use http::StatusCode;

use crate::admin_api::AdminApi;
use crate::client::{Server, wait_for};
use crate::process::{Cores, Process};

/// How long a program may take until it serves.
const START_LIMIT: Duration = Duration::from_secs(20);

const PASSWORD: &str = "of-this-run-1-Only!";

/// Where processes keep their files while they are measured. Removed when dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

/// A running admin with a database of its own.
#[derive(Debug)]
pub struct Admin {
    port: u16,
    server: Server,
    _process: Process,
}

/// A running gateway.
#[derive(Debug)]
pub struct Gateway {
    /// Where it serves.
    pub server: Server,
    /// Its process.
    pub process: Process,
    /// Where its log is.
    pub log: PathBuf,
}

// === impl Folder ===

impl Folder {
    /// Makes a folder for this process.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(name: &str) -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("longmen-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).with_context(|| format!("create {}", path.display()))?;
        Ok(Self(path))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Its content served this run alone; a leftover in the temporary folder harms nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

// === impl Admin ===

impl Admin {
    /// Starts an admin of this folder of binaries, and waits until it serves.
    ///
    /// # Errors
    /// When it cannot be started, or does not serve within 20 s.
    pub async fn start(binaries: &Path, cores: &Cores, folder: &Path) -> anyhow::Result<Self> {
        let port = free_port()?;
        let server = Server::parse(&format!("http://127.0.0.1:{port}"))?;
        let arguments = [
            format!("--server.port={port}"),
            format!("--shenyu.database.path={}", folder.join("longmen.db").display()),
            format!("--shenyu.sync.tokenPath={}", folder.join("sync-token").display()),
            format!("--shenyu.admin.password={PASSWORD}"),
        ];
        let program = binaries.join("longmen-admin");
        let health = "/actuator/health";
        let process = start("admin", cores, folder, &program, &arguments, &server, health).await?;
        Ok(Self { port, server, _process: process })
    }

    /// Logs in at it.
    ///
    /// # Errors
    /// When it cannot be reached.
    pub async fn log_in(&self) -> anyhow::Result<AdminApi> {
        AdminApi::login(self.server.clone(), "admin", PASSWORD).await
    }
}

// === impl Gateway ===

impl Gateway {
    /// Starts a gateway on a port, fed by an admin, with one worker for data and more arguments. It
    /// may not serve yet.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn spawn(
        binaries: &Path,
        cores: &Cores,
        log: PathBuf,
        port: u16,
        admin: &Admin,
        arguments: &[String],
    ) -> anyhow::Result<Self> {
        let server = Server::parse(&format!("http://127.0.0.1:{port}"))?;
        let mut all = vec![
            format!("--server.port={port}"),
            format!("--shenyu.sync.websocket.urls=ws://127.0.0.1:{}/websocket", admin.port),
            "--shenyu.netty.http.workerCount=1".to_owned(),
            "--shenyu.compat=standard".to_owned(),
        ];
        all.extend_from_slice(arguments);
        let program = binaries.join("longmen-bootstrap");
        let process = Process::start("gateway", cores, &log, &program, &all)?;
        Ok(Self { server, process, log })
    }

    /// Waits until it answers `path` with 200.
    ///
    /// # Errors
    /// When it has ended, or does not within 20 s.
    pub async fn serves(&mut self, path: &str) -> anyhow::Result<()> {
        let served = wait_for(&self.server, path, StatusCode::OK, START_LIMIT).await;
        self.process.ensure_running(&self.log)?;
        served.map(drop)
    }
}

/// Starts a program and waits until it answers `path` with 200. Its log is named after it.
///
/// # Errors
/// When it cannot be started, has ended, or does not serve within 20 s.
pub async fn start(
    name: &str,
    cores: &Cores,
    folder: &Path,
    program: &Path,
    arguments: &[String],
    server: &Server,
    path: &str,
) -> anyhow::Result<Process> {
    let log = folder.join(format!("{name}.log"));
    let mut process = Process::start(name, cores, &log, program, arguments)?;
    let served = wait_for(server, path, StatusCode::OK, START_LIMIT).await;
    process.ensure_running(&log)?;
    served?;
    Ok(process)
}

/// A free port of 127.0.0.1. Another process may take it before it is used; then the start fails.
///
/// # Errors
/// When there is none.
pub fn free_port() -> anyhow::Result<u16> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").context("find a free port")?;
    Ok(listener.local_addr()?.port())
}

/// The folder this program is in, where its companions are too.
///
/// # Errors
/// When the system does not tell.
pub fn own_folder() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("find this program")?;
    Ok(program.parent().context("this program is in no folder")?.to_owned())
}
