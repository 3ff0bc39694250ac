//! What a comparison found, as figures and as a table.

use std::fmt::Write as _;

use serde::Serialize;

use super::Plan;
use crate::stats::{median, median_interval};
use crate::wrk::WrkRun;

/// What the others are compared with.
const BASE: &str = "nginx";

/// One measurement of one target.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Round {
    /// What the load generator reported.
    #[serde(flatten)]
    pub run: WrkRun,
    /// User and system time of the target's process per request, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_us: Option<f64>,
    /// Memory of the target's process after the run, in KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resident_kib: Option<u64>,
}

/// All rounds of one target, and their medians.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetResult {
    /// Its name.
    pub name: String,
    /// Median of the requests per second.
    pub rate: f64,
    /// Median of the median latencies, in milliseconds.
    pub p50_ms: f64,
    /// Median of the 99th percentiles, in milliseconds.
    pub p99_ms: f64,
    /// Median of the processor time per request, in microseconds.
    pub cpu_us: Option<f64>,
    /// Median of the ratios to nginx's processor time in the same round, with its 95 % interval.
    pub cpu_ratio: Option<Ratio>,
    /// Errors in all rounds.
    pub errors: u64,
    /// The single measurements.
    pub rounds: Vec<Round>,
}

/// A median with the interval that holds the true one with at least 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ratio {
    /// The median.
    pub median: f64,
    /// The interval; absent when there are fewer than six rounds.
    pub interval: Option<(f64, f64)>,
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

impl TargetResult {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    fn sum_up(&mut self, base: &[Option<f64>]) {
        let middle = |value: fn(&Round) -> f64| {
            median(&self.rounds.iter().map(value).collect::<Vec<_>>()).unwrap_or_default()
        };
        let cpu: Vec<f64> = self.rounds.iter().filter_map(|round| round.cpu_us).collect();
        let ratios: Vec<f64> = self
            .rounds
            .iter()
            .zip(base)
            .filter_map(|(round, base)| Some(round.cpu_us? / base.filter(|base| *base > 0.0)?))
            .collect();
        self.rate = middle(|round| round.run.rate);
        self.p50_ms = middle(|round| round.run.p50_ms);
        self.p99_ms = middle(|round| round.run.p99_ms);
        self.cpu_us = median(&cpu);
        self.cpu_ratio =
            median(&ratios).map(|median| Ratio { median, interval: median_interval(&ratios) });
        self.errors = self.rounds.iter().map(|round| round.run.errors).sum();
    }
}

impl CompareResult {
    pub(super) fn new(plan: &Plan, mut targets: Vec<TargetResult>) -> Self {
        let base = targets.iter().find(|target| target.name == BASE);
        let base: Vec<_> =
            base.map_or_else(Vec::new, |base| base.rounds.iter().map(|it| it.cpu_us).collect());
        for target in &mut targets {
            target.sum_up(&base);
        }
        let (connections, seconds) = (plan.connections, plan.seconds);
        Self { path: plan.path.clone(), connections, seconds, targets }
    }

    /// Errors of all targets in all rounds.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.targets.iter().map(|target| target.errors).sum()
    }

    /// The result as a table for people.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = format!(
            "{}, {} connections, {} s a round\n\
             target       requests/s   p50 ms   p99 ms   CPU µs/request   ratio to nginx [95 %]    \
             RSS MiB  errors\n",
            self.path, self.connections, self.seconds
        );
        for target in &self.targets {
            let cpu = target.cpu_us.map_or_else(|| "-".to_owned(), |us| format!("{us:.2}"));
            let ratio = target.cpu_ratio.map_or_else(|| "-".to_owned(), |ratio| ratio.to_text());
            let last = target.rounds.last().and_then(|round| round.resident_kib);
            let rss = last.map_or_else(|| "-".to_owned(), |kib| (kib / 1_024).to_string());
            let _ = writeln!(
                text,
                "{:<12} {:>10.0} {:>8.2} {:>8.2} {cpu:>16} {ratio:>23} {rss:>10} {:>7}",
                target.name, target.rate, target.p50_ms, target.p99_ms, target.errors
            );
        }
        text
    }
}

impl Ratio {
    fn to_text(self) -> String {
        let interval =
            self.interval.map(|(low, high)| format!(" [{low:.2}–{high:.2}]")).unwrap_or_default();
        format!("{:.2}{interval}", self.median)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(rate: f64, cpu_us: Option<f64>) -> Round {
        let run = WrkRun { requests: 1, rate, p50_ms: 1.0, p99_ms: 2.0, errors: 1 };
        Round { run, cpu_us, resident_kib: cpu_us.map(|_| 2_048) }
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
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
        let target = |name: &str, cpu: [Option<f64>; 3]| TargetResult {
            rounds: cpu
                .into_iter()
                .zip([10.0, 30.0, 20.0])
                .map(|(cpu, rate)| round(rate, cpu))
                .collect(),
            ..TargetResult::new(name)
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
        assert_eq!(longmen.cpu_us, Some(22.0));
        assert!((direct.rate - 20.0).abs() < 1e-9);
        assert_eq!(result.errors(), 9);
        assert!(result.table().contains("longmen"), "{}", result.table());
    }
}
