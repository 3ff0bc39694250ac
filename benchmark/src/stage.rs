//! An admin and its gateways as processes of one measurement, in a folder of their own.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use http::StatusCode;

use crate::admin_api::AdminApi;
use crate::client::{Server, wait_for};
use crate::process::{Cores, Process};

/// How long a program may take until it serves.
const START_LIMIT: Duration = Duration::from_secs(20);

/// How long a successor may take to take over, and its predecessor to end.
const TURN_LIMIT: Duration = Duration::from_secs(30);

/// The password of user `admin` at every admin that is started here.
pub const PASSWORD: &str = "of-this-run-1-Only!";

/// Where processes keep their files while they are measured. Removed when dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

/// A running admin.
#[derive(Debug)]
pub struct Admin {
    port: u16,
    server: Server,
    process: Process,
}

/// Where an admin keeps its data.
#[derive(Debug, Clone)]
pub enum Store {
    /// A SQLite file in the folder of the measurement.
    Sqlite,
    /// A PostgreSQL database, by its address with user and password.
    Postgres(String),
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
    /// Starts an admin of this folder of binaries with a database of its own, and waits until it
    /// serves.
    ///
    /// # Errors
    /// When it cannot be started, or does not serve within 20 s.
    pub async fn start(binaries: &Path, cores: &Cores, folder: &Path) -> anyhow::Result<Self> {
        Self::start_on(binaries, cores, folder, free_port()?, &Store::Sqlite).await
    }

    /// Starts an admin on a port and a store, and waits until it serves.
    ///
    /// # Errors
    /// When it cannot be started, or does not serve within 20 s.
    pub async fn start_on(
        binaries: &Path,
        cores: &Cores,
        folder: &Path,
        port: u16,
        store: &Store,
    ) -> anyhow::Result<Self> {
        let server = Server::parse(&format!("http://127.0.0.1:{port}"))?;
        let mut arguments = vec![
            format!("--server.port={port}"),
            format!("--shenyu.sync.tokenPath={}", folder.join("sync-token").display()),
            format!("--shenyu.admin.password={PASSWORD}"),
        ];
        let mut variables = Vec::new();
        match store {
            Store::Sqlite => {
                let path = folder.join("longmen.db");
                arguments.push(format!("--shenyu.database.path={}", path.display()));
            }
            Store::Postgres(url) => variables.push(("DATABASE_URL", url.clone())),
        }
        let log = folder.join(format!("admin-{port}.log"));
        let program = binaries.join("longmen-admin");
        let process = Process::start_with("admin", cores, &log, &program, &arguments, &variables)?;
        let mut admin = Self { port, server, process };
        let health = "/actuator/health";
        let served = wait_for(&admin.server, health, StatusCode::OK, START_LIMIT).await;
        admin.process.ensure_running(&log)?;
        served?;
        Ok(admin)
    }

    /// Where it serves.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Its address.
    #[must_use]
    pub const fn server(&self) -> &Server {
        &self.server
    }

    /// Ends it at once, by SIGKILL.
    ///
    /// # Errors
    /// When the system does not let us.
    pub fn kill(self) -> anyhow::Result<()> {
        self.process.kill()
    }

    /// Logs in at it.
    ///
    /// # Errors
    /// When it cannot be reached.
    pub async fn log_in(&self) -> anyhow::Result<AdminApi> {
        log_in(&self.server).await
    }
}

// === impl Gateway ===

impl Gateway {
    /// Starts a gateway on a port, fed by the admin on another port of this machine, with one worker for data and more arguments. It
    /// may not serve yet.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn spawn(
        binaries: &Path,
        cores: &Cores,
        log: PathBuf,
        port: u16,
        admin_port: u16,
        arguments: &[String],
    ) -> anyhow::Result<Self> {
        let server = Server::parse(&format!("http://127.0.0.1:{port}"))?;
        let mut all = vec![
            format!("--server.port={port}"),
            format!("--shenyu.sync.websocket.urls=ws://127.0.0.1:{admin_port}/websocket"),
            "--shenyu.netty.http.workerCount=1".to_owned(),
            "--shenyu.compat=standard".to_owned(),
        ];
        // One that takes over has the file of its predecessor.
        if let Some(folder) = log.parent() {
            let file = folder.join(format!("gateway-{port}.snapshot"));
            all.push(format!("--shenyu.snapshot.path={}", file.display()));
        }
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

    /// Waits for a text in its log.
    ///
    /// # Errors
    /// When it does not say so within 30 s.
    pub async fn says(&self, text: &str) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            let log = std::fs::read_to_string(&self.log).unwrap_or_default();
            if log.contains(text) {
                return Ok(());
            }
            ensure!(begun.elapsed() < TURN_LIMIT, "a gateway never said {text:?}: {log}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Waits for its end, which must be a good one.
    ///
    /// # Errors
    /// When it ends otherwise, or not within 30 s.
    pub async fn ends(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            match self.process.ended()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => bail!("a gateway ended with {status}"),
                None => ensure!(begun.elapsed() < TURN_LIMIT, "a gateway does not end"),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Logs in at an admin that was started here.
///
/// # Errors
/// When it cannot be reached.
pub async fn log_in(server: &Server) -> anyhow::Result<AdminApi> {
    AdminApi::login(server.clone(), "admin", PASSWORD).await
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

/// Starts the mock upstream under a name, with one worker, and waits until it serves. It listens on
/// `address`, host:port, or on a free port of this machine.
///
/// # Errors
/// When it cannot be started, or does not serve within 20 s.
pub async fn start_origin(
    binaries: &Path,
    cores: &Cores,
    folder: &Path,
    name: &str,
    address: Option<&str>,
) -> anyhow::Result<(Process, Server)> {
    let address = match address {
        Some(address) => address.to_owned(),
        None => format!("127.0.0.1:{}", free_port()?),
    };
    let arguments = ["origin", "--name", name, "--workers", "1", "--bind", &address];
    let arguments = arguments.map(ToOwned::to_owned);
    let server = Server::parse(&format!("http://{address}"))?;
    let program = binaries.join("longmen-bench");
    let process = start("upstream", cores, folder, &program, &arguments, &server, "/hello").await?;
    Ok((process, server))
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
