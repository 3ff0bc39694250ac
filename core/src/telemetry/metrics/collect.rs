//! A scrape: the parts of all workers added up and written.

use std::collections::BTreeMap;
use std::fmt::Error;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, NoLabelSet,
};
use prometheus_client::metrics::MetricType;

use super::histogram::Sum;
use super::upstream::Total;
use super::worker::{CLASSES, REQUEST_BOUNDS, WorkerMetrics};
use super::{Metrics, ReadConnections, connections, lock, states};
use crate::upstream::now_ms;

pub(super) type Labels<'a, const N: usize> = [(&'static str, &'a str); N];

/// A number of a counter or a gauge.
pub(super) trait Value: EncodeCounterValue + EncodeGaugeValue {}
impl Value for u64 {}
impl Value for f64 {}

/// Writes metrics with their descriptions.
pub(super) struct Page<'a> {
    encoder: DescriptorEncoder<'a>,
}

impl Page<'_> {
    pub(super) fn single(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        value: impl Value,
    ) -> Result<(), Error> {
        self.family(name, help, kind, [([], value)].into_iter())
    }

    pub(super) fn family<'l, const N: usize, V: Value>(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        values: impl Iterator<Item = (Labels<'l, N>, V)>,
    ) -> Result<(), Error> {
        let counter = matches!(kind, MetricType::Counter);
        let mut metric = self.encoder.encode_descriptor(name, help, None, kind)?;
        for (labels, value) in values {
            let mut member = metric.encode_family(&labels)?;
            if counter {
                member.encode_counter::<NoLabelSet, _, f64>(&value, None)?;
            } else {
                member.encode_gauge(&value)?;
            }
        }
        Ok(())
    }

    fn histograms<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl Iterator<Item = (Labels<'l, N>, Sum)>,
    ) -> Result<(), Error> {
        let mut metric = self.encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (labels, sum) in values {
            let (total, count, buckets) = sum.parts();
            let mut member = metric.encode_family(&labels)?;
            member.encode_histogram::<NoLabelSet>(total, count, &buckets, None)?;
        }
        Ok(())
    }
}

impl Collector for Metrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut page = Page { encoder };
        self.requests(&mut page)?;
        self.by_upstream(&mut page)?;
        if let Some(ReadConnections(read)) = self.0.connections.get() {
            connections::write(&mut page, read(), self.0.max_upstreams)?;
        }
        if let Some(registry) = self.0.states.get() {
            states::write(&mut page, &registry.list(), now_ms(), self.0.max_upstreams)?;
        }
        page.histograms(
            "longmen_snapshot_publish_seconds",
            "Time to compile a change and put it in force",
            [([], self.0.publishing.sum())].into_iter(),
        )?;
        for figure in lock(&self.0.figures).iter() {
            page.single(figure.name, figure.help, figure.kind, (figure.read)())?;
        }
        Ok(())
    }
}

impl Metrics {
    fn requests(&self, page: &mut Page<'_>) -> Result<(), Error> {
        let workers = lock(&self.0.workers).clone();
        let sum = |of: fn(&WorkerMetrics) -> &AtomicU64| -> u64 {
            workers.iter().map(|worker| of(worker).load(Ordering::Relaxed)).sum()
        };
        let mut classes = [0_u64; CLASSES.len()];
        let mut durations = Sum::new(REQUEST_BOUNDS);
        let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
        for worker in &workers {
            for (sum, count) in classes.iter_mut().zip(&worker.classes) {
                *sum += count.load(Ordering::Relaxed);
            }
            durations.add(&worker.durations);
            for (code, count) in &worker.reasons {
                if let Some(code) = code.get() {
                    *reasons.entry(code).or_default() += count.load(Ordering::Relaxed);
                }
            }
        }
        page.family(
            "longmen_http_requests",
            "Requests that are over, by class of their status; none: the client left before the answer",
            MetricType::Counter,
            CLASSES.iter().zip(classes).map(|(class, count)| ([("status_class", *class)], count)),
        )?;
        page.family(
            "longmen_http_requests_failed",
            "Requests that did not get the whole answer of their upstream, by reason",
            MetricType::Counter,
            reasons.iter().map(|(reason, count)| ([("reason", *reason)], *count)),
        )?;
        page.histograms(
            "longmen_http_request_duration_seconds",
            "Time from the head of a request to the end of its answer",
            [([], durations)].into_iter(),
        )?;
        // The end is read first: what ends between the two readings does not count as negative.
        let ended = sum(|worker| &worker.ended);
        let under_way = sum(|worker| &worker.begun).saturating_sub(ended);
        page.single(
            "longmen_http_requests_in_flight",
            "Requests under way in the plugin chain, to the end of their answers",
            MetricType::Gauge,
            under_way,
        )?;
        page.single(
            "longmen_http_received_bytes",
            "Bytes of request bodies",
            MetricType::Counter,
            sum(|worker| &worker.received_bytes),
        )?;
        page.single(
            "longmen_http_sent_bytes",
            "Bytes of response bodies",
            MetricType::Counter,
            sum(|worker| &worker.sent_bytes),
        )
    }

    fn by_upstream(&self, page: &mut Page<'_>) -> Result<(), Error> {
        let series = {
            let mut upstreams = lock(&self.0.upstreams);
            upstreams.known.retain(|(endpoint, _)| endpoint.strong_count() > 0);
            let known = upstreams.known.iter().map(|(_, series)| series.clone());
            known.chain([upstreams.other.clone()]).collect::<Vec<_>>()
        };
        // One that was removed and added again while a request still held it is there twice.
        let mut totals: BTreeMap<(&str, &str), Total> = BTreeMap::new();
        for one in &series {
            let key = (&*one.selector, &*one.upstream);
            one.add_to(totals.entry(key).or_insert_with(Total::new));
        }
        totals.retain(|_, total| total.classes.iter().any(|count| *count > 0));
        page.family(
            "longmen_upstream_attempts",
            "Attempts on upstreams, by class of the status; none: failed",
            MetricType::Counter,
            totals.iter().flat_map(|(key, total)| {
                let seen = CLASSES.iter().zip(total.classes).filter(|(_, count)| *count > 0);
                seen.map(|(class, count)| {
                    ([("selector", key.0), ("upstream", key.1), ("status_class", *class)], count)
                })
            }),
        )?;
        page.family(
            "longmen_upstream_failures",
            "Attempts that brought no response head",
            MetricType::Counter,
            totals.iter().map(|(key, total)| (labels(*key), total.classes[0])),
        )?;
        page.histograms(
            "longmen_upstream_response_seconds",
            "Time from sending a request to the response head, or to the failure",
            totals.iter().map(|(key, total)| (labels(*key), total.times.clone())),
        )
    }
}

pub(super) const fn labels<'a>((selector, upstream): (&'a str, &'a str)) -> Labels<'a, 2> {
    [("selector", selector), ("upstream", upstream)]
}
