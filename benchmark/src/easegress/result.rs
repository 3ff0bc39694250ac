//! What was found, beside what was published.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use super::Plan;
use crate::load::Shape;
use crate::route_set::RouteSet;
use crate::series::{Comparison, Series, ratio_cell};

/// The whole measurement.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EasegressResult {
    /// Routes of a set.
    pub routes: u32,
    /// The number of the route that was asked for.
    pub asked: u32,
    /// When a load ended although requests were left, in milliseconds; absent where all were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_ms: Option<u64>,
    /// One entry per set of routes.
    pub sets: Vec<SetResult>,
}

/// One set of routes.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SetResult {
    /// The set.
    pub set: RouteSet,
    /// The path that was asked for.
    pub path: String,
    /// How long it took to put the rules in place by REST, in seconds.
    pub setup_seconds: f64,
    /// What Easegress published.
    pub published: Published,
    /// One entry per load.
    pub shapes: Vec<ShapeResult>,
}

/// Requests per second that Easegress published, on other machines: for orientation only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Published {
    /// Of its router `Ordered`.
    pub ordered: u32,
    /// Of its router `RadixTree`.
    pub radix_tree: u32,
}

/// One load.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShapeResult {
    /// How many requests over how many connections.
    #[serde(flatten)]
    pub shape: Shape,
    /// All rules, asked one after the other.
    pub ordered: Series,
    /// All rules, looked up in the index.
    pub index: Series,
    /// The rule asked for alone.
    pub one_rule: Series,
    /// The index compared with the order.
    pub index_to_ordered: Comparison,
    /// All rules in the index compared with one rule.
    pub index_to_one_rule: Comparison,
    /// All rules in order compared with one rule.
    pub ordered_to_one_rule: Comparison,
}

// === impl Published ===

impl Published {
    const fn of(set: RouteSet) -> Self {
        let (ordered, radix_tree) = match set {
            RouteSet::Static => (27_000, 65_000),
            RouteSet::Prefix => (26_000, 65_000),
            RouteSet::Variable => (1_700, 66_000),
        };
        Self { ordered, radix_tree }
    }
}

// === impl ShapeResult ===

impl ShapeResult {
    pub(super) fn new(shape: Shape, [ordered, index, one_rule]: [Series; 3]) -> Self {
        Self {
            shape,
            index_to_ordered: index.over(&ordered),
            index_to_one_rule: index.over(&one_rule),
            ordered_to_one_rule: ordered.over(&one_rule),
            ordered: ordered.sum_up(),
            index: index.sum_up(),
            one_rule: one_rule.sum_up(),
        }
    }

    const fn series(&self) -> [&Series; 3] {
        [&self.ordered, &self.index, &self.one_rule]
    }

    fn write(&self, text: &mut String) {
        let Shape { requests, connections } = self.shape;
        let _ = writeln!(text, "{requests} requests over {connections} connections");
        let _ = writeln!(text, "{}    RSS MiB  errors", Series::HEAD);
        for series in self.series() {
            let (row, memory, errors) = (series.row(), series.memory(), series.errors);
            let _ = writeln!(text, "{row} {memory:>10} {errors:>7}");
        }
        for (what, Comparison { rate, cpu }) in [
            ("index ÷ ordered", self.index_to_ordered),
            ("index ÷ one rule", self.index_to_one_rule),
            ("ordered ÷ one rule", self.ordered_to_one_rule),
        ] {
            let (rate, cpu) = (ratio_cell(rate), ratio_cell(cpu));
            let _ = writeln!(text, "{what:<20} requests/s {rate:<22} CPU {cpu}");
        }
    }
}

// === impl SetResult ===

impl SetResult {
    pub(super) fn new(
        plan: &Plan,
        set: RouteSet,
        setup: Duration,
        shapes: Vec<ShapeResult>,
    ) -> Self {
        Self {
            set,
            path: set.path(plan.asked),
            setup_seconds: setup.as_secs_f64(),
            published: Published::of(set),
            shapes,
        }
    }
}

// === impl EasegressResult ===

impl EasegressResult {
    pub(super) fn new(plan: &Plan, sets: Vec<SetResult>) -> Self {
        let millis = |limit: Duration| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        Self { routes: plan.routes, asked: plan.asked, limit_ms: plan.limit.map(millis), sets }
    }

    /// Errors of all gateways in all rounds.
    #[must_use]
    pub fn errors(&self) -> u64 {
        let shapes = self.sets.iter().flat_map(|set| &set.shapes);
        shapes.flat_map(ShapeResult::series).map(|series| series.errors).sum()
    }

    /// The result as a table for people.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = format!("route {} of {}", self.asked, self.routes);
        match self.limit_ms {
            Some(limit) => {
                let _ = writeln!(text, "; no load goes on for longer than {limit} ms");
            }
            None => text.push('\n'),
        }
        for set in &self.sets {
            let Published { ordered, radix_tree } = set.published;
            let _ = writeln!(
                text,
                "\n{}: {}, put in place in {:.1} s\n\
                 published by Easegress, elsewhere: ordered {ordered}, radix tree {radix_tree} requests/s",
                set.set.name(),
                set.path,
                set.setup_seconds
            );
            for shape in &set.shapes {
                shape.write(&mut text);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Cores;
    use crate::rule_table::Setting;
    use crate::series::tests::series;

    fn result() -> EasegressResult {
        let setting = Setting {
            binaries: "/".into(),
            proxy_cores: Cores("0".into()),
            other_cores: Cores("1".into()),
            setup_connections: 4,
        };
        let shape = Shape { requests: 90_000, connections: 100 };
        let plan = Plan {
            setting,
            sets: vec![RouteSet::Static, RouteSet::Variable],
            routes: 10_000,
            asked: 5_000,
            shapes: vec![shape],
            limit: Some(Duration::from_millis(1_500)),
            rounds: 2,
        };
        let sets = plan.sets.iter().map(|set| {
            let measured = ShapeResult::new(
                shape,
                [
                    series("ordered", &[(10.0, Some(100.0)), (20.0, Some(90.0))]),
                    series("index", &[(30.0, Some(20.0)), (80.0, Some(18.0))]),
                    series("one rule", &[(30.0, Some(20.0)), (80.0, Some(18.0))]),
                ],
            );
            SetResult::new(&plan, *set, Duration::from_secs(30), vec![measured])
        });
        EasegressResult::new(&plan, sets.collect())
    }

    #[test]
    fn the_index_is_compared_with_the_order_and_all_rules_with_one() {
        let shape = &result().sets[0].shapes[0];
        let medians = |comparison: Comparison| {
            (comparison.rate.expect("a ratio").median, comparison.cpu.expect("a ratio").median)
        };
        assert_eq!(medians(shape.index_to_ordered), (3.5, 0.2));
        assert_eq!(medians(shape.index_to_one_rule), (1.0, 1.0));
        let (rate, cpu) = medians(shape.ordered_to_one_rule);
        assert!((rate - (1.0 / 3.0 + 0.25) / 2.0).abs() < 1e-9 && (cpu - 5.0).abs() < 1e-9);
        assert_eq!(result().errors(), 12);
    }

    #[test]
    fn the_table_has_what_was_published_beside() {
        let table = result().table();
        for line in [
            "route 5000 of 10000; no load goes on for longer than 1500 ms",
            "static: /a35fe7f7fe8217b4369a0af4244d1fca, put in place in 30.0 s",
            "published by Easegress, elsewhere: ordered 27000, radix tree 65000 requests/s",
            "published by Easegress, elsewhere: ordered 1700, radix tree 66000 requests/s",
            "variable: /users/longmen/5000, put in place in 30.0 s",
            "90000 requests over 100 connections",
            "index ÷ ordered      requests/s 3.50                   CPU 0.20",
        ] {
            assert!(table.lines().any(|found| found == line), "{line:?} is not in\n{table}");
        }
    }

    #[test]
    fn the_json_has_the_figures_of_every_round() {
        let json = serde_json::to_value(result()).expect("it is JSON");
        let shape = &json["sets"][1]["shapes"][0];
        assert_eq!(json["sets"][1]["set"], "variable");
        assert_eq!(json["sets"][1]["published"]["radixTree"], 66_000);
        assert_eq!((&shape["requests"], &shape["connections"]), (&90_000.into(), &100.into()));
        assert_eq!(shape["index"]["rounds"][1]["rate"], 80.0);
        assert_eq!(shape["index"]["rounds"][1]["residentKib"], 2_048);
        assert_eq!(shape["indexToOrdered"]["rate"]["median"], 3.5);
    }
}
