//! The states of the upstreams, read at a scrape.

use std::collections::BTreeMap;
use std::fmt::Error;
use std::sync::Arc;

use prometheus_client::metrics::MetricType;

use super::OTHER;
use super::collect::{Page, labels};
use crate::upstream::{Endpoint, EndpointState};

/// Lines of a scrape that each upstream takes.
pub(super) const EACH: usize = GAUGES.len();

type Gauge = (&'static str, &'static str, fn(&EndpointState) -> u64);

const GAUGES: [Gauge; 5] = [
    (
        "longmen_upstream_healthy",
        "Whether the upstream is chosen like any other: neither ejected nor taken out",
        |state| u64::from(state.healthy()),
    ),
    (
        "longmen_upstream_ejected",
        "Whether the upstream is ejected, or on trial, since requests on it failed",
        |state| u64::from(state.ejected_for.is_some()),
    ),
    ("longmen_upstream_probed_out", "Whether probes have taken the upstream out", |state| {
        u64::from(state.probed_out)
    }),
    (
        "longmen_upstream_warming_up",
        "Whether the weight of the upstream is still growing",
        |state| u64::from(state.warming),
    ),
    (
        "longmen_upstream_requests_in_flight",
        "Requests under way on the upstream, to the end of their answers",
        |state| u64::from(state.in_flight),
    ),
];

/// Writes the states of at most `most` upstreams; the rest is added up under `other`.
pub(super) fn write(
    page: &mut Page<'_>,
    endpoints: &[(Box<str>, Arc<Endpoint>)],
    now: u64,
    most: usize,
) -> Result<(), Error> {
    let names: Vec<String> =
        endpoints.iter().take(most).map(|(_, endpoint)| endpoint.to_string()).collect();
    let mut sums: BTreeMap<(&str, &str), [u64; EACH]> = BTreeMap::new();
    for (index, (selector, endpoint)) in endpoints.iter().enumerate() {
        let key = match names.get(index) {
            Some(name) => (&**selector, &**name),
            None => (OTHER, OTHER),
        };
        let state = endpoint.state(now);
        let sum = sums.entry(key).or_default();
        for (sum, (_, _, read)) in sum.iter_mut().zip(GAUGES) {
            *sum += read(&state);
        }
    }
    for (index, (name, help, _)) in GAUGES.into_iter().enumerate() {
        let values = sums.iter().map(|(key, sum)| (labels(*key), sum[index]));
        page.family(name, help, MetricType::Gauge, values)?;
    }
    Ok(())
}
