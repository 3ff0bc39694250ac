//! Other proxies for the same requests: nginx and HAProxy as Debian has them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use super::page::Column;
use super::{OddRequest, run, upstream};

/// How long a proxy may take to listen, and to end.
const START_LIMIT: Duration = Duration::from_secs(10);

/// How long an answer may take before the request counts as not answered.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// A proxy that ends with this value.
#[derive(Debug)]
struct Peer {
    child: Child,
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the requests through nginx and HAProxy, each with a configuration of its own in a temporary
/// folder.
///
/// # Errors
/// A proxy is not installed, does not start, or loses the connection to the upstream.
pub async fn columns(requests: &[OddRequest]) -> anyhow::Result<Vec<Column>> {
    let folder = std::env::temp_dir().join(format!("longmen-odd-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    let outcome = async {
        let mut columns = Vec::new();
        for (name, start) in [("nginx", nginx as Start), ("HAProxy", haproxy as Start)] {
            columns.push(column(name, start, &folder, requests).await?);
        }
        Ok(columns)
    }
    .await;
    // Served this run alone; a leftover in the temporary folder harms nobody.
    let _ = std::fs::remove_dir_all(&folder);
    outcome
}

type Start = fn(&Path, SocketAddr, SocketAddr) -> anyhow::Result<Child>;

async fn column(
    name: &str,
    start: Start,
    folder: &Path,
    requests: &[OddRequest],
) -> anyhow::Result<Column> {
    let behind = upstream(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    let front = free_address()?;
    let _peer = Peer { child: start(folder, front, behind.address())? };
    listening(front).await.with_context(|| format!("{name} does not listen"))?;
    let mut outcomes = Vec::with_capacity(requests.len());
    for request in requests {
        let outcome = run(request, front, &behind, ANSWER_LIMIT).await;
        outcomes.push(outcome.with_context(|| format!("{name}: {}", request.name))?);
    }
    Ok(Column { name: version(name)?, outcomes })
}

fn free_address() -> anyhow::Result<SocketAddr> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").context("find a free port")?;
    Ok(listener.local_addr()?)
}

async fn listening(address: SocketAddr) -> anyhow::Result<()> {
    let begun = Instant::now();
    while tokio::net::TcpStream::connect(address).await.is_err() {
        ensure!(begun.elapsed() < START_LIMIT, "nothing listens on {address}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// A program that is in `PATH` or where Debian puts what is for root.
fn program(name: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    match folders.map(|folder| folder.join(name)).find(|program| program.is_file()) {
        Some(program) => Ok(program),
        None => bail!("{name} is not installed; try: apt-get install {name}"),
    }
}

fn version(name: &str) -> anyhow::Result<String> {
    let output = Command::new(program(&name.to_lowercase())?).arg("-v").output()?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let version = said
        .split([' ', '/', '\n'])
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .unwrap_or_default();
    Ok(format!("{name} {}", version.split(['-', '+']).next().unwrap_or_default()))
}

fn nginx(folder: &Path, front: SocketAddr, behind: SocketAddr) -> anyhow::Result<Child> {
    let file = folder.join("nginx.conf");
    let here = folder.display();
    // `proxy_pass` without a path sends the target as it came.
    let text = format!(
        "daemon off;\nmaster_process off;\npid {here}/nginx.pid;\nerror_log {here}/nginx.log;\nevents {{}}\nhttp {{\n  \
         access_log off;\n  client_body_temp_path {here}/body;\n  proxy_temp_path {here}/proxy;\n  \
         fastcgi_temp_path {here}/fastcgi;\n  uwsgi_temp_path {here}/uwsgi;\n  scgi_temp_path {here}/scgi;\n  \
         large_client_header_buffers 4 16k;\n  upstream behind {{ server {behind}; }}\n  server {{\n    listen {front};\n    \
         location / {{\n      proxy_pass http://behind;\n      proxy_http_version 1.1;\n      \
         proxy_set_header Host {behind};\n      proxy_set_header Connection \"\";\n      proxy_request_buffering off;\n    }}\n  }}\n}}\n"
    );
    std::fs::write(&file, text)?;
    let mut command = Command::new(program("nginx")?);
    command.arg("-c").arg(&file).arg("-e").arg(folder.join("nginx.log"));
    spawn(command, folder, "nginx")
}

fn haproxy(folder: &Path, front: SocketAddr, behind: SocketAddr) -> anyhow::Result<Child> {
    let file = folder.join("haproxy.cfg");
    let text = format!(
        "global\n  maxconn 100\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 10s\n  timeout server 10s\n  \
         timeout http-request 5s\nfrontend front\n  bind {front}\n  default_backend behind\nbackend behind\n  \
         http-request set-header Host {behind}\n  server one {behind}\n"
    );
    std::fs::write(&file, text)?;
    let mut command = Command::new(program("haproxy")?);
    command.arg("-db").arg("-f").arg(&file);
    spawn(command, folder, "haproxy")
}

fn spawn(mut command: Command, folder: &Path, name: &str) -> anyhow::Result<Child> {
    let log = std::fs::File::create(folder.join(format!("{name}.out")))?;
    command
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .with_context(|| format!("start {name}"))
}
