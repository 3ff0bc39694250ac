//! Two admins on one PostgreSQL, edits without pause, and one admin that is killed.
//!
//! At the end of each run four things are compared: what the clients were told, the rows of the database,
//! the history replayed from nothing, and what the gateway does with requests.
//!
//! **Retries.** Every edit of a rule has a number of its own, which is in the rule's path, and every rule
//! has one client. Whoever got no answer, or a refusal, asks the other admin for the rule first: if the
//! number is there the edit was made, else it is sent again. So an edit is in the history once, unless its
//! first attempt was still on the way to being committed when its rule was read; that one is then
//! there twice with the same content, and counted apart.

mod compare;
mod database;
mod editors;

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde::Serialize;

use crate::admin_api::{AdminApi, PathCondition, Rule};
use crate::client::Server;
use crate::origin::Origin;
use crate::process::{Cores, Process};
use crate::stage::{self, Folder, free_port};

use database::Database;
use editors::{Edited, Editors};

/// How long everything may take to agree after the last edit.
const SETTLE: Duration = Duration::from_secs(30);

const PASSWORD: &str = "of-this-run-1-Only!";

/// What to do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Folder of the binaries.
    pub binaries: PathBuf,
    /// A PostgreSQL server to make a database on; one is started when absent.
    pub postgres: Option<String>,
    /// Runs, one after the other on the same database.
    pub runs: u32,
    /// How long the edits of one run go on.
    pub duration: Duration,
    /// Edits per second.
    pub rate: u32,
    /// Rules.
    pub rules: u32,
    /// Clients that edit; each has its own share of the rules.
    pub clients: u32,
    /// Cut the connections on which the admins listen, twice a second.
    pub cut_listeners: bool,
    /// Have half of the notifications lost.
    pub lose_notifications: bool,
}

/// What was seen.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdminsResult {
    /// Each run.
    pub runs: Vec<Run>,
}

/// What was seen in one run.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    /// Edits that an admin answered, or that were found to have been made.
    pub acknowledged: u64,
    /// Acknowledged edits per second.
    pub rate: f64,
    /// Attempts without an answer.
    pub unanswered: u64,
    /// Edits that turned out to have been made all the same.
    pub found_made: u64,
    /// The admin that was killed, 0 or 1, and after how many milliseconds.
    pub killed: u32,
    /// See [`Run::killed`].
    pub killed_after_ms: u64,
    /// How often listening connections were cut.
    pub listeners_cut: u64,
    /// The version at the end.
    pub version: u64,
    /// From the last edit until the gateway had that version, in milliseconds.
    pub in_force_ms: u64,
    /// Rules that were compared.
    pub rules: u64,
    /// Edits that are in the history twice with the same content.
    pub repeated: u64,
    /// What does not agree, in words.
    pub faults: Vec<String>,
}

struct Scene {
    plan: Plan,
    folder: Folder,
    database: Database,
    ports: [u16; 2],
    admins: [Option<Process>; 2],
    gateway: Server,
    management: Server,
    origin: Origin,
    _gateway: Process,
    /// The ids of the rules.
    ids: Vec<String>,
    /// The last number of each rule.
    numbers: Vec<u64>,
    api: AdminApi,
}

/// Starts everything, makes the runs, and ends everything.
///
/// # Errors
/// When something cannot be started, or an admin does not come back. What does not agree is no error
/// here; see [`AdminsResult::check`].
pub async fn measure(plan: &Plan) -> anyhow::Result<AdminsResult> {
    let mut scene = Scene::start(plan.clone()).await?;
    let mut runs = Vec::new();
    for _ in 0..plan.runs {
        runs.push(scene.run().await?);
    }
    Ok(AdminsResult { runs })
}

impl Scene {
    async fn start(plan: Plan) -> anyhow::Result<Self> {
        let folder = Folder::create("admins")?;
        let database = Database::create(plan.postgres.as_deref(), plan.lose_notifications)?;
        let ports = [free_port()?, free_port()?];
        let admins = [
            Some(admin(&plan, &folder, &database, ports, 0).await?),
            Some(admin(&plan, &folder, &database, ports, 1).await?),
        ];
        let origin = Origin::builder().name("A").start()?;
        let port = free_port()?;
        let management = free_port()?;
        let urls = ports.map(|port| format!("ws://127.0.0.1:{port}/websocket")).join(",");
        let arguments = [
            format!("--server.port={port}"),
            format!("--shenyu.sync.websocket.urls={urls}"),
            format!("--shenyu.management.port={management}"),
            "--shenyu.netty.http.workerCount=1".to_owned(),
            "--shenyu.compat=standard".to_owned(),
        ];
        let program = plan.binaries.join("longmen-bootstrap");
        let server = |port| Server::parse(&format!("http://127.0.0.1:{port}"));
        let (gateway, management) = (server(port)?, server(management)?);
        let mut api = AdminApi::login(server(ports[0])?, "admin", PASSWORD).await?;
        let selector =
            api.create_selector("admins", 1, &PathCondition::pattern("/admins/**")).await?;
        api.bind(&selector, "admins", &[origin.addr().to_string()]).await?;
        for n in 0..plan.rules {
            api.create_rule(&rule(&selector, n, 0)).await?;
        }
        let ids = database.rules(&selector)?;
        ensure!(
            ids.len() == plan.rules as usize,
            "{} rules were made, expected {}",
            ids.len(),
            plan.rules
        );
        let path = "/actuator/health";
        let process =
            stage::start("gateway", &any(), folder.path(), &program, &arguments, &gateway, path)
                .await?;
        let numbers = vec![0; ids.len()];
        Ok(Self {
            plan,
            folder,
            database,
            ports,
            admins,
            gateway,
            management,
            origin,
            _gateway: process,
            ids,
            numbers,
            api,
        })
    }

    async fn run(&mut self) -> anyhow::Result<Run> {
        let begun = Instant::now();
        let selector = self.database.selector()?;
        let editors = Editors::start(
            self.plan.clone(),
            &self.api,
            self.servers()?,
            &selector,
            &self.ids,
            &self.numbers,
        );
        let mut run = Run { killed: chance(2), ..Run::default() };
        // Somewhere in the middle half, so that there are edits before and after.
        let quarter = u32::try_from(self.plan.duration.as_millis() / 4).unwrap_or(u32::MAX).max(1);
        let at = Duration::from_millis(u64::from(quarter + chance(quarter * 2)));
        let back = at + Duration::from_millis(u64::from(500 + chance(1_500)));
        let (mut killed, mut restarted) = (false, false);
        while begun.elapsed() < self.plan.duration || !restarted {
            if !killed && begun.elapsed() >= at {
                kill(&mut self.admins[run.killed as usize])?;
                (killed, run.killed_after_ms) = (true, millis(begun.elapsed()));
            }
            if killed && !restarted && begun.elapsed() >= back {
                let of = run.killed as usize;
                let process =
                    admin(&self.plan, &self.folder, &self.database, self.ports, of).await?;
                (self.admins[of], restarted) = (Some(process), true);
            }
            if self.plan.cut_listeners {
                run.listeners_cut += self.database.cut_listeners()?;
                tokio::time::sleep(Duration::from_millis(400)).await;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let edited = editors.end().await?;
        run.rate = edited.acknowledged.len() as f64 / begun.elapsed().as_secs_f64();
        self.settle(&mut run).await?;
        self.take_over(&mut run, &edited);
        self.compare(&mut run, &selector, &edited).await?;
        Ok(run)
    }

    fn servers(&self) -> anyhow::Result<[Server; 2]> {
        let [a, b] = self.ports.map(|port| Server::parse(&format!("http://127.0.0.1:{port}")));
        Ok([a?, b?])
    }

    fn take_over(&mut self, run: &mut Run, edited: &Edited) {
        run.acknowledged = edited.acknowledged.len() as u64;
        (run.unanswered, run.found_made) = (edited.unanswered, edited.found_made);
        run.faults.extend(edited.faults.iter().cloned());
        self.numbers.clone_from(&edited.numbers);
    }

    /// Waits until the gateway has the version that the database has.
    async fn settle(&self, run: &mut Run) -> anyhow::Result<()> {
        let begun = Instant::now();
        let (epoch, version) = self.database.version()?;
        run.version = version;
        loop {
            let info = compare::get(&self.management, "/actuator/info").await?.json()?;
            if info["sync"]["version"] == version && info["sync"]["epoch"] == epoch.as_str() {
                run.in_force_ms = millis(begun.elapsed());
                return Ok(());
            }
            if begun.elapsed() >= SETTLE {
                run.faults.push(format!(
                    "the gateway is at {}, expected {epoch} {version}",
                    info["sync"]
                ));
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn admin(
    plan: &Plan,
    folder: &Folder,
    database: &Database,
    ports: [u16; 2],
    of: usize,
) -> anyhow::Result<Process> {
    let port = ports[of];
    let server = Server::parse(&format!("http://127.0.0.1:{port}"))?;
    let token = folder.path().join(format!("sync-token-{of}"));
    let arguments = [
        format!("--server.port={port}"),
        format!("--spring.datasource.url={}", database.jdbc()),
        format!("--spring.datasource.username={}", database.user()),
        format!("--spring.datasource.password={}", database.password()),
        format!("--shenyu.sync.tokenPath={}", token.display()),
        format!("--shenyu.admin.password={PASSWORD}"),
    ];
    let program = plan.binaries.join("longmen-admin");
    let name = format!("admin-{of}");
    let health = "/actuator/health";
    stage::start(&name, &any(), folder.path(), &program, &arguments, &server, health).await
}

/// Kills a process at once, without a word.
fn kill(process: &mut Option<Process>) -> anyhow::Result<()> {
    let mut process = process.take().context("this admin was killed before")?;
    let id = process.id().to_string();
    let status = Command::new("kill").args(["-KILL", &id]).status().context("run kill")?;
    ensure!(status.success(), "kill -KILL {id}: {status}");
    while process.ended()?.is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn any() -> Cores {
    Cores("0-1023".to_owned())
}

/// The rule `n` as its edit `number` makes it.
fn rule(selector: &str, n: u32, number: u64) -> Rule {
    Rule {
        selector_id: selector.to_owned(),
        name: format!("rule-{n:05}"),
        sort: n + 1,
        condition: PathCondition::equal(path(n, number)),
    }
}

/// The path by which the edit `number` of the rule `n` is known.
fn path(n: u32, number: u64) -> String {
    format!("/admins/{n}/{number}")
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A number below `below`, by the hasher's keys: no more chance is needed here.
fn chance(below: u32) -> u32 {
    use std::hash::{BuildHasher as _, RandomState};
    let random = RandomState::new().hash_one(Instant::now());
    u32::try_from(random % u64::from(below.max(1))).unwrap_or(0)
}

impl AdminsResult {
    /// # Errors
    /// When something does not agree.
    pub fn check(&self) -> anyhow::Result<()> {
        let faults: usize = self.runs.iter().map(|run| run.faults.len()).sum();
        ensure!(faults == 0, "{faults} things do not agree; see the table");
        Ok(())
    }

    /// The result as a table for people.
    #[must_use]
    pub fn table(&self) -> String {
        let mut table = String::from(
            "run  edits  rate/s  unanswered  found  killed        cuts  version  in force  repeated  faults\n",
        );
        for (n, run) in self.runs.iter().enumerate() {
            table.push_str(&format!(
                "{:>3} {:>6} {:>7.0} {:>11} {:>6}  {} at {:>5} ms {:>5} {:>8} {:>6} ms {:>9} {:>7}\n",
                n + 1,
                run.acknowledged,
                run.rate,
                run.unanswered,
                run.found_made,
                run.killed,
                run.killed_after_ms,
                run.listeners_cut,
                run.version,
                run.in_force_ms,
                run.repeated,
                run.faults.len(),
            ));
            for fault in run.faults.iter().take(20) {
                table.push_str(&format!("     {fault}\n"));
            }
        }
        table
    }
}
