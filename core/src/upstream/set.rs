//! The immutable upstream list of one selector.

use std::net::IpAddr;
use std::sync::Arc;

use super::balance::{self, BalanceState, Choice, LoadBalance};
use super::{AddressFault, Endpoint, EndpointRegistry};
use crate::model::{Upstream, UpstreamStatus};

/// One upstream inside a list.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its lasting state.
    pub endpoint: Arc<Endpoint>,
    /// Its share of the traffic; never 0.
    pub weight: u32,
}

/// The usable upstreams of a selector, with what its balancers need, built at sync time.
#[derive(Debug, Default)]
pub struct UpstreamSet {
    members: Vec<Member>,
    tables: balance::Tables,
    state: Arc<BalanceState>,
}

impl UpstreamSet {
    /// Builds the set of a selector.
    ///
    /// Left out: what is down, what has weight 0 while another has a weight, what is not gray while
    /// another is, and what has no readable address (returned as faults). With `equal_shares` a
    /// list in which every weight is 0 says nothing about weights; otherwise it is an empty set.
    #[must_use]
    pub fn build(
        selector_id: &str,
        upstreams: &[Upstream],
        equal_shares: bool,
        state: Arc<BalanceState>,
        registry: &mut EndpointRegistry,
    ) -> (Self, Vec<AddressFault>) {
        let mut faults = Vec::new();
        let any_gray = upstreams.iter().any(|upstream| upstream.properties().gray);
        let unknown_weights = equal_shares && upstreams.iter().all(|u| u.weight <= 0);
        let mut members = Vec::with_capacity(upstreams.len());
        for upstream in upstreams {
            let weight =
                if unknown_weights { 1 } else { u32::try_from(upstream.weight).unwrap_or(0) };
            let wanted = upstream.state() == UpstreamStatus::Up
                && weight > 0
                && (!any_gray || upstream.properties().gray);
            if !wanted {
                continue;
            }
            match registry.endpoint(selector_id, upstream) {
                Ok(endpoint) => members.push(Member { endpoint, weight }),
                Err(fault) => faults.push(fault),
            }
        }
        let tables = balance::Tables::build(&members);
        (Self { members, tables, state }, faults)
    }

    /// Whether nothing can be chosen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The usable upstreams, in configured order.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The upstream whose url is exactly this (`specify-domain`).
    #[must_use]
    pub fn named(&self, url: &str) -> Option<&Arc<Endpoint>> {
        self.members.iter().map(|member| &member.endpoint).find(|endpoint| &*endpoint.url == url)
    }

    /// Chooses an upstream. `peer` is the socket's peer; no allocation.
    #[must_use]
    pub fn choose(&self, how: LoadBalance, peer: IpAddr) -> Option<&Arc<Endpoint>> {
        let index = match self.members.len() {
            0 => return None,
            1 => 0,
            _ => balance::choose(
                how,
                Choice { members: &self.members, tables: &self.tables, state: &self.state, peer },
            ),
        };
        self.members.get(index).map(|member| &member.endpoint)
    }
}
