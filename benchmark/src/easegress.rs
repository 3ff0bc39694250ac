//! The comparison of routers that Easegress published: 10,000 routes, one of them asked for, looked up in
//! order and by an index.
//!
//! Every round sends each load to each gateway once, one after the other, since only ratios within a
//! round are worth comparing.

mod result;

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

pub use result::{EasegressResult, Published, SetResult, ShapeResult};

use crate::load::{Load, Shape};
use crate::route_set::RouteSet;
use crate::rule_table::{Setting, Site, WITHOUT_INDEX};
use crate::series::{Round, Series};
use crate::stage::Gateway;

/// What to measure.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Programs and cores.
    pub setting: Setting,
    /// The sets of routes, each measured by itself; at least one.
    pub sets: Vec<RouteSet>,
    /// Routes of a set.
    pub routes: u32,
    /// The number of the route that is asked for, from 1.
    pub asked: u32,
    /// The loads; at least one.
    pub shapes: Vec<Shape>,
    /// When a load ends although requests are left; `None` where all are sent.
    pub limit: Option<Duration>,
    /// Number of rounds, at least one.
    pub rounds: u32,
}

/// Starts everything, measures, and stops everything again.
///
/// # Errors
/// When something cannot be started or measured, or a route is not served by the upstream.
pub async fn measure(plan: &Plan) -> anyhow::Result<EasegressResult> {
    ensure!(plan.rounds > 0, "rounds: expected at least 1");
    ensure!(!plan.sets.is_empty(), "sets: expected at least one");
    ensure!(!plan.shapes.is_empty(), "shapes: expected at least one");
    ensure!(
        (1..=plan.routes).contains(&plan.asked),
        "asked: expected one of the routes 1 to {}, found {}",
        plan.routes,
        plan.asked
    );
    let site = Site::open("easegress", &plan.setting).await?;
    let mut sets = Vec::with_capacity(plan.sets.len());
    for set in &plan.sets {
        sets.push(measure_set(plan, &site, *set).await.with_context(|| set.name())?);
    }
    Ok(EasegressResult::new(plan, sets))
}

async fn measure_set(plan: &Plan, site: &Site, set: RouteSet) -> anyhow::Result<SetResult> {
    let begun = Instant::now();
    let all = site.put_in_place(set, 1..=plan.routes).await?;
    let setup = begun.elapsed();
    eprintln!("{}: {} rules put in place in {:.1} s", set.name(), plan.routes, setup.as_secs_f64());
    let one = site.put_in_place(set, plan.asked..=plan.asked).await?;
    let gateways = [
        ("ordered", all.gateway("ordered", &[WITHOUT_INDEX]).await?),
        ("index", all.gateway("index", &[]).await?),
        ("one rule", one.gateway("one-rule", &[]).await?),
    ];
    let mut shapes = Vec::new();
    for shape in &plan.shapes {
        let series = gateways.each_ref().map(|(name, _)| Series::new(name));
        shapes.push((*shape, series));
    }
    for number in 1..=plan.rounds {
        for (shape, series) in &mut shapes {
            for ((name, gateway), series) in gateways.iter().zip(series) {
                let round = round(plan, site, set, *shape, gateway);
                series.rounds.push(round.with_context(|| format!("{name}, {shape}"))?);
            }
        }
        eprint!("\rround {number} of {}", plan.rounds);
    }
    eprintln!();
    let shapes = shapes.into_iter().map(|(shape, series)| ShapeResult::new(shape, series));
    Ok(SetResult::new(plan, set, setup, shapes.collect()))
}

fn round(
    plan: &Plan,
    site: &Site,
    set: RouteSet,
    shape: Shape,
    gateway: &Gateway,
) -> anyhow::Result<Round> {
    let (server, path) = (gateway.server.clone(), set.path(plan.asked));
    let load = Load { server, path, shape, limit: plan.limit };
    Round::measure(Some(gateway.process.id()), || site.load(&load))
}
