//! What the client strategies tell of their connections, by upstream host.

use std::fmt::Error;

use prometheus_client::metrics::MetricType;

use super::OTHER;
use super::collect::Page;
use crate::upstream::{ConnectFailure, ConnectionStats};

/// Writes the figures of at most `most` hosts; the rest is added up under `other`.
pub(super) fn write(
    page: &mut Page<'_>,
    mut hosts: Vec<ConnectionStats>,
    most: usize,
) -> Result<(), Error> {
    hosts.sort_by(|a, b| a.address.cmp(&b.address));
    if hosts.len() > most {
        let mut other = ConnectionStats { address: OTHER.into(), ..ConnectionStats::default() };
        for host in hosts.drain(most..) {
            add(&mut other, &host);
        }
        hosts.push(other);
    }
    page.family(
        "longmen_upstream_connections",
        "Open connections to upstreams",
        MetricType::Gauge,
        hosts.iter().flat_map(|host| {
            [("idle", host.idle), ("in_use", host.in_use)]
                .map(|(state, count)| ([("upstream", &*host.address), ("state", state)], count))
        }),
    )?;
    for (name, help, kind, read) in ONE_EACH {
        page.family(
            name,
            help,
            kind(),
            hosts.iter().map(|host| ([("upstream", &*host.address)], read(host))),
        )?;
    }
    page.family(
        "longmen_upstream_connections_failed",
        "Connections, or places in a pool, that could not be had",
        MetricType::Counter,
        hosts.iter().flat_map(|host| {
            let counted = ConnectFailure::ALL.iter().zip(host.failed);
            counted.filter(|(_, count)| *count > 0).map(|(failure, count)| {
                ([("upstream", &*host.address), ("reason", failure.label())], count)
            })
        }),
    )
}

type OneEach = (&'static str, &'static str, fn() -> MetricType, fn(&ConnectionStats) -> u64);

/// What each host has one figure of.
const ONE_EACH: [OneEach; 6] = [
    (
        "longmen_upstream_requests_waiting",
        "Requests that wait for a connection of a fixed pool",
        || MetricType::Gauge,
        |host| host.waiting,
    ),
    (
        "longmen_upstream_connections_opened",
        "Connections opened to upstreams",
        || MetricType::Counter,
        |host| host.opened,
    ),
    (
        "longmen_upstream_connections_reused",
        "Requests sent on a connection that was open already",
        || MetricType::Counter,
        |host| host.reused,
    ),
    (
        "longmen_upstream_connections_expired",
        "Connections closed because they were unused too long, or too old",
        || MetricType::Counter,
        |host| host.closed_idle,
    ),
    (
        "longmen_upstream_requests_replayed",
        "Requests repeated because the kept connection was dead",
        || MetricType::Counter,
        |host| host.replayed,
    ),
    (
        "longmen_upstream_target_rewritten",
        "Requests that strategy reqwest left to the raw client, since it would have changed them",
        || MetricType::Counter,
        |host| host.target_rewritten,
    ),
];

fn add(sum: &mut ConnectionStats, host: &ConnectionStats) {
    sum.opened += host.opened;
    sum.reused += host.reused;
    sum.closed_idle += host.closed_idle;
    sum.replayed += host.replayed;
    sum.target_rewritten += host.target_rewritten;
    sum.in_use += host.in_use;
    sum.idle += host.idle;
    sum.waiting += host.waiting;
    for (sum, count) in sum.failed.iter_mut().zip(host.failed) {
        *sum += count;
    }
}

#[cfg(test)]
mod tests {
    use crate::telemetry::metrics::Metrics;
    use crate::upstream::ConnectionStats;

    #[test]
    fn hosts_past_the_most_are_added_up() {
        let metrics = Metrics::new(1, 2 * super::super::upstream::SERIES_EACH);
        metrics.connections(|| {
            (0..5)
                .map(|number| ConnectionStats {
                    address: format!("http://10.0.0.{number}:80"),
                    idle: 1,
                    opened: 3,
                    failed: [0, 2, 0, 0, 0, 0, 0],
                    ..ConnectionStats::default()
                })
                .collect()
        });
        let text = metrics.scrape();
        for line in [
            "longmen_upstream_connections{upstream=\"http://10.0.0.0:80\",state=\"idle\"} 1",
            "longmen_upstream_connections{upstream=\"other\",state=\"idle\"} 3",
            "longmen_upstream_connections_opened_total{upstream=\"other\"} 9",
            "longmen_upstream_connections_failed_total{upstream=\"other\",reason=\"connect\"} 6",
        ] {
            assert!(text.lines().any(|have| have == line), "no line {line} in {text}");
        }
        assert!(!text.contains("10.0.0.2") && !text.contains("reason=\"dns\""), "{text}");
    }
}
