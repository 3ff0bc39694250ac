//! What a comparison found, as figures and as a table.

use std::fmt::Write as _;

use serde::Serialize;

use super::Plan;
use crate::series::{Series, ratio_cell};
use crate::stats::Ratio;

/// What the others are compared with.
const BASE: &str = "nginx";

/// All rounds of one target.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetResult {
    /// The rounds and their medians.
    #[serde(flatten)]
    pub series: Series,
    /// Median of the ratios to nginx's processor time in the same round, with its 95 % interval.
    pub cpu_ratio: Option<Ratio>,
}

/// The whole comparison.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompareResult {
    /// Path that was asked for.
    pub path: String,
    /// Connections of the load.
    pub connections: u32,
    /// Length of one measurement in seconds.
    pub seconds: u32,
    /// One entry per target.
    pub targets: Vec<TargetResult>,
}

impl CompareResult {
    pub(super) fn new(plan: &Plan, targets: Vec<Series>) -> Self {
        let base = targets.iter().find(|target| target.name == BASE).cloned();
        let targets = targets.into_iter().map(|series| {
            let cpu_ratio = base.as_ref().and_then(|base| series.over(base).cpu);
            TargetResult { series: series.sum_up(), cpu_ratio }
        });
        let (connections, seconds) = (plan.connections, plan.seconds);
        Self { path: plan.path.clone(), connections, seconds, targets: targets.collect() }
    }

    /// Errors of all targets in all rounds.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.targets.iter().map(|target| target.series.errors).sum()
    }

    /// The result as a table for people.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = format!(
            "{}, {} connections, {} s a round\n{}   ratio to nginx [95 %]    RSS MiB  errors\n",
            self.path,
            self.connections,
            self.seconds,
            Series::HEAD
        );
        for TargetResult { series, cpu_ratio } in &self.targets {
            let _ = writeln!(
                text,
                "{} {:>23} {:>10} {:>7}",
                series.row(),
                ratio_cell(*cpu_ratio),
                series.memory(),
                series.errors
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::tests::series;

    #[test]
    fn each_target_is_compared_with_nginx() {
        let plan = Plan {
            binaries: "/".into(),
            path: "/4k".into(),
            connections: 16,
            seconds: 1,
            rounds: 3,
            proxy_cores: crate::process::Cores("0".into()),
            other_cores: crate::process::Cores("1".into()),
            upstream: None,
            others: Vec::new(),
        };
        let target = |name: &str, cpu: [Option<f64>; 3]| {
            let rates = [10.0, 30.0, 20.0].into_iter();
            series(name, &rates.zip(cpu).collect::<Vec<_>>())
        };
        // The machine slows down to a third; the ratio stays.
        let result = CompareResult::new(
            &plan,
            vec![
                target("longmen", [Some(11.0), Some(22.0), Some(33.0)]),
                target("nginx", [Some(10.0), Some(20.0), Some(30.0)]),
                target("direct", [None; 3]),
            ],
        );
        let [longmen, nginx, direct] = &result.targets[..] else { panic!("three targets") };
        assert!((longmen.cpu_ratio.expect("a ratio").median - 1.1).abs() < 1e-9);
        assert!((nginx.cpu_ratio.expect("a ratio").median - 1.0).abs() < 1e-9);
        assert_eq!(direct.cpu_ratio, None);
        assert_eq!(longmen.series.cpu_us, Some(22.0));
        assert!((direct.series.rate - 20.0).abs() < 1e-9);
        assert_eq!(result.errors(), 9);
        assert!(result.table().contains("longmen"), "{}", result.table());
    }
}
