//! Requests that are sent at the very moment at which their upstream closes the idle connection.
//!
//! The upstreams close a connection one second after their last answer, with FIN or with RST. All
//! clients of a group send at once, and answers take longer than the clients are apart, so that each
//! client's request has a connection to the upstream of its own, which is then idle for 0.98 to 1.02
//! seconds. Every request has a number; the upstreams count how often each was executed.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use crate::admin_api::{PathCondition, Rule};
use crate::client::{Connection, Server};
use crate::process::Cores;
use crate::stage::{Admin, Folder, Gateway, free_port};

const ID: HeaderName = HeaderName::from_static("x-id");

/// How long the upstreams keep an idle connection.
const KEPT: Duration = Duration::from_secs(1);

/// How long an answer takes: longer than the clients of a group are apart.
const ANSWER: Duration = Duration::from_millis(60);

/// The clients of a group send within this time.
const APART: Duration = Duration::from_millis(40);

/// Bytes of a POST.
const BODY: usize = 1_024;

/// Failures that are told in words.
const MAX_EXAMPLES: usize = 3;

/// How an upstream closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Close {
    /// In good order.
    Fin,
    /// By a reset.
    Rst,
}

/// How to measure.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Folder of the binaries.
    pub binaries: PathBuf,
    /// Clients of each of the four groups.
    pub clients: u32,
    /// Requests of each client.
    pub requests: u32,
    /// The gateway's way to upstreams, `hyper` or `reqwest`.
    pub strategy: String,
}

/// What one group saw.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// GET, or POST with a body of 1 KiB.
    pub method: &'static str,
    /// How its upstream closes.
    pub close: Close,
    /// Requests that were sent.
    pub sent: u64,
    /// Requests without the right answer.
    pub failed: u64,
    /// The first few of those, in words.
    pub examples: Vec<String>,
    /// Requests that the upstream executed more than once.
    pub executed_twice: u64,
}

/// What all groups saw.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IdleCloseResult {
    /// The gateway's way to upstreams.
    pub strategy: String,
    /// The four groups.
    pub groups: Vec<Group>,
}

/// How often each request was executed.
type Executed = Arc<Mutex<HashMap<String, u32>>>;

/// Starts everything, sends, and stops everything again.
///
/// # Errors
/// When something cannot be started or routed.
pub async fn measure(plan: &Plan) -> anyhow::Result<IdleCloseResult> {
    let folder = Folder::create("idle-close")?;
    let any = Cores("0-1023".to_owned());
    let admin = Admin::start(&plan.binaries, &any, folder.path()).await?;
    let mut api = admin.log_in().await?;
    let mut groups = Vec::new();
    for (method, close) in [
        (Method::GET, Close::Fin),
        (Method::GET, Close::Rst),
        (Method::POST, Close::Fin),
        (Method::POST, Close::Rst),
    ] {
        let executed = Executed::default();
        let upstream = start_upstream(close, Arc::clone(&executed)).await?;
        let path = format!("/{method}/{close:?}").to_lowercase();
        let condition = PathCondition::equal(path.clone());
        let selector = api.create_selector(&path[1..], 1, &condition).await?;
        api.bind(&selector, &path[1..], &[upstream.to_string()]).await?;
        let name = path[1..].to_owned();
        api.create_rule(&Rule { selector_id: selector, name, sort: 1, condition }).await?;
        groups.push((method, close, path, executed));
    }
    let (log, port) = (folder.path().join("gateway.log"), free_port()?);
    let arguments = [
        format!("--shenyu.management.port={}", free_port()?),
        format!("--shenyu.httpclient.strategy={}", plan.strategy),
    ];
    let mut gateway = Gateway::spawn(&plan.binaries, &any, log, port, admin.port(), &arguments)?;
    gateway.serves(&groups[0].2).await?;
    let mut running = JoinSet::new();
    for (number, (method, close, path, executed)) in groups.into_iter().enumerate() {
        let (server, plan) = (gateway.server.clone(), plan.clone());
        running.spawn(async move {
            (number, group(&plan, server, method, close, path, executed).await)
        });
    }
    let mut seen = Vec::new();
    while let Some(ended) = running.join_next().await {
        let (number, group) = ended.context("a group")?;
        seen.push((number, group?));
    }
    seen.sort_by_key(|(number, _)| *number);
    let groups = seen.into_iter().map(|(_, group)| group).collect();
    Ok(IdleCloseResult { strategy: plan.strategy.clone(), groups })
}

async fn group(
    plan: &Plan,
    gateway: Server,
    method: Method,
    close: Close,
    path: String,
    executed: Executed,
) -> anyhow::Result<Group> {
    let begun = Instant::now();
    let mut clients = JoinSet::new();
    for number in 0..plan.clients {
        let (gateway, method, path) = (gateway.clone(), method.clone(), path.clone());
        let (requests, all) = (plan.requests, plan.clients);
        clients.spawn(async move {
            let offset = APART * number / all;
            client(gateway, method, path, number, begun + offset, requests).await
        });
    }
    let mut failures = Vec::new();
    while let Some(ended) = clients.join_next().await {
        failures.extend(ended.context("a client")?);
    }
    let failed = failures.len() as u64;
    failures.truncate(MAX_EXAMPLES);
    let executed = executed.lock().unwrap_or_else(PoisonError::into_inner);
    let executed_twice = executed.values().filter(|count| **count > 1).count() as u64;
    Ok(Group {
        method: if method == Method::GET { "GET" } else { "POST" },
        close,
        sent: u64::from(plan.clients) * u64::from(plan.requests),
        failed,
        examples: failures,
        executed_twice,
    })
}

/// Returns what failed, in words.
async fn client(
    gateway: Server,
    method: Method,
    path: String,
    number: u32,
    begun: Instant,
    requests: u32,
) -> Vec<String> {
    let mut connection = Connection::new(gateway);
    let body = if method == Method::GET { Bytes::new() } else { Bytes::from(vec![b'x'; BODY]) };
    let (mut failures, mut due) = (Vec::new(), begun);
    for count in 0..requests {
        // The gap between an answer and the next request goes from 0.98 to 1.02 s, again and again.
        let gap = KEPT - Duration::from_millis(20) + Duration::from_millis(u64::from(count % 41));
        due += ANSWER + gap;
        sleep_until(due).await;
        let id = format!("{number}-{count}");
        let mut headers = HeaderMap::new();
        if let Ok(id) = HeaderValue::from_str(&id) {
            headers.insert(ID, id);
        }
        match connection.send(method.clone(), &path, headers, body.clone()).await {
            Ok(answer) if answer.status == StatusCode::OK && answer.header("x-id") == Some(&id) => {
            }
            Ok(answer) => failures.push(format!("status {}: {}", answer.status, answer.excerpt())),
            Err(error) => failures.push(format!("{error:#}")),
        }
    }
    failures
}

async fn start_upstream(close: Close, executed: Executed) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await.context("listen as an upstream")?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let executed = Arc::clone(&executed);
            // A connection that breaks is the gateway's doing, and seen there.
            tokio::spawn(async move { connection(stream, close, &executed).await });
        }
    });
    Ok(address)
}

/// Serves requests until the connection was idle for too long.
async fn connection(
    mut stream: TcpStream,
    close: Close,
    executed: &Mutex<HashMap<String, u32>>,
) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let mut seen = Vec::new();
    loop {
        let head = loop {
            if let Some(end) = seen.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            let Ok(read) = timeout(KEPT, stream.read_buf(&mut seen)).await else {
                if close == Close::Rst {
                    // Closing with nothing to linger for resets.
                    socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
                }
                return Ok(());
            };
            ensure!(read? > 0, "closed by the gateway");
        };
        let text = String::from_utf8_lossy(&seen[..head]).to_ascii_lowercase();
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.map(|value| value.trim().to_owned())
        };
        let length: usize = value("content-length:").map_or(Ok(0), |text| text.parse())?;
        while seen.len() < head + length {
            ensure!(stream.read_buf(&mut seen).await? > 0, "closed within a body");
        }
        seen.drain(..head + length);
        let id = value("x-id:").unwrap_or_default();
        if !id.is_empty() {
            let mut executed = executed.lock().unwrap_or_else(PoisonError::into_inner);
            *executed.entry(id.clone()).or_default() += 1;
        }
        tokio::time::sleep(ANSWER).await;
        let answer = format!("HTTP/1.1 200 OK\r\nX-Id: {id}\r\nContent-Length: 2\r\n\r\nok");
        stream.write_all(answer.as_bytes()).await?;
    }
}

impl IdleCloseResult {
    /// # Errors
    /// When a GET failed, a request was executed twice, or a thousandth of the POSTs failed.
    pub fn check(&self) -> anyhow::Result<()> {
        for group in &self.groups {
            let Group { method, close, sent, failed, executed_twice, .. } = group;
            let most = if *method == "GET" { 0 } else { sent / 1_000 };
            ensure!(*failed <= most, "{method}, {close:?}: {failed} of {sent} failed");
            ensure!(
                *method == "GET" || *executed_twice == 0,
                "{method}, {close:?}: {executed_twice} were executed twice"
            );
        }
        Ok(())
    }

    /// The result as a table for people.
    #[must_use]
    pub fn table(&self) -> String {
        let mut table = format!(
            "strategy {}\n{:<6} {:<5} {:>7} {:>7} {:>6}  examples\n",
            self.strategy, "method", "close", "sent", "failed", "twice"
        );
        for group in &self.groups {
            let Group { method, close, sent, failed, examples, executed_twice } = group;
            table.push_str(&format!(
                "{method:<6} {:<5} {sent:>7} {failed:>7} {executed_twice:>6}  {}\n",
                format!("{close:?}").to_lowercase(),
                examples.join(" | ")
            ));
        }
        table
    }
}
