//! What one worker counts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::StatusCode;

use super::{Histogram, Metrics};
use crate::chain::Completion;
use crate::error::Reason;
use crate::upstream::Endpoint;

/// Upper bounds of the time that requests take, in seconds.
pub(super) const REQUEST_BOUNDS: &[f64] =
    &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// Status classes, by the first digit; at 0 what has no status.
pub(super) const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// More than there are reasons.
const REASONS: usize = 64;

/// The counters of one worker, on cache lines that no other worker writes.
#[derive(Debug)]
#[repr(align(128))]
pub struct WorkerMetrics {
    pub(super) classes: [AtomicU64; CLASSES.len()],
    pub(super) begun: AtomicU64,
    pub(super) ended: AtomicU64,
    pub(super) received_bytes: AtomicU64,
    pub(super) sent_bytes: AtomicU64,
    pub(super) durations: Histogram,
    /// By the reason's number; the code is written at the first sight.
    pub(super) reasons: [(OnceLock<&'static str>, AtomicU64); REASONS],
    metrics: Metrics,
    number: usize,
}

impl WorkerMetrics {
    pub(super) fn new(metrics: Metrics, number: usize) -> Self {
        Self {
            classes: Default::default(),
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
            durations: Histogram::new(REQUEST_BOUNDS),
            reasons: std::array::from_fn(|_| Default::default()),
            metrics,
            number,
        }
    }

    pub(crate) fn begun(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn over(&self, completion: &Completion, begun: bool) {
        if begun {
            self.ended.fetch_add(1, Ordering::Relaxed);
        }
        self.classes[class(completion.status)].fetch_add(1, Ordering::Relaxed);
        self.durations.observe(completion.elapsed);
        if completion.request_bytes > 0 {
            self.received_bytes.fetch_add(completion.request_bytes, Ordering::Relaxed);
        }
        if completion.response_bytes > 0 {
            self.sent_bytes.fetch_add(completion.response_bytes, Ordering::Relaxed);
        }
        if let Some(reason) = completion.reason {
            self.failed(reason);
        }
    }

    fn failed(&self, reason: Reason) {
        if let Some((code, count)) = self.reasons.get(reason as usize) {
            code.get_or_init(|| reason.code());
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn attempted(
        &self,
        endpoint: &Arc<Endpoint>,
        elapsed: Duration,
        status: Option<StatusCode>,
    ) {
        let series = match endpoint.series.series.get() {
            Some(series) => series,
            None => match self.metrics.series(endpoint) {
                Some(series) => endpoint.series.series.get_or_init(|| series),
                None => return,
            },
        };
        series.attempted(self.number, elapsed, class(status));
    }
}

/// The place of a status in [`CLASSES`].
fn class(status: Option<StatusCode>) -> usize {
    let first = status.map_or(0, |status| usize::from(status.as_u16() / 100));
    // Statuses up to 999 are legal; whoever sends them means a failure.
    first.min(CLASSES.len() - 1)
}
