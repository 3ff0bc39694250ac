//! The rules that are in place while edits are measured.

use std::sync::Arc;

use anyhow::{Context as _, ensure};
use tokio::task::JoinSet;

use super::Plan;
use crate::admin_api::{AdminApi, PathCondition, Rule};
use crate::client::Server;

/// Selectors taken away by one call.
const DELETE_CHUNK: usize = 50;

/// The selectors made for one measurement. Their paths begin with a prefix of this run alone, so
/// that what an earlier run left behind cannot answer for them.
#[derive(Debug)]
pub(super) struct Table {
    prefix: String,
    selectors: Vec<String>,
    paths: Arc<[String]>,
}

impl Table {
    /// Creates and binds the selectors and creates their rules, over several connections.
    pub(super) async fn put_in_place(plan: &Plan, admin: &Server) -> anyhow::Result<Self> {
        ensure!((1..=1_000).contains(&plan.selectors), "selectors: expected 1 to 1,000");
        ensure!((1..=1_000).contains(&plan.rules), "rules: expected 1 to 1,000");
        ensure!(!plan.upstreams.is_empty(), "upstreams: expected at least one host:port");
        let prefix = format!("/edits-{:x}", jiff::Timestamp::now().as_millisecond());
        let lanes = plan.setup_connections.clamp(1, plan.selectors);
        let mut tasks = JoinSet::new();
        for lane in 0..lanes {
            let numbers: Vec<u32> = (lane..plan.selectors).step_by(lanes as usize).collect();
            let (plan, admin, prefix) = (plan.clone(), admin.clone(), prefix.clone());
            tasks.spawn(async move { fill(&plan, admin, &prefix, numbers).await });
        }
        let mut selectors = vec![String::new(); plan.selectors as usize];
        while let Some(done) = tasks.join_next().await {
            for (number, id) in done.context("put rules in place")?? {
                selectors[number as usize] = id;
            }
        }
        let paths = (0..plan.selectors)
            .flat_map(|selector| (0..plan.rules).map(move |rule| (selector, rule)))
            .map(|(selector, rule)| path(&prefix, selector, rule))
            .collect();
        Ok(Self { prefix, selectors, paths })
    }

    /// The ids of the selectors, in the order of their `sort`.
    pub(super) fn selectors(&self) -> &[String] {
        &self.selectors
    }

    /// All paths that a rule serves.
    pub(super) fn paths(&self) -> Arc<[String]> {
        Arc::clone(&self.paths)
    }

    /// Paths of the first, a middle and the last rule, and of one rule of each hundredth selector.
    pub(super) fn samples(&self) -> impl Iterator<Item = &str> {
        let rules = self.paths.len() / self.selectors.len();
        let spread = self.paths.iter().step_by(rules * 100);
        spread.chain(self.paths.last()).map(String::as_str)
    }

    /// A path inside selector `number` that no rule serves yet.
    pub(super) fn spare_path(&self, number: usize, name: &str) -> String {
        format!("{}/s{number:04}/{name}", self.prefix)
    }

    /// Takes the selectors and all that belongs to them away.
    pub(super) async fn remove(&self, api: &mut AdminApi) -> anyhow::Result<()> {
        for chunk in self.selectors.chunks(DELETE_CHUNK) {
            api.delete_selectors(chunk).await?;
        }
        Ok(())
    }
}

async fn fill(
    plan: &Plan,
    admin: Server,
    prefix: &str,
    numbers: Vec<u32>,
) -> anyhow::Result<Vec<(u32, String)>> {
    let mut api = AdminApi::login(admin, &plan.user, &plan.password).await?;
    let mut made = Vec::with_capacity(numbers.len());
    for number in numbers {
        let name = format!("{}-s{number:04}", prefix.trim_start_matches('/'));
        let condition = PathCondition::pattern(format!("{prefix}/s{number:04}/**"));
        let id = api.create_selector(&name, number + 1, &condition).await?;
        api.bind(&id, &name, &plan.upstreams).await?;
        for rule in 0..plan.rules {
            let rule = Rule {
                selector_id: id.clone(),
                name: format!("r{rule}"),
                sort: rule + 1,
                condition: PathCondition::equal(path(prefix, number, rule)),
            };
            api.create_rule(&rule).await?;
        }
        made.push((number, id));
    }
    Ok(made)
}

fn path(prefix: &str, selector: u32, rule: u32) -> String {
    format!("{prefix}/s{selector:04}/r{rule}")
}
