//! One thing measured in several rounds, and how it compares with another of the same rounds.

use serde::Serialize;

use crate::load::LoadRun;
use crate::process::{CpuTime, resident_kib};
use crate::stats::{Ratio, median};

/// The processor time from which on it is told per request. The kernel counts in ticks of 10 ms.
const MIN_CPU_US: f64 = 200_000.0;

/// One measurement.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Round {
    /// What the load generator reported.
    #[serde(flatten)]
    pub run: LoadRun,
    /// User and system time of the process per request, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_us: Option<f64>,
    /// Memory of the process after the run, in KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resident_kib: Option<u64>,
}

/// All rounds, and their medians.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Series {
    /// Its name in tables.
    pub name: String,
    /// Median of the requests per second.
    pub rate: f64,
    /// Median of the median latencies, in milliseconds.
    pub p50_ms: f64,
    /// Median of the 99th percentiles, in milliseconds.
    pub p99_ms: f64,
    /// Median of the processor time per request, in microseconds; of rounds with at least 0.2 s of it.
    pub cpu_us: Option<f64>,
    /// Errors in all rounds.
    pub errors: u64,
    /// The single measurements.
    pub rounds: Vec<Round>,
}

/// How a series compares with another, round by round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    /// Requests per second over those of the other.
    pub rate: Option<Ratio>,
    /// Processor time per request over that of the other.
    pub cpu: Option<Ratio>,
}

// === impl Round ===

impl Round {
    /// Has a load sent and looks at the process meanwhile, where there is one to look at.
    ///
    /// # Errors
    /// When the load fails, nothing was answered, or there is no such process.
    pub fn measure(
        pid: Option<u32>,
        load: impl FnOnce() -> anyhow::Result<LoadRun>,
    ) -> anyhow::Result<Self> {
        let cpu = |pid: Option<u32>| pid.map(CpuTime::of).transpose();
        let before = cpu(pid)?;
        let run = load()?;
        let after = cpu(pid)?;
        anyhow::ensure!(run.requests > 0, "no request was answered");
        let used = before.zip(after).map(|(before, after)| after.micros_since(before));
        #[expect(clippy::cast_precision_loss, reason = "both are far below 2^52")]
        let cpu_us = used.map(|used| used as f64 / run.requests as f64);
        Ok(Self { run, cpu_us, resident_kib: pid.map(resident_kib).transpose()? })
    }

    /// The processor time per request, where it is more than a few ticks in all.
    fn exact_cpu_us(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let requests = self.run.requests as f64;
        self.cpu_us.filter(|us| us * requests >= MIN_CPU_US)
    }
}

// === impl Series ===

impl Series {
    /// The head of a table of [`Series::row`]s.
    pub const HEAD: &str = "target       requests/s   p50 ms   p99 ms   CPU µs/request";

    /// Of no rounds yet.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Takes the medians of the rounds.
    #[must_use]
    pub fn sum_up(mut self) -> Self {
        let middle = |value: fn(&Round) -> f64| {
            median(&self.rounds.iter().map(value).collect::<Vec<_>>()).unwrap_or_default()
        };
        let cpu: Vec<f64> = self.rounds.iter().filter_map(Round::exact_cpu_us).collect();
        self.rate = middle(|round| round.run.rate);
        self.p50_ms = middle(|round| round.run.p50_ms);
        self.p99_ms = middle(|round| round.run.p99_ms);
        self.cpu_us = median(&cpu);
        self.errors = self.rounds.iter().map(|round| round.run.errors).sum();
        self
    }

    /// Compares with another series of the same rounds: medians of the ratios within a round.
    #[must_use]
    pub fn over(&self, base: &Self) -> Comparison {
        let ratios = |value: fn(&Round) -> Option<f64>| -> Vec<f64> {
            let pairs = self.rounds.iter().zip(&base.rounds);
            pairs
                .filter_map(|(round, base)| Some(value(round)? / value(base)?))
                .filter(|ratio| ratio.is_finite())
                .collect()
        };
        Comparison {
            rate: Ratio::of(&ratios(|round| Some(round.run.rate))),
            cpu: Ratio::of(&ratios(Round::exact_cpu_us)),
        }
    }

    /// A row of a table for people: name, requests per second, latencies, processor time.
    #[must_use]
    pub fn row(&self) -> String {
        let cpu = self.cpu_us.map_or_else(|| "-".to_owned(), |us| format!("{us:.2}"));
        let Self { name, rate, p50_ms, p99_ms, .. } = self;
        format!("{name:<12} {rate:>10.0} {p50_ms:>8.2} {p99_ms:>8.2} {cpu:>16}")
    }

    /// The memory after the last round, in MiB, for a table; `-` where no process was looked at.
    #[must_use]
    pub fn memory(&self) -> String {
        let last = self.rounds.last().and_then(|round| round.resident_kib);
        last.map_or_else(|| "-".to_owned(), |kib| (kib / 1_024).to_string())
    }
}

/// A ratio for a table; `-` where there is none.
#[must_use]
pub fn ratio_cell(ratio: Option<Ratio>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| ratio.to_string())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A series with so many requests a second and so much processor time in each round.
    pub(crate) fn series(name: &str, rounds: &[(f64, Option<f64>)]) -> Series {
        let rounds = rounds.iter().map(|(rate, cpu_us)| {
            let run =
                LoadRun { requests: 100_000, rate: *rate, p50_ms: 1.0, p99_ms: 2.0, errors: 1 };
            Round { run, cpu_us: *cpu_us, resident_kib: cpu_us.map(|_| 2_048) }
        });
        Series { rounds: rounds.collect(), ..Series::new(name) }.sum_up()
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        // The machine slows down to a third; the ratios stay.
        let ours = series("ours", &[(30.0, Some(11.0)), (20.0, Some(22.0)), (10.0, Some(33.0))]);
        let base = series("base", &[(60.0, Some(10.0)), (40.0, Some(20.0)), (20.0, Some(30.0))]);
        let Comparison { rate, cpu } = ours.over(&base);
        assert!((rate.expect("a ratio").median - 0.5).abs() < 1e-9);
        assert!((cpu.expect("a ratio").median - 1.1).abs() < 1e-9);
        assert_eq!((ours.rate, ours.cpu_us, ours.errors), (20.0, Some(22.0), 3));
        assert!(
            ours.row().starts_with("ours                 20     1.00     2.00"),
            "{}",
            ours.row()
        );
        assert_eq!(ours.memory(), "2");
    }

    #[test]
    fn processor_time_of_a_few_ticks_is_not_told_per_request() {
        // 0.1 s for 100,000 requests.
        let short = series("short", &[(10.0, Some(1.0))]);
        let long = series("long", &[(10.0, Some(2.0))]);
        assert_eq!((short.cpu_us, long.cpu_us), (None, Some(2.0)));
        assert_eq!(short.over(&long).cpu, None);
        assert!(short.over(&long).rate.is_some(), "requests per second are exact");
        let without = series("direct", &[(10.0, None)]);
        assert_eq!((long.over(&without).cpu, without.memory().as_str()), (None, "-"));
    }

    #[test]
    fn a_process_is_looked_at_while_the_load_runs() {
        let run = LoadRun { requests: 10, rate: 1.0, p50_ms: 1.0, p99_ms: 1.0, errors: 0 };
        let round = Round::measure(Some(std::process::id()), || {
            let begun = std::time::Instant::now();
            while begun.elapsed().as_millis() < 100 {
                std::hint::spin_loop();
            }
            Ok(run)
        });
        let round = round.expect("measured");
        assert!(round.cpu_us.expect("of this process") > 0.0 && round.resident_kib > Some(0));
        let nothing = Round::measure(None, || Ok(LoadRun { requests: 0, ..run }));
        assert!(nothing.is_err(), "a load without an answer measures nothing");
    }
}
