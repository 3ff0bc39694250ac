//! Endpoints: the state of an upstream that outlives every snapshot.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use http::HeaderValue;

use super::{Address, AddressFault};
use crate::model::Upstream;
use crate::telemetry::metrics::SeriesSlot;

/// One upstream of one selector, for as long as it is configured anywhere.
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
    in_flight: AtomicU32,
    /// Moving average of the time to the response head, in microseconds; 0 before the first.
    latency_us: AtomicU64,
}

impl Endpoint {
    /// Counts a request until the guard is dropped.
    #[must_use]
    pub fn enter(self: &Arc<Self>) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(self))
    }

    /// Requests under way.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Moving average of the time to the response head, in microseconds; 0 before the first.
    #[must_use]
    pub fn latency_us(&self) -> u64 {
        self.latency_us.load(Ordering::Relaxed)
    }

    /// Takes a measured time to the response head into the average (weight 1/8). Two workers that
    /// do so at once may lose one sample, never more.
    pub fn observe(&self, elapsed: Duration) {
        let sample = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX).max(1);
        let before = self.latency_us();
        let after = if before == 0 { sample } else { before - before / 8 + sample / 8 };
        self.latency_us.store(after.max(1), Ordering::Relaxed);
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

/// A request under way on an endpoint.
#[derive(Debug)]
pub struct InFlight(Arc<Endpoint>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Hands out endpoints by identity, so that an edit finds the one that is there already.
///
/// Owned by the publisher. Bounded by what is configured: an endpoint that no snapshot and no
/// request holds any more is forgotten at the next sweep.
#[derive(Debug, Default)]
pub struct EndpointRegistry {
    endpoints: HashMap<(Box<str>, Address), Weak<Endpoint>>,
    pool_keys: HashMap<Address, u64>,
    next_pool_key: u64,
}

impl EndpointRegistry {
    /// The endpoint of an upstream of a selector; made at first sight.
    ///
    /// # Errors
    /// An address that cannot be read.
    pub fn endpoint(
        &mut self,
        selector_id: &str,
        upstream: &Upstream,
    ) -> Result<Arc<Endpoint>, AddressFault> {
        let address = Address::read(upstream)?;
        let key = (Box::from(selector_id), address);
        if let Some(endpoint) = self.endpoints.get(&key).and_then(Weak::upgrade) {
            return Ok(endpoint);
        }
        let address = key.1.clone();
        let host = address.host_header().map_err(|_| AddressFault {
            field: "url",
            value: upstream.url.clone(),
            expected: "a host that can stand in a header",
        })?;
        let pool_key = *self.pool_keys.entry(address.clone()).or_insert_with(|| {
            self.next_pool_key += 1;
            self.next_pool_key
        });
        let endpoint = Arc::new(Endpoint {
            address,
            url: upstream.url.trim().into(),
            host,
            pool_key,
            series: SeriesSlot::new(selector_id),
            in_flight: AtomicU32::new(0),
            latency_us: AtomicU64::new(0),
        });
        self.endpoints.insert(key, Arc::downgrade(&endpoint));
        Ok(endpoint)
    }

    /// Forgets endpoints that nobody holds. Called by the publisher after each change.
    pub fn sweep(&mut self) {
        self.endpoints.retain(|_, endpoint| endpoint.strong_count() > 0);
        if self.pool_keys.len() > 2 * self.endpoints.len() + 64 {
            let used: std::collections::HashSet<_> =
                self.endpoints.keys().map(|(_, address)| address.clone()).collect();
            self.pool_keys.retain(|address, _| used.contains(address));
        }
    }

    /// How many endpoints are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.endpoints.len()
    }

    /// Whether none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.endpoints.is_empty()
    }
}
