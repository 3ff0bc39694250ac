//! What is counted by upstream.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::Histogram;
use super::histogram::Sum;
use super::worker::CLASSES;

/// Upper bounds of the time to an upstream's response head, in seconds.
pub(super) const UPSTREAM_BOUNDS: &[f64] = &[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0];

/// Lines of a scrape that one upstream takes as a rule: classes, failures, buckets, sum and count,
/// eight of its connections, and its state.
pub(super) const SERIES_EACH: usize =
    CLASSES.len() + 1 + UPSTREAM_BOUNDS.len() + 3 + 8 + super::states::EACH;

/// Where an endpoint keeps its series once it has one.
#[derive(Debug)]
pub struct SeriesSlot {
    pub(super) selector: Box<str>,
    pub(super) series: OnceLock<Arc<UpstreamSeries>>,
}

impl SeriesSlot {
    /// A slot for an endpoint of this selector.
    #[must_use]
    pub fn new(selector_id: &str) -> Self {
        Self { selector: selector_id.into(), series: OnceLock::new() }
    }
}

/// The counters of one upstream, a part for each worker.
#[derive(Debug)]
pub struct UpstreamSeries {
    pub(super) selector: Box<str>,
    pub(super) upstream: Box<str>,
    parts: Box<[Part]>,
}

#[derive(Debug)]
#[repr(align(128))]
struct Part {
    classes: [AtomicU64; CLASSES.len()],
    times: Histogram,
}

/// The workers added up.
#[derive(Debug, Clone)]
pub(super) struct Total {
    pub(super) classes: [u64; CLASSES.len()],
    pub(super) times: Sum,
}

impl UpstreamSeries {
    pub(super) fn new(selector: &str, upstream: &str, workers: usize) -> Self {
        let part = |_| Part { classes: Default::default(), times: Histogram::new(UPSTREAM_BOUNDS) };
        Self {
            selector: selector.into(),
            upstream: upstream.into(),
            parts: (0..workers.max(1)).map(part).collect(),
        }
    }

    pub(super) fn attempted(&self, worker: usize, elapsed: Duration, class: usize) {
        let part = &self.parts[worker % self.parts.len()];
        part.classes[class].fetch_add(1, Ordering::Relaxed);
        part.times.observe(elapsed);
    }

    pub(super) fn add_to(&self, total: &mut Total) {
        for part in &self.parts {
            for (sum, count) in total.classes.iter_mut().zip(&part.classes) {
                *sum += count.load(Ordering::Relaxed);
            }
            total.times.add(&part.times);
        }
    }
}

impl Total {
    pub(super) fn new() -> Self {
        Self { classes: [0; CLASSES.len()], times: Sum::new(UPSTREAM_BOUNDS) }
    }
}
