//! Endpoints by identity.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::clock::now_ms;
use super::endpoint::EndpointOptions;
use super::{Address, AddressFault, BalanceState, Endpoint};
use crate::model::Upstream;

/// Hands out endpoints by identity, so that an edit finds the one that is there already. Cheap to
/// clone: the publisher, the checker and whoever shows states share one.
///
/// Never touched by requests. Bounded by what is configured: an endpoint that no snapshot and no
/// request holds any more is forgotten at the next sweep.
#[derive(Debug, Clone, Default)]
pub struct EndpointRegistry(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    options: EndpointOptions,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    endpoints: HashMap<(Box<str>, Address), Weak<Endpoint>>,
    pool_keys: HashMap<Address, u64>,
    next_pool_key: u64,
}

impl EndpointRegistry {
    /// A registry whose endpoints have these bounds.
    #[must_use]
    pub fn new(options: EndpointOptions) -> Self {
        Self(Arc::new(Shared { options, known: Mutex::default() }))
    }

    /// The endpoint of an upstream of a selector; made at first sight.
    ///
    /// # Errors
    /// An address that cannot be read.
    pub fn endpoint(
        &self,
        selector_id: &str,
        upstream: &Upstream,
        selector: &Arc<BalanceState>,
    ) -> Result<Arc<Endpoint>, AddressFault> {
        let address = Address::read(upstream)?;
        let checked = upstream.properties().health_check_enabled;
        let key = (Box::from(selector_id), address);
        let mut known = self.known();
        let found = known.endpoints.get(&key).and_then(Weak::upgrade);
        let endpoint = match found {
            Some(endpoint) => endpoint,
            None => {
                let endpoint = Arc::new(self.make(&mut known, &key, &upstream.url)?);
                known.endpoints.insert(key, Arc::downgrade(&endpoint));
                endpoint
            }
        };
        endpoint.update(checked, selector);
        Ok(endpoint)
    }

    fn make(
        &self,
        known: &mut Known,
        (selector_id, address): &(Box<str>, Address),
        url: &str,
    ) -> Result<Endpoint, AddressFault> {
        let host = address.host_header().map_err(|_| AddressFault {
            field: "url",
            value: url.to_owned(),
            expected: "a host that can stand in a header",
        })?;
        let Known { pool_keys, next_pool_key, .. } = known;
        let pool_key = *pool_keys.entry(address.clone()).or_insert_with(|| {
            *next_pool_key += 1;
            *next_pool_key
        });
        let url = url.trim().into();
        let address = address.clone();
        Ok(Endpoint::new(selector_id, address, url, host, pool_key, self.0.options, now_ms()))
    }

    /// Forgets endpoints that nobody holds. Called by the publisher after each change.
    pub fn sweep(&self) {
        let mut known = self.known();
        known.endpoints.retain(|_, endpoint| endpoint.strong_count() > 0);
        if known.pool_keys.len() > 2 * known.endpoints.len() + 64 {
            let used: HashSet<_> =
                known.endpoints.keys().map(|(_, address)| address.clone()).collect();
            known.pool_keys.retain(|address, _| used.contains(address));
        }
    }

    /// All endpoints with the ids of their selectors, sorted.
    #[must_use]
    pub fn list(&self) -> Vec<(Box<str>, Arc<Endpoint>)> {
        let mut all: Vec<_> = {
            let known = self.known();
            let found = known.endpoints.iter();
            found.filter_map(|((id, _), weak)| Some((id.clone(), weak.upgrade()?))).collect()
        };
        all.sort_by(|(a, x), (b, y)| (a, &x.url).cmp(&(b, &y.url)));
        all
    }

    /// How many endpoints are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known().endpoints.len()
    }

    /// Whether none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known().endpoints.is_empty()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
