//! A histogram of times.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counts times by fixed upper bounds, in seconds.
///
/// An observation is a search among few bounds and two additions.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [f64],
    /// One more than bounds: what is above the last.
    counts: Box<[AtomicU64]>,
    sum_us: AtomicU64,
}

/// The sum of histograms with the same bounds.
#[derive(Debug, Clone)]
pub(super) struct Sum {
    pub(super) bounds: &'static [f64],
    pub(super) counts: Vec<u64>,
    pub(super) sum_us: u64,
}

impl Histogram {
    /// A histogram with these upper bounds, ascending.
    #[must_use]
    pub fn new(bounds: &'static [f64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, counts, sum_us: AtomicU64::new(0) }
    }

    /// Takes a time in.
    pub fn observe(&self, time: Duration) {
        let seconds = time.as_secs_f64();
        let at = self.bounds.iter().position(|bound| seconds <= *bound);
        self.counts[at.unwrap_or(self.bounds.len())].fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.sum_us.fetch_add(micros, Ordering::Relaxed);
    }

    pub(super) fn sum(&self) -> Sum {
        let mut sum = Sum::new(self.bounds);
        sum.add(self);
        sum
    }
}

impl Sum {
    pub(super) fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], sum_us: 0 }
    }

    pub(super) fn add(&mut self, histogram: &Histogram) {
        for (sum, count) in self.counts.iter_mut().zip(&histogram.counts) {
            *sum += count.load(Ordering::Relaxed);
        }
        self.sum_us = self.sum_us.wrapping_add(histogram.sum_us.load(Ordering::Relaxed));
    }

    /// The sum in seconds, the count, and the counts by upper bound as the library wants them.
    pub(super) fn parts(&self) -> (f64, u64, Vec<(f64, u64)>) {
        // What is above the last bound is in the count alone.
        let buckets = self.bounds.iter().copied().zip(self.counts.iter().copied()).collect();
        (self.sum_us as f64 / 1e6, self.counts.iter().sum(), buckets)
    }
}
