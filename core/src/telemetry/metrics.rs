//! The gateway's metrics, in the text format of Prometheus.
//!
//! What requests count, each worker counts in memory of its own ([`WorkerMetrics`]); a scrape adds the
//! workers up. The library's own counters and histograms are not used on the path: they are shared by
//! all workers, and a histogram takes a lock for each observation. It writes the text.
//!
//! Series by upstream are made at the first attempt on it and removed with it. Past
//! `shenyu.metrics.maxSeries` the rest is counted as `other`.

mod collect;
mod connections;
mod histogram;
mod states;
mod upstream;
mod worker;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use prometheus_client::encoding::prometheus_text;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use tracing::warn;

pub use histogram::Histogram;
pub use upstream::{SeriesSlot, UpstreamSeries};
pub use worker::WorkerMetrics;

use super::Throttle;
use crate::upstream::{ConnectionStats, Endpoint, EndpointRegistry};

/// The media type of the text.
pub const CONTENT_TYPE: &str = prometheus_text::CONTENT_TYPE;

/// The name that everything past the most series is counted under.
const OTHER: &str = "other";

/// All metrics of a gateway. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Metrics(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    workers: Mutex<Vec<Arc<WorkerMetrics>>>,
    upstreams: Mutex<Upstreams>,
    connections: OnceLock<ReadConnections>,
    states: OnceLock<EndpointRegistry>,
    figures: Mutex<Vec<Figure>>,
    publishing: Histogram,
    /// Workers that are expected: the shards of each upstream.
    expected: usize,
    max_upstreams: usize,
    complained: AtomicBool,
    unwritable: Throttle,
}

#[derive(Debug)]
struct Upstreams {
    known: Vec<(Weak<Endpoint>, Arc<UpstreamSeries>)>,
    other: Arc<UpstreamSeries>,
}

/// A figure that somebody else keeps and that is read at a scrape.
struct Figure {
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    read: Box<dyn Fn() -> f64 + Send + Sync>,
}

/// Reads the connections to upstreams, by host.
struct ReadConnections(Box<dyn Fn() -> Vec<ConnectionStats> + Send + Sync>);

impl std::fmt::Debug for ReadConnections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ReadConnections(..)")
    }
}

impl std::fmt::Debug for Figure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Figure").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Metrics {
    /// Metrics for so many workers, with at most so many series by upstream.
    #[must_use]
    pub fn new(workers: usize, max_series: usize) -> Self {
        let other = Arc::new(UpstreamSeries::new(OTHER, OTHER, workers));
        Self(Arc::new(Shared {
            workers: Mutex::default(),
            upstreams: Mutex::new(Upstreams { known: Vec::new(), other }),
            connections: OnceLock::new(),
            states: OnceLock::new(),
            figures: Mutex::default(),
            publishing: Histogram::new(&[
                0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0, 5.0,
            ]),
            expected: workers,
            max_upstreams: (max_series / upstream::SERIES_EACH).max(1),
            complained: AtomicBool::new(false),
            unwritable: Throttle::default(),
        }))
    }

    /// The counters of one more worker.
    #[must_use]
    pub fn worker(&self) -> Arc<WorkerMetrics> {
        let mut workers = lock(&self.0.workers);
        let worker = Arc::new(WorkerMetrics::new(self.clone(), workers.len()));
        workers.push(Arc::clone(&worker));
        worker
    }

    /// Reads the connections to upstreams at each scrape; the first reader counts.
    pub fn connections(&self, read: impl Fn() -> Vec<ConnectionStats> + Send + Sync + 'static) {
        let _ = self.0.connections.set(ReadConnections(Box::new(read)));
    }

    /// Reads the states of these upstreams at each scrape; the first registry counts.
    pub fn states(&self, registry: EndpointRegistry) {
        let _ = self.0.states.set(registry);
    }

    /// A gauge that is read at each scrape.
    pub fn gauge(
        &self,
        name: &'static str,
        help: &'static str,
        read: impl Fn() -> f64 + Send + Sync + 'static,
    ) {
        self.figure(Figure { name, help, kind: MetricType::Gauge, read: Box::new(read) });
    }

    /// A counter that is read at each scrape; `name` without `_total`.
    pub fn counter(
        &self,
        name: &'static str,
        help: &'static str,
        read: impl Fn() -> f64 + Send + Sync + 'static,
    ) {
        self.figure(Figure { name, help, kind: MetricType::Counter, read: Box::new(read) });
    }

    fn figure(&self, figure: Figure) {
        lock(&self.0.figures).push(figure);
    }

    /// A snapshot was compiled and put in force.
    pub fn published(&self, elapsed: Duration) {
        self.0.publishing.observe(elapsed);
    }

    /// The text of a scrape.
    #[must_use]
    pub fn scrape(&self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self.clone()));
        let mut text = String::with_capacity(16 * 1024);
        match prometheus_text::encode(&mut text, &registry) {
            Ok(()) => text,
            Err(error) => {
                if let Some(left_out) = self.0.unwritable.pass() {
                    warn!("metrics cannot be written: {error}{left_out}");
                }
                String::new()
            }
        }
    }

    /// The series of an endpoint that has none yet; `None` when somebody else is at it.
    fn series(&self, endpoint: &Arc<Endpoint>) -> Option<Arc<UpstreamSeries>> {
        // A worker does not wait for a scrape: the next attempt finds the list free.
        let Ok(mut upstreams) = self.0.upstreams.try_lock() else { return None };
        if upstreams.known.len() >= self.0.max_upstreams {
            upstreams.known.retain(|(endpoint, _)| endpoint.strong_count() > 0);
        }
        if upstreams.known.len() >= self.0.max_upstreams {
            if !self.0.complained.swap(true, Ordering::Relaxed) {
                warn!(
                    upstreams = self.0.max_upstreams,
                    "more upstreams than shenyu.metrics.maxSeries has room for: the rest is counted as other"
                );
            }
            return Some(Arc::clone(&upstreams.other));
        }
        let name = endpoint.address.to_string();
        let series =
            Arc::new(UpstreamSeries::new(&endpoint.series.selector, &name, self.0.expected));
        upstreams.known.push((Arc::downgrade(endpoint), Arc::clone(&series)));
        Some(series)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
