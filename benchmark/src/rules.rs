//! What it costs a request that there are 10,000 rules rather than one, wherever its rule stands.
//!
//! Every round asks for the only rule of one gateway and for the first, the middle and the last rule of
//! another, one after the other.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde::Serialize;

use crate::load::{Load, Shape};
use crate::route_set::RouteSet;
use crate::rule_table::{Setting, Site};
use crate::series::{Comparison, Round, Series, ratio_cell};

/// What to measure.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Programs and cores.
    pub setting: Setting,
    /// How the rules are made.
    pub set: RouteSet,
    /// The number of rules to compare with one; at least two.
    pub rules: u32,
    /// Connections of the load; at least one.
    pub connections: u32,
    /// Length of one measurement.
    pub time: Duration,
    /// Number of rounds, at least one.
    pub rounds: u32,
}

/// What was found.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RulesResult {
    /// How the rules were made.
    pub set: RouteSet,
    /// The number of rules that were compared with one.
    pub rules: u32,
    /// Connections of the load.
    pub connections: u32,
    /// Length of one measurement in seconds.
    pub seconds: f64,
    /// The rule that is alone.
    pub one_rule: Series,
    /// The rules among all the others: the first, the middle, the last.
    pub positions: Vec<Position>,
}

/// One rule among all the others.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Position {
    /// Its rounds and their medians.
    #[serde(flatten)]
    pub series: Series,
    /// Compared with the rule that is alone.
    pub to_one_rule: Comparison,
}

/// Starts everything, measures, and stops everything again.
///
/// # Errors
/// When something cannot be started or measured, or a rule is not served by the upstream.
pub async fn measure(plan: &Plan) -> anyhow::Result<RulesResult> {
    ensure!(plan.rounds > 0, "rounds: expected at least 1");
    ensure!(plan.rules > 1, "rules: expected at least 2");
    ensure!(plan.connections > 0, "connections: expected at least 1");
    ensure!(!plan.time.is_zero(), "seconds: expected at least 1");
    let site = Site::open("rules", &plan.setting).await?;
    let middle = u32::midpoint(1, plan.rules);
    let one = site.put_in_place(plan.set, middle..=middle).await?;
    let many = site.put_in_place(plan.set, 1..=plan.rules).await?;
    eprintln!("{} rules put in place", plan.rules);
    let one = one.gateway("one-rule", &[]).await?;
    let many = many.gateway("many-rules", &[]).await?;
    let mut targets = [
        ("one rule", &one, middle),
        ("first", &many, 1),
        ("middle", &many, middle),
        ("last", &many, plan.rules),
    ]
    .map(|(name, gateway, number)| (Series::new(name), gateway, number));
    // As many as there is time for.
    let shape = Shape { requests: u64::MAX, connections: plan.connections };
    for number in 1..=plan.rounds {
        for (series, gateway, rule) in &mut targets {
            let (server, path) = (gateway.server.clone(), plan.set.path(*rule));
            let load = Load { server, path, shape, limit: Some(plan.time) };
            let round = Round::measure(Some(gateway.process.id()), || site.load(&load));
            series.rounds.push(round.with_context(|| series.name.clone())?);
        }
        eprint!("\rround {number} of {}", plan.rounds);
    }
    eprintln!();
    Ok(RulesResult::new(plan, targets.map(|(series, ..)| series)))
}

impl RulesResult {
    fn new(plan: &Plan, [one_rule, positions @ ..]: [Series; 4]) -> Self {
        let positions = positions.map(|series| Position {
            to_one_rule: series.over(&one_rule),
            series: series.sum_up(),
        });
        Self {
            set: plan.set,
            rules: plan.rules,
            connections: plan.connections,
            seconds: plan.time.as_secs_f64(),
            one_rule: one_rule.sum_up(),
            positions: positions.into(),
        }
    }

    /// Errors of all rounds.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.one_rule.errors + self.positions.iter().map(|it| it.series.errors).sum::<u64>()
    }

    /// The result as a table for people.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = format!(
            "{} {} rules, {} connections, {} s a round\n\
             {}    RSS MiB  errors   to one rule: requests/s   CPU [95 %]\n",
            self.rules,
            self.set.name(),
            self.connections,
            self.seconds,
            Series::HEAD
        );
        let mut row = |series: &Series, rate: &str, cpu: &str| {
            let (memory, errors) = (series.memory(), series.errors);
            let line = format!("{} {memory:>10} {errors:>7}   {rate:<23}   {cpu}", series.row());
            let _ = writeln!(text, "{}", line.trim_end());
        };
        row(&self.one_rule, "", "");
        for Position { series, to_one_rule: Comparison { rate, cpu } } in &self.positions {
            row(series, &ratio_cell(*rate), &ratio_cell(*cpu));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Cores;
    use crate::series::tests::series;

    #[test]
    fn every_position_is_compared_with_the_rule_that_is_alone() {
        let plan = Plan {
            setting: Setting {
                binaries: "/".into(),
                proxy_cores: Cores("0".into()),
                other_cores: Cores("1".into()),
                setup_connections: 4,
            },
            set: RouteSet::Static,
            rules: 10_000,
            connections: 16,
            time: Duration::from_secs(3),
            rounds: 2,
        };
        let result = RulesResult::new(
            &plan,
            [
                series("one rule", &[(100.0, Some(10.0)), (50.0, Some(20.0))]),
                series("first", &[(100.0, Some(10.0)), (50.0, Some(20.0))]),
                series("middle", &[(90.0, Some(11.0)), (45.0, Some(22.0))]),
                series("last", &[(50.0, Some(20.0)), (25.0, Some(40.0))]),
            ],
        );
        let found: Vec<_> = result
            .positions
            .iter()
            .map(|Position { series, to_one_rule: Comparison { rate, cpu } }| {
                (series.name.as_str(), ratio_cell(*rate), ratio_cell(*cpu))
            })
            .collect();
        let expected =
            [("first", "1.00", "1.00"), ("middle", "0.90", "1.10"), ("last", "0.50", "2.00")];
        assert_eq!(
            found,
            expected.map(|(name, rate, cpu)| (name, rate.to_owned(), cpu.to_owned()))
        );
        assert_eq!(result.errors(), 8);
        let table = result.table();
        assert!(table.starts_with("10000 static rules, 16 connections, 3 s a round\n"), "{table}");
        assert!(
            table.lines().any(|line| line.starts_with("last ") && line.ends_with(" 2.00")),
            "{table}"
        );
        let json = serde_json::to_value(&result).expect("it is JSON");
        assert_eq!(json["positions"][2]["toOneRule"]["rate"]["median"], 0.5);
        assert_eq!(json["oneRule"]["rounds"][1]["rate"], 50.0);
    }
}
