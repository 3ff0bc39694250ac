//! Percentiles and medians.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// Resolution of a [`Histogram`], in microseconds.
const SLOT_US: u64 = 10;

/// Slots of a [`Histogram`]: two seconds; what takes longer counts as the last.
const SLOTS: usize = 200_000;

/// What a series of times amounts to. All zero when it is empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Number of values.
    pub count: u64,
    /// Half of the values are at most this, in microseconds.
    pub p50_us: u64,
    /// 90 % of the values are at most this, in microseconds.
    pub p90_us: u64,
    /// 99 % of the values are at most this, in microseconds.
    pub p99_us: u64,
    /// The largest value, in microseconds.
    pub max_us: u64,
}

/// A median with the interval that holds the true one with at least 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ratio {
    /// The median.
    pub median: f64,
    /// The interval; absent when there are fewer than six values.
    pub interval: Option<(f64, f64)>,
}

/// Times counted in slots of 10 µs: of fixed size, however many there are.
#[derive(Debug, Clone)]
pub struct Histogram {
    slots: Vec<u64>,
    max_us: u64,
}

// === impl Summary ===

impl Summary {
    /// Sums up single values, exactly (nearest rank).
    #[must_use]
    pub fn of(times: &[Duration]) -> Self {
        let mut sorted: Vec<u64> = times.iter().copied().map(micros).collect();
        sorted.sort_unstable();
        let rank = |percent: usize| {
            let rank = (sorted.len() * percent).div_ceil(100).max(1);
            sorted.get(rank - 1).copied().unwrap_or_default()
        };
        Self {
            count: sorted.len() as u64,
            p50_us: rank(50),
            p90_us: rank(90),
            p99_us: rank(99),
            max_us: sorted.last().copied().unwrap_or_default(),
        }
    }
}

// === impl Ratio ===

impl Ratio {
    /// Sums up single ratios; `None` for none.
    #[must_use]
    pub fn of(ratios: &[f64]) -> Option<Self> {
        median(ratios).map(|median| Self { median, interval: median_interval(ratios) })
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let interval = self.interval.map(|(low, high)| format!(" [{low:.2}–{high:.2}]"));
        // Through `pad`, so that a width of a table counts.
        formatter.pad(&format!("{:.2}{}", self.median, interval.unwrap_or_default()))
    }
}

// === impl Histogram ===

impl Default for Histogram {
    fn default() -> Self {
        Self { slots: vec![0; SLOTS], max_us: 0 }
    }
}

impl Histogram {
    /// Counts one value.
    pub fn record(&mut self, time: Duration) {
        let us = micros(time);
        let slot = usize::try_from(us / SLOT_US).unwrap_or(SLOTS).min(SLOTS - 1);
        self.slots[slot] += 1;
        self.max_us = self.max_us.max(us);
    }

    /// Adds what another counted.
    pub fn merge(&mut self, other: &Self) {
        for (slot, count) in self.slots.iter_mut().zip(&other.slots) {
            *slot += count;
        }
        self.max_us = self.max_us.max(other.max_us);
    }

    /// Sums up; a percentile is the upper edge of its slot.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let count: u64 = self.slots.iter().sum();
        let rank = |percent: u64| {
            let wanted = (count * percent).div_ceil(100).max(1);
            let mut seen = 0;
            for (slot, slot_count) in self.slots.iter().enumerate() {
                seen += slot_count;
                if seen >= wanted {
                    return ((slot as u64 + 1) * SLOT_US).min(self.max_us);
                }
            }
            self.max_us
        };
        Summary { count, p50_us: rank(50), p90_us: rank(90), p99_us: rank(99), max_us: self.max_us }
    }
}

/// The middle value, or the mean of the two middle ones; `None` for no values.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = sorted.get(middle).copied()?;
    if sorted.len() % 2 == 1 { Some(upper) } else { Some(f64::midpoint(sorted[middle - 1], upper)) }
}

/// The interval between two of the values that holds the true median with at least 95 %, whatever
/// their distribution; `None` for fewer than six values, which cannot tell.
#[must_use]
pub fn median_interval(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len();
    let half = 0.5_f64.powi(i32::try_from(count).ok()?);
    // Chance that at most `rank` of the values lie below the median, both sides together.
    let (mut term, mut tail, mut rank) = (half, 2.0 * half, 0);
    if tail > 0.05 {
        return None;
    }
    while rank + 1 < count / 2 {
        #[expect(clippy::cast_precision_loss, reason = "counts of rounds are small")]
        let next = term * (count - rank) as f64 / (rank + 1) as f64;
        if tail + 2.0 * next > 0.05 {
            break;
        }
        (term, tail, rank) = (next, tail + 2.0 * next, rank + 1);
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some((sorted[rank], sorted[count - 1 - rank]))
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(values: impl IntoIterator<Item = u64>) -> Vec<Duration> {
        values.into_iter().map(Duration::from_millis).collect()
    }

    #[test]
    fn percentiles_are_nearest_rank() {
        let summary = Summary::of(&ms((1..=200).rev()));
        assert_eq!(
            summary,
            Summary {
                count: 200,
                p50_us: 100_000,
                p90_us: 180_000,
                p99_us: 198_000,
                max_us: 200_000
            }
        );
        assert_eq!(Summary::of(&ms([7])).p50_us, 7_000);
        assert_eq!(Summary::of(&[]), Summary::default());
    }

    #[test]
    fn histogram_agrees_with_exact_values_to_a_slot() {
        let times = ms((1..=1_000).map(|value| value * 3 % 1_001));
        let exact = Summary::of(&times);
        let mut halves = [Histogram::default(), Histogram::default()];
        for (index, time) in times.iter().enumerate() {
            halves[index % 2].record(*time);
        }
        let [mut all, other] = halves;
        all.merge(&other);
        let counted = all.summary();
        assert_eq!(counted.count, exact.count);
        assert_eq!(counted.max_us, exact.max_us);
        for (counted, exact) in [
            (counted.p50_us, exact.p50_us),
            (counted.p90_us, exact.p90_us),
            (counted.p99_us, exact.p99_us),
        ] {
            assert!((exact..=exact + SLOT_US).contains(&counted), "{counted} for {exact}");
        }
    }

    #[test]
    fn slow_values_count_in_the_last_slot() {
        let mut histogram = Histogram::default();
        histogram.record(Duration::from_secs(60));
        assert_eq!(histogram.summary().max_us, 60_000_000);
        assert_eq!(histogram.summary().count, 1);
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn ratios_have_an_interval_where_there_is_one() {
        assert_eq!(Ratio::of(&[]), None);
        let few = Ratio::of(&[1.0, 3.0]).expect("two values");
        assert_eq!(few, Ratio { median: 2.0, interval: None });
        assert_eq!(format!("{few:>6}|"), "  2.00|");
        let many = Ratio::of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).expect("six values");
        assert_eq!(many.to_string(), "3.50 [1.00–6.00]");
    }

    /// The ranks stand in any table of the sign test.
    #[test]
    fn intervals_of_medians() {
        let values = |count: u32| (1..=count).map(f64::from).collect::<Vec<_>>();
        assert_eq!(median_interval(&values(5)), None);
        assert_eq!(median_interval(&values(6)), Some((1.0, 6.0)));
        assert_eq!(median_interval(&values(9)), Some((2.0, 8.0)));
        assert_eq!(median_interval(&values(11)), Some((2.0, 10.0)));
        assert_eq!(median_interval(&values(20)), Some((6.0, 15.0)));
    }
}
