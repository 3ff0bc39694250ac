//! Many rules in one selector, put in place through the admin's REST API, and gateways that serve them.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use http::StatusCode;
use tokio::task::JoinSet;

use crate::admin_api::{AdminApi, PathCondition, Rule};
use crate::client::{Connection, Server};
use crate::load::{Load, LoadRun, Shape};
use crate::process::{Cores, Process};
use crate::route_set::RouteSet;
use crate::stage::{Admin, Folder, Gateway, free_port, start_origin};

/// The name that the upstream of the rules gives.
const UPSTREAM: &str = "routed";

/// The argument that has a gateway ask one rule after the other.
pub const WITHOUT_INDEX: &str = "--shenyu.matchIndex.enabled=false";

/// The most rules of a table.
const MAX_RULES: u32 = 1_000_000;

/// What is sent to a gateway before it is measured.
const WARM_UP: Shape = Shape { requests: 4_000, connections: 50 };

/// Where the programs are, where they run, and how rules are put in place.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Folder of the binaries `longmen-admin`, `longmen-bootstrap` and `longmen-bench`.
    pub binaries: PathBuf,
    /// Cores of the gateway under measurement.
    pub proxy_cores: Cores,
    /// Cores of the load generator, the upstream and the admin.
    pub other_cores: Cores,
    /// Connections to the admin while rules are put in place; at least one.
    pub setup_connections: u32,
}

/// An upstream, and a folder for everything that is measured in front of it.
#[derive(Debug)]
pub struct Site {
    setting: Setting,
    upstream: Server,
    // Fields are dropped in this order: what runs ends before its files go.
    _origin: Process,
    folder: Folder,
}

/// An admin whose rules are the routes of a set.
#[derive(Debug)]
pub struct RuleTable<'s> {
    site: &'s Site,
    set: RouteSet,
    numbers: RangeInclusive<u32>,
    admin: Admin,
    folder: PathBuf,
}

// === impl Site ===

impl Site {
    /// Starts the upstream.
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn open(name: &str, setting: &Setting) -> anyhow::Result<Self> {
        ensure!(setting.setup_connections > 0, "setup connections: expected at least 1");
        let (setting, folder) = (setting.clone(), Folder::create(name)?);
        let (origin, upstream) =
            start_origin(&setting.binaries, &setting.other_cores, folder.path(), UPSTREAM, None)
                .await?;
        Ok(Self { setting, upstream, _origin: origin, folder })
    }

    /// Starts an admin with a database of its own and puts the routes of a set in place: a rule for
    /// each in one selector for all paths, in the order of their numbers.
    ///
    /// # Errors
    /// When the admin cannot be started or refuses something.
    pub async fn put_in_place(
        &self,
        set: RouteSet,
        numbers: RangeInclusive<u32>,
    ) -> anyhow::Result<RuleTable<'_>> {
        let (first, last) = (*numbers.start(), *numbers.end());
        ensure!(
            first >= 1 && last <= MAX_RULES && first <= last,
            "rules: expected 1 to {MAX_RULES}"
        );
        let Setting { binaries, other_cores, setup_connections, .. } = &self.setting;
        let folder = self.folder.path().join(format!("{}-{first}-{last}", set.name()));
        std::fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        let admin = Admin::start(binaries, other_cores, &folder).await?;
        let mut api = admin.log_in().await?;
        let selector = api.create_selector("routes", 1, &PathCondition::pattern("/**")).await?;
        api.bind(&selector, "routes", &[self.upstream.authority().to_owned()]).await?;
        let mut lanes = JoinSet::new();
        for lane in 0..*setup_connections {
            let numbers = numbers.clone().skip(lane as usize).step_by(*setup_connections as usize);
            let api = api.at(admin.server().clone());
            lanes.spawn(fill(api, selector.clone(), set, numbers.collect()));
        }
        while let Some(filled) = lanes.join_next().await {
            filled.context("put rules in place")??;
        }
        Ok(RuleTable { site: self, set, numbers, admin, folder })
    }

    /// Sends a load to a gateway from a process of its own.
    ///
    /// # Errors
    /// When the load cannot be sent.
    pub fn load(&self, load: &Load) -> anyhow::Result<LoadRun> {
        load.send_on(&self.setting.binaries, &self.setting.other_cores)
    }
}

// === impl RuleTable ===

impl RuleTable<'_> {
    /// Starts a gateway of this admin, with more arguments, and waits until it serves the first, the
    /// middle and the last rule.
    ///
    /// # Errors
    /// When it cannot be started, or answers otherwise than the upstream.
    pub async fn gateway(&self, name: &str, arguments: &[&str]) -> anyhow::Result<Gateway> {
        let Setting { binaries, proxy_cores, .. } = &self.site.setting;
        let (port, log) = (free_port()?, self.folder.join(format!("{name}.log")));
        let mut all = vec![format!("--shenyu.management.port={}", free_port()?)];
        all.extend(arguments.iter().copied().map(ToOwned::to_owned));
        let mut gateway =
            Gateway::spawn(binaries, proxy_cores, log, port, self.admin.port(), &all)?;
        let (first, last) = (*self.numbers.start(), *self.numbers.end());
        gateway.serves(&self.set.path(first)).await.with_context(|| name.to_owned())?;
        for number in [first, u32::midpoint(first, last), last] {
            let path = self.set.path(number);
            let checked = check(&gateway.server, &path).await;
            checked.with_context(|| format!("{name}: rule {number}"))?;
        }
        let path = self.set.path(u32::midpoint(first, last));
        let load = Load { server: gateway.server.clone(), path, shape: WARM_UP, limit: None };
        let setting = self.site.setting.clone();
        // Connections, caches and the branch predictor get warm outside the measured time. Beside the
        // runtime, which closes the connections of the checks meanwhile: while they are open, the
        // gateway does not stop.
        let warm_up = move || load.send_on(&setting.binaries, &setting.other_cores);
        tokio::task::spawn_blocking(warm_up).await.context("warm up")??;
        Ok(gateway)
    }
}

async fn fill(
    mut api: AdminApi,
    selector: String,
    set: RouteSet,
    numbers: Vec<u32>,
) -> anyhow::Result<()> {
    for number in numbers {
        let condition = set.condition(number);
        let name = format!("route {number}");
        // The sort, so that the connections they come over do not change their order.
        let rule = Rule { selector_id: selector.clone(), name, sort: number, condition };
        api.create_rule(&rule).await?;
    }
    Ok(())
}

/// Checks that a gateway hands a path to our upstream, so that no error page is measured.
async fn check(server: &Server, path: &str) -> anyhow::Result<()> {
    let answer = Connection::new(server.clone()).get(path).await?;
    let ours = answer.header("x-upstream") == Some(UPSTREAM);
    let right = ours && answer.json().is_ok_and(|json| json["target"] == path);
    ensure!(
        answer.status == StatusCode::OK && right,
        "{path} is not answered by our upstream: {} {}",
        answer.status,
        answer.excerpt()
    );
    Ok(())
}
