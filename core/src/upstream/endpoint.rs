//! Endpoints: the state of an upstream that outlives every snapshot.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use http::HeaderValue;
use tracing::{info, warn};

use super::budget::RetryBudget;
use super::health::{Change, EjectionPolicy, Failure, Health, ProbeRule, Standing};
use super::latency::Latency;
use super::{Address, BalanceState};
use crate::telemetry::Throttle;
use crate::telemetry::metrics::SeriesSlot;

/// Bounds that hold for each endpoint of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndpointOptions {
    /// Requests under way at once; one more is refused.
    pub max_in_flight: u32,
    /// When failures of requests eject an upstream.
    pub ejection: EjectionPolicy,
}

impl Default for EndpointOptions {
    fn default() -> Self {
        Self { max_in_flight: 10_000, ejection: EjectionPolicy::default() }
    }
}

/// One upstream of one selector, for as long as it is configured anywhere.
///
/// Shared by all workers. What a request writes is one word on entering and on leaving, and for the
/// balancers that measure one more.
#[derive(Debug)]
pub struct Endpoint {
    /// Scheme, host and port.
    pub address: Address,
    /// The url as configured; what `specify-domain` and the hash balancer compare.
    pub url: Box<str>,
    /// The value of `Host`.
    pub host: HeaderValue,
    /// Identifies the connections it may share: equal for equal (scheme, host:port).
    pub pool_key: u64,
    /// Its metrics, from the first attempt on.
    pub series: SeriesSlot,
    options: EndpointOptions,
    /// Requests under way in the lower half, requests begun so far (wrapping) in the upper.
    counts: AtomicU64,
    health: Health,
    latency: Latency,
    budget: RetryBudget,
    /// When this gateway first saw it.
    first_seen: u64,
    /// Whether its weight may still be growing; cleared by the first who sees that it is not.
    warming: AtomicBool,
    /// What round robin owes a warming one, in parts of [`TURN`].
    credit: AtomicU32,
    /// Whether probes look at it (`healthCheckEnabled`).
    checked: AtomicBool,
    /// What is logged of failed requests, and of how it is taken out for them.
    complaints: Throttle,
    ejections: Throttle,
    /// The lasting state of its selector, which knows the other upstreams.
    selector: Mutex<Weak<BalanceState>>,
}

/// Between two lines about an ejection: shorter than one lasts, unless it is configured otherwise.
const EJECTIONS: Duration = Duration::from_secs(1);

/// One turn of round robin.
const TURN: u32 = 1024;

/// What is known about an endpoint at a moment, for people and metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointState {
    /// Whether probes have taken it out.
    pub probed_out: bool,
    /// For how long it is still ejected; zero: it is on trial.
    pub ejected_for: Option<Duration>,
    /// Failures in a row.
    pub failures: u32,
    /// Requests under way.
    pub in_flight: u32,
    /// Requests begun so far; wraps.
    pub requests: u32,
    /// Average time to the response head, where a balancer measures it.
    pub latency: Option<Duration>,
    /// Whether its weight may still be growing.
    pub warming: bool,
}

impl EndpointState {
    /// Whether it is chosen like any other.
    #[must_use]
    pub fn healthy(&self) -> bool {
        !self.probed_out && self.ejected_for.is_none()
    }
}

impl fmt::Display for EndpointState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.probed_out {
            f.write_str("out: the last probe could not connect")?;
        } else if let Some(left) = self.ejected_for {
            write!(f, "ejected for {left:?} more: requests failed")?;
        } else {
            f.write_str("in")?;
        }
        write!(f, "; {} under way", self.in_flight)
    }
}

impl Endpoint {
    pub(super) fn new(
        selector_id: &str,
        address: Address,
        url: Box<str>,
        host: HeaderValue,
        pool_key: u64,
        options: EndpointOptions,
        now: u64,
    ) -> Self {
        Self {
            address,
            url,
            host,
            pool_key,
            series: SeriesSlot::new(selector_id),
            options,
            counts: AtomicU64::new(0),
            health: Health::default(),
            latency: Latency::default(),
            budget: RetryBudget::new(now),
            first_seen: now,
            warming: AtomicBool::new(true),
            credit: AtomicU32::new(0),
            checked: AtomicBool::new(true),
            complaints: Throttle::default(),
            ejections: Throttle::new(EJECTIONS),
            selector: Mutex::default(),
        }
    }

    /// What an edit may change: whether probes look at it, and whose it is.
    pub(super) fn update(&self, checked: bool, selector: &Arc<BalanceState>) {
        self.checked.store(checked, Ordering::Relaxed);
        *self.selector.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(selector);
    }

    /// The lasting state of its selector.
    pub(super) fn selector(&self) -> Option<Arc<BalanceState>> {
        self.selector.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// Counts a request until the guard is dropped; `None` at the limit of requests under way.
    #[must_use]
    pub fn enter(self: &Arc<Self>) -> Option<InFlight> {
        const ONE: u64 = 1 << 32 | 1;
        let before = self.counts.fetch_add(ONE, Ordering::Relaxed);
        if under_way(before) >= self.options.max_in_flight {
            self.counts.fetch_sub(ONE, Ordering::Relaxed);
            return None;
        }
        Some(InFlight(Arc::clone(self)))
    }

    /// Requests under way.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        under_way(self.counts.load(Ordering::Relaxed))
    }

    /// Whether one more request would be refused.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.in_flight() >= self.options.max_in_flight
    }

    /// Average time to the response head as of `now`, in microseconds; 0 before the first sample.
    pub(super) fn latency_us(&self, now: u64) -> f64 {
        self.latency.at(now)
    }

    /// Takes a measured time to the response head into the average.
    pub fn observe(&self, elapsed: Duration, now: u64) {
        self.latency.record(elapsed, now);
    }

    /// Takes a failed attempt into the average: it never makes an upstream look fast.
    pub fn observe_failure(&self, elapsed: Duration, now: u64) {
        self.latency.penalise(elapsed, now);
    }

    /// A request got its response head. Writes nothing while all is well.
    pub fn succeeded(&self) {
        if let Some(change) = self.health.succeeded() {
            self.tell(change);
        }
    }

    /// A request failed by the upstream's fault.
    pub fn failed(&self, failure: Failure, now: u64) {
        if let Some(change) = self.health.failed(failure, now, &self.options.ejection) {
            self.tell(change);
        }
    }

    /// Tells the log of a failure that is this upstream's: of the first one at once, then now and
    /// then, with the number of the others.
    pub fn complain(&self, what: impl fmt::Display) {
        if let Some(left_out) = self.complaints.pass() {
            warn!(upstream = %self, "upstream failed: {what}{left_out}");
        }
    }

    /// Takes one retry from its budget.
    #[must_use]
    pub fn may_retry(&self, now: u64) -> bool {
        self.budget.withdraw((self.counts.load(Ordering::Relaxed) >> 32) as u32, now)
    }

    /// Whether it may be chosen now.
    pub(super) fn standing(&self, now: u64) -> Standing {
        self.health.standing(now)
    }

    /// Whether it may be chosen at its full weight without a further look.
    pub(super) fn is_plain(&self) -> bool {
        self.health.is_plain() && !self.warming.load(Ordering::Relaxed)
    }

    /// Whether probes have taken it out.
    pub(super) fn is_out(&self) -> bool {
        self.health.is_out()
    }

    /// Takes the one place on trial.
    pub(super) fn claim(&self, now: u64) -> bool {
        self.health.claim(now, &self.options.ejection)
    }

    /// The weight it has now, while it warms up.
    ///
    /// Source: ShenYu 2.7.1, load balancers: floor(uptime / (warmup / weight)) in 32-bit floats, at
    /// least 1. There the time counts from a date that the wire may carry; here from when this
    /// gateway first saw it.
    pub(super) fn warm_weight(&self, weight: u32, warmup_ms: u64, now: u64) -> u32 {
        match self.still_warming(warmup_ms, now) {
            Some(uptime) => grown(uptime, warmup_ms, weight),
            None => {
                if self.warming.load(Ordering::Relaxed) {
                    self.warming.store(false, Ordering::Relaxed);
                }
                weight
            }
        }
    }

    /// The same for who only looks.
    pub(super) fn weight_at(&self, weight: u32, warmup_ms: u64, now: u64) -> u32 {
        let uptime = self.still_warming(warmup_ms, now);
        uptime.map_or(weight, |uptime| grown(uptime, warmup_ms, weight))
    }

    /// For how long it has been there, while its weight grows.
    fn still_warming(&self, warmup_ms: u64, now: u64) -> Option<u64> {
        if !self.warming.load(Ordering::Relaxed) {
            return None;
        }
        let uptime = now.saturating_sub(self.first_seen);
        (uptime < warmup_ms).then_some(uptime)
    }

    /// Whether round robin stops at it, which it does in `share` of its turns, spread evenly.
    pub(super) fn take_turn(&self, share: f64) -> bool {
        if share >= 1.0 {
            return true;
        }
        let step = (share * f64::from(TURN)).ceil() as u32;
        let before = self.credit.fetch_add(step, Ordering::Relaxed);
        before / TURN != before.wrapping_add(step) / TURN
    }

    /// Whether probes look at it.
    #[must_use]
    pub fn is_checked(&self) -> bool {
        self.checked.load(Ordering::Relaxed)
    }

    /// Whether a probe could tell that it is back before any request has to try.
    pub(super) fn awaits_probe(&self) -> bool {
        self.is_checked() && self.health.awaits_probe()
    }

    /// A probe of a round ended.
    pub(super) fn probed(&self, connected: bool, now: u64, rule: &ProbeRule) -> Option<Change> {
        let change = self.health.probed(connected, now, rule);
        change.inspect(|change| self.tell(*change))
    }

    /// A probe of an ejected one ended.
    pub(super) fn probed_ejected(&self, connected: bool, now: u64) -> Option<Change> {
        let change = self.health.probed_ejected(connected, now, &self.options.ejection);
        change.inspect(|change| self.tell(*change))
    }

    /// Probes do not look at it any more.
    pub(super) fn unwatched(&self) {
        if let Some(change) = self.health.unwatched() {
            self.tell(change);
        }
    }

    /// What is known about it.
    #[must_use]
    pub fn state(&self, now: u64) -> EndpointState {
        let counts = self.counts.load(Ordering::Relaxed);
        let latency = self.latency_us(now);
        EndpointState {
            probed_out: self.health.is_out(),
            ejected_for: self.health.ejected_for(now),
            failures: self.health.failures(),
            in_flight: under_way(counts),
            requests: (counts >> 32) as u32,
            latency: (latency > 0.0).then(|| Duration::from_micros(latency as u64)),
            warming: self.warming.load(Ordering::Relaxed),
        }
    }

    fn tell(&self, change: Change) {
        match change {
            Change::ProbedOut => warn!(upstream = %self, "upstream taken out: a probe failed"),
            Change::ProbedIn => info!(upstream = %self, "upstream taken in again"),
            Change::Ejected(time) => {
                let Some(left_out) = self.ejections.pass() else { return };
                let seconds = time.as_secs_f32();
                warn!(
                    upstream = %self,
                    "upstream ejected for {seconds:.1} s: requests failed{left_out}"
                );
            }
            Change::Returned => info!(upstream = %self, "upstream no longer ejected"),
        }
    }
}

fn under_way(counts: u64) -> u32 {
    (counts & u64::from(u32::MAX)) as u32
}

fn grown(uptime_ms: u64, warmup_ms: u64, weight: u32) -> u32 {
    let grown = uptime_ms as f32 / (warmup_ms as f32 / weight as f32);
    (grown as u32).clamp(1, weight.max(1))
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

/// A request under way on an endpoint.
#[derive(Debug)]
pub struct InFlight(Arc<Endpoint>);

impl InFlight {
    /// Where it is under way.
    #[must_use]
    pub const fn endpoint(&self) -> &Arc<Endpoint> {
        &self.0
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.counts.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Endpoint, EndpointOptions};
    use crate::model::Upstream;
    use crate::upstream::Address;

    fn endpoint(max_in_flight: u32) -> Arc<Endpoint> {
        let upstream = Upstream { url: "h:1".into(), ..Upstream::default() };
        let address = Address::read(&upstream).unwrap();
        let host = address.host_header().unwrap();
        let options = EndpointOptions { max_in_flight, ..EndpointOptions::default() };
        Arc::new(Endpoint::new("s", address, "h:1".into(), host, 1, options, 1))
    }

    #[test]
    fn one_more_than_the_limit_is_refused_and_counts_for_nothing() {
        let endpoint = endpoint(2);
        let (first, second) = (endpoint.enter(), endpoint.enter());
        assert!(first.is_some() && second.is_some());
        assert!(endpoint.enter().is_none());
        let state = endpoint.state(1);
        assert_eq!((state.in_flight, state.requests), (2, 2));
        drop(first);
        assert!(endpoint.enter().is_some());
        assert_eq!(endpoint.state(1).requests, 3);
    }

    #[test]
    fn weights_grow_as_the_reference_has_it() {
        for (uptime, warmup, weight, expected) in
            [(5, 10, 50, 25), (60_000, 600_000, 100, 10), (1000, 600_000, 50, 1), (0, 10, 50, 1)]
        {
            let endpoint = endpoint(1);
            let grown = endpoint.warm_weight(weight, warmup, 1 + uptime);
            assert_eq!(grown, expected, "{uptime} of {warmup}, weight {weight}");
        }
        let endpoint = endpoint(1);
        assert_eq!(endpoint.warm_weight(50, 10, 11), 50);
        assert_eq!(endpoint.warm_weight(50, 600_000, 12), 50, "warm once, warm for ever");
    }

    #[test]
    fn a_light_one_takes_its_share_of_the_turns() {
        let endpoint = endpoint(1);
        let taken = (0..1000).filter(|_| endpoint.take_turn(0.02)).count();
        assert!((19..=21).contains(&taken), "{taken}");
        assert!((0..10).all(|_| endpoint.take_turn(1.0)));
    }
}
