//! A service on ShenYu's published Java starter registers itself with our admin, is served by our
//! gateway, is restarted and stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::admin_api::{AdminApi, DEFAULT_NAMESPACE};
use crate::client::{Connection, Server, json_headers, wait_for};
use crate::process::{Cores, Process};
use crate::stage::{Admin, Folder, Gateway, PASSWORD, free_port};

/// How long a Java program may take to start and register.
const START_LIMIT: Duration = Duration::from_secs(90);

/// How long a change may take to show.
const LIMIT: Duration = Duration::from_secs(30);

/// Restarts of an instance under load.
const RESTARTS: u32 = 3;

/// One thing to look at.
const FIND: &str = "/stock/order/findById?id=7";

/// What to run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Folder of our binaries.
    pub binaries: PathBuf,
    /// The program, as Maven packages it.
    pub jar: PathBuf,
}

struct Scene<'a> {
    plan: &'a Plan,
    folder: &'a Path,
    admin: Admin,
    gateway: Gateway,
}

/// An instance of the service.
struct Instance {
    port: u16,
    process: Process,
}

/// Runs all steps, and prints a line for each.
///
/// # Errors
/// When anything is not as a user of the starter expects it.
pub async fn run(plan: &Plan) -> anyhow::Result<()> {
    let folder = Folder::create("interop")?;
    let admin = Admin::start(&plan.binaries, &any(), folder.path()).await?;
    let port = free_port()?;
    let arguments = [format!("--shenyu.management.port={}", free_port()?)];
    let log = folder.path().join("gateway.log");
    let gateway = Gateway::spawn(&plan.binaries, &any(), log, port, admin.port(), &arguments)?;
    let scene = Scene { plan, folder: folder.path(), admin, gateway };
    let begun = Instant::now();
    let step = |text: &str| println!("ok {:>6.1} s  {text}", begun.elapsed().as_secs_f64());

    let first = scene.start(free_port()?).await?;
    wait_for(&scene.gateway.server, FIND, StatusCode::OK, LIMIT).await?;
    step("an instance has registered itself and is served");
    scene.every_endpoint(first.port).await?;
    step("every endpoint answers through the gateway");
    let once = scene.rows().await?;
    ensure!(!once.selectors.is_empty() && once.rules.len() >= 4, "few rows: {once:?}");

    let second = scene.start(free_port()?).await?;
    scene.until_served_by(&BTreeSet::from([first.port, second.port])).await?;
    step("a second instance shares the requests");
    let twice = scene.rows().await?;
    ensure!(twice == once, "one instance made {once:#?}, two {twice:#?}");

    let load = Load::start(scene.gateway.server.clone());
    let mut instance = first;
    for _ in 0..RESTARTS {
        let (stopping, port) = (instance.process, instance.port);
        ends(stopping).await?;
        instance = scene.start(port).await?;
        scene.until_served_by(&BTreeSet::from([port, second.port])).await?;
    }
    let (right, wrong) = load.end().await?;
    ensure!(wrong.is_empty(), "of {} requests {} failed: {wrong:#?}", right, wrong.len());
    step(&format!("{RESTARTS} restarts of an instance under load: {right} right, 0 failed"));
    let after = scene.rows().await?;
    ensure!(after == once, "one registration made {once:#?}, restarts {after:#?}");
    step("the same rows as one registration");

    ends(instance.process).await?;
    scene.until_served_by(&BTreeSet::from([second.port])).await?;
    ends(second.process).await?;
    wait_for(&scene.gateway.server, FIND, StatusCode::SERVICE_UNAVAILABLE, LIMIT).await?;
    step("instances that stop are taken out; without any the answer is 503");
    let last = scene.start(free_port()?).await?;
    wait_for(&scene.gateway.server, FIND, StatusCode::OK, LIMIT).await?;
    ends(last.process).await?;
    step("one that comes later is served again");
    Ok(())
}

fn any() -> Cores {
    Cores("0-1023".to_owned())
}

/// What registrations made: names, without ids and times.
#[derive(Debug, PartialEq, Eq)]
struct Rows {
    selectors: Vec<String>,
    rules: Vec<String>,
    metadata: Vec<String>,
}

impl Scene<'_> {
    async fn start(&self, port: u16) -> anyhow::Result<Instance> {
        let arguments = [
            "-Xmx160m".to_owned(),
            "-jar".to_owned(),
            self.plan.jar.display().to_string(),
            format!("--server.port={port}"),
            format!("--shenyu.register.serverLists=http://127.0.0.1:{}", self.admin.port()),
            format!("--shenyu.register.props.password={PASSWORD}"),
        ];
        let log = self.folder.join(format!("service-{port}.log"));
        let mut process =
            Process::start("the service", &any(), &log, Path::new("java"), &arguments)?;
        let server = Server::parse(&format!("http://127.0.0.1:{port}"))?;
        let served = wait_for(&server, "/catalog/1", StatusCode::OK, START_LIMIT).await;
        process.ensure_running(&log)?;
        served?;
        Ok(Instance { port, process })
    }

    async fn every_endpoint(&self, port: u16) -> anyhow::Result<()> {
        let mut connection = Connection::new(self.gateway.server.clone());
        let find = connection.get(FIND).await?;
        let expected = json!({ "port": port, "call": "findById", "value": "7" });
        ensure!(find.json()? == expected, "{FIND}: {}", find.excerpt());
        let path = connection.get("/stock/order/path/12/a%20name").await?;
        let expected = json!({ "port": port, "call": "path", "value": "12/a name" });
        ensure!(path.json()? == expected, "path: {}", path.excerpt());
        let body = Bytes::from_static(br#"{"name":"new"}"#);
        let save = connection.send(Method::POST, "/stock/order/save", json_headers(), body).await?;
        let expected = json!({ "port": port, "call": "save", "value": "new" });
        ensure!(save.json()? == expected, "save: {}", save.excerpt());
        let item = connection.get("/stock/catalog/5").await?;
        ensure!(item.json()? == json!({ "call": "item", "value": "5" }), "{}", item.excerpt());
        let missing = connection.get("/stock/order/unregistered").await?;
        ensure!(missing.status == StatusCode::NOT_FOUND, "unregistered: {}", missing.status);
        ensure!(missing.json()?["code"] == -102, "unregistered: {}", missing.excerpt());
        Ok(())
    }

    /// Waits until these instances, and no others, answer: each of them, twenty times in a row.
    async fn until_served_by(&self, ports: &BTreeSet<u16>) -> anyhow::Result<()> {
        let mut connection = Connection::new(self.gateway.server.clone());
        let begun = Instant::now();
        loop {
            let mut seen = BTreeMap::<u16, u32>::new();
            for _ in 0..20 {
                let answer = connection.get(FIND).await?;
                let port = answer.json()?["port"].as_u64().context("an answer without port")?;
                *seen.entry(u16::try_from(port)?).or_default() += 1;
            }
            if seen.keys().copied().collect::<BTreeSet<_>>() == *ports {
                return Ok(());
            }
            ensure!(begun.elapsed() < LIMIT, "served by {seen:?}, expected {ports:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn rows(&self) -> anyhow::Result<Rows> {
        let mut api = self.admin.log_in().await?;
        Ok(Rows {
            selectors: names(&mut api, "/selector?", "name").await?,
            rules: names(&mut api, "/rule?", "name").await?,
            metadata: names(&mut api, "/meta-data/queryList?", "path").await?,
        })
    }
}

async fn names(api: &mut AdminApi, path: &str, member: &str) -> anyhow::Result<Vec<String>> {
    let target = format!("{path}namespaceId={DEFAULT_NAMESPACE}&currentPage=1&pageSize=100");
    let data = api.call(Method::GET, &target, None).await?;
    let rows = data["dataList"].as_array().with_context(|| format!("{target}: no dataList"))?;
    let mut names: Vec<String> =
        rows.iter().filter_map(|row| row[member].as_str().map(str::to_owned)).collect();
    names.sort();
    Ok(names)
}

/// Stops an instance as a rolling deploy does, and waits for its end.
async fn ends(mut process: Process) -> anyhow::Result<()> {
    process.terminate()?;
    let begun = Instant::now();
    while process.ended()?.is_none() {
        ensure!(begun.elapsed() < START_LIMIT, "the service does not end");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// Requests without pause, each of which must be answered by an instance.
struct Load {
    stop: CancellationToken,
    right: Arc<AtomicU64>,
    task: tokio::task::JoinHandle<Vec<String>>,
}

impl Load {
    fn start(gateway: Server) -> Self {
        let (stop, right) = (CancellationToken::new(), Arc::new(AtomicU64::new(0)));
        let (token, count) = (stop.clone(), Arc::clone(&right));
        let task = tokio::spawn(async move {
            let mut connection = Connection::new(gateway);
            let mut wrong = Vec::new();
            while !token.is_cancelled() {
                match one(&mut connection).await {
                    Ok(()) => _ = count.fetch_add(1, Ordering::Relaxed),
                    Err(error) => wrong.push(format!("{error:#}")),
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            wrong
        });
        Self { stop, right, task }
    }

    async fn end(self) -> anyhow::Result<(u64, Vec<String>)> {
        self.stop.cancel();
        let wrong = self.task.await.context("the load")?;
        Ok((self.right.load(Ordering::Relaxed), wrong))
    }
}

async fn one(connection: &mut Connection) -> anyhow::Result<()> {
    let answer = connection.get(FIND).await?;
    let body: Value = answer.json()?;
    if answer.status != StatusCode::OK || body["value"] != "7" {
        bail!("status {}: {}", answer.status, answer.excerpt());
    }
    Ok(())
}
