//! How soon an edit is in force: from the admin's answer to the first request that feels it.
//!
//! Many rules are put in place, a steady load runs over all of them, and one connection of its own
//! polls the path an edit is about. All of it goes through the doors a user has: the stock REST
//! API of the admin and the public port of the gateway.

mod load;
mod operations;
mod probe;
mod table;

use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::Serialize;

pub use load::LoadResult;
pub use operations::{Operation, OperationResult};

use crate::admin_api::AdminApi;
use crate::client::Server;
use crate::stats::Summary;
use load::Load;
use probe::Prober;
use table::Table;

/// What to measure.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The admin, `http://host:port`.
    pub admin: String,
    /// The user to log in as.
    pub user: String,
    /// The user's password.
    #[serde(skip)]
    pub password: String,
    /// The gateway, `http://host:port`.
    pub gateway: String,
    /// The upstreams of all selectors, `host:port`; they answer as the mock upstream does.
    pub upstreams: Vec<String>,
    /// Number of selectors; at most 1,000, which is the highest `sort`.
    pub selectors: u32,
    /// Number of rules in each.
    pub rules: u32,
    /// Requests per second spread over all rules; 0 for none.
    pub rate: u32,
    /// Connections the load runs on.
    pub connections: u32,
    /// How often each operation is measured.
    pub repeats: u32,
    /// Pause of the poller between an answer and its next request, in microseconds.
    pub poll_us: u64,
    /// Pause between two measured operations, in milliseconds.
    pub pause_ms: u64,
    /// Connections to the admin while the rules are put in place.
    pub setup_connections: u32,
    /// How long an edit may take until it counts as failed, in milliseconds.
    pub limit_ms: u64,
    /// Leave the rules in place at the end.
    pub keep: bool,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EditsResult {
    /// What was asked for.
    pub plan: Plan,
    /// How long it took to put the rules in place by REST, in seconds.
    pub setup_seconds: f64,
    /// How long after the last answer of the admin the last of them was served, in seconds.
    pub settle_seconds: f64,
    /// One entry per operation.
    pub operations: Vec<OperationResult>,
    /// The load that ran meanwhile.
    pub load: LoadResult,
}

/// Puts the rules in place, measures, and takes them away again.
///
/// # Errors
/// When the admin or the gateway cannot be reached, or the rules do not come into force. Edits that
/// do not are failures in the result, not errors.
pub async fn measure(plan: Plan) -> anyhow::Result<EditsResult> {
    let admin = Server::parse(&plan.admin)?;
    let gateway = Server::parse(&plan.gateway)?;
    let started = Instant::now();
    let mut api = AdminApi::login(admin.clone(), &plan.user, &plan.password).await?;
    let table = Table::put_in_place(&plan, &admin).await?;
    let setup = started.elapsed();
    eprintln!(
        "{} rules in {} selectors put in place in {:.1} s",
        table.paths().len(),
        table.selectors().len(),
        setup.as_secs_f64()
    );
    let measured = measure_with(&plan, &table, gateway, &mut api).await;
    if !plan.keep {
        table.remove(&mut api).await.context("take the rules away again")?;
    }
    let (settle, operations, load) = measured?;
    Ok(EditsResult {
        plan,
        setup_seconds: setup.as_secs_f64(),
        settle_seconds: settle.as_secs_f64(),
        operations,
        load,
    })
}

async fn measure_with(
    plan: &Plan,
    table: &Table,
    gateway: Server,
    api: &mut AdminApi,
) -> anyhow::Result<(Duration, Vec<OperationResult>, LoadResult)> {
    let prober = Prober::start(
        gateway.clone(),
        Duration::from_micros(plan.poll_us),
        Duration::from_millis(plan.limit_ms),
    )?;
    let started = Instant::now();
    for path in table.samples() {
        prober.expect(path, probe::Expect::Served).await.context("rules just put in place")?;
    }
    let settle = started.elapsed();
    let load = Load::start(gateway, table.paths(), plan.rate, plan.connections).await?;
    let operations = operations::measure(plan, table, &prober, api).await;
    let load = load.stop().await?;
    Ok((settle, operations?, load))
}

impl EditsResult {
    /// Whether every edit came into force and every request of the load was answered rightly.
    #[must_use]
    pub fn clean(&self) -> bool {
        self.load.failures.is_empty() && self.operations.iter().all(|entry| entry.failures == 0)
    }

    /// The result as a table for people.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = String::from(
            "operation   edits failed   effect ms: p50     p90     p99     max   REST ms: p50     p99\n",
        );
        let ms = |us: u64| f64::from(u32::try_from(us).unwrap_or(u32::MAX)) / 1_000.0;
        for entry in &self.operations {
            let Summary { count, p50_us, p90_us, p99_us, max_us } = entry.effect;
            text.push_str(&format!(
                "{:<10} {:>6} {:>6} {:>16.2} {:>7.2} {:>7.2} {:>7.2} {:>14.2} {:>7.2}\n",
                entry.operation.name(),
                count,
                entry.failures,
                ms(p50_us),
                ms(p90_us),
                ms(p99_us),
                ms(max_us),
                ms(entry.rest.p50_us),
                ms(entry.rest.p99_us),
            ));
        }
        let load = &self.load;
        let failed: u64 = load.failures.values().sum();
        text.push_str(&format!(
            "load: {} requests at {:.0}/s, {failed} failed, latency p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms\n",
            load.latency.count,
            load.rate,
            ms(load.latency.p50_us),
            ms(load.latency.p99_us),
            ms(load.latency.max_us),
        ));
        for (what, count) in &load.failures {
            text.push_str(&format!("  {count} × {what}\n"));
        }
        text
    }
}
