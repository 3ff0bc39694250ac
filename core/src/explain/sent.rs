//! The request as it would be sent, and the upstreams it may be sent to.

use http::HeaderValue;
use http::header::{CONTENT_LENGTH, HeaderName};
use http::request::Parts;

use super::Asking;
use super::answer::{Candidate, Header, Sent};
use crate::chain::{Balanced, Target, X_REQUEST_ID};
use crate::mask::{self, MASK, is_secret_header};
use crate::snapshot::ConfigState;
use crate::upstream::{Share, UpstreamSet};

/// What stands in the place of a value that each request gets anew.
const FRESH: &str = "(made for each request)";

/// A percentage that people can read.
pub(super) fn rounded(percent: f64) -> f64 {
    (percent * 100.0).round() / 100.0
}

/// The head that the likeliest upstream would get.
pub(super) fn request(
    asking: &Asking<'_>,
    head: &Parts,
    target: &Target,
    balanced: Option<&Balanced>,
) -> Sent {
    let header = |(name, value): (&HeaderName, &HeaderValue)| {
        let fresh = (*name == X_REQUEST_ID || name.as_str() == "traceparent")
            && asking.request.headers.get(name) != Some(value);
        let value = if fresh {
            FRESH.to_owned()
        } else if is_secret_header(name) && !value.is_empty() {
            MASK.to_owned()
        } else {
            String::from_utf8_lossy(value.as_bytes()).into_owned()
        };
        Header { name: name.as_str().to_owned(), value }
    };
    let length = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let chunked = asking.request.headers.contains_key(http::header::TRANSFER_ENCODING);
    let unannounced = if chunked { None } else { Some(0) };
    Sent {
        method: head.method.as_str().to_owned(),
        url: mask::target(&format!("{}{}", target.endpoint, head.uri)),
        headers: head.headers.iter().map(header).collect(),
        body_bytes: length.map_or(unannounced, |length| length.parse().ok()),
        timeout_ms: u64::try_from(target.policy.timeout.as_millis()).unwrap_or(u64::MAX),
        retries: target.policy.retries,
        failover: target.policy.failover,
        load_balance: balanced.and_then(|balanced| balanced.how).map(|how| how.name()),
    }
}

/// The upstreams of a selector: those it chooses from, then those that are configured and left out.
pub(super) fn upstreams(
    state: &ConfigState,
    selector: &str,
    balanced: &Balanced,
) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = balanced.shares.iter().map(candidate).collect();
    if let Some(known) = state.upstreams.get(selector) {
        let left_out = UpstreamSet::left_out(&known.entries, known.watched);
        all.extend(left_out.into_iter().map(|(upstream, why)| Candidate {
            url: upstream.url.clone(),
            chance: 0.0,
            next: false,
            healthy: false,
            weight: upstream.weight.into(),
            weight_now: None,
            in_flight: None,
            reason: Some(why.to_string()),
        }));
    }
    all
}

fn candidate(share: &Share) -> Candidate {
    let endpoint = &share.endpoint;
    let full = || "at its limit of requests under way: one more is refused".to_owned();
    let last_resort = || {
        let ejected = share.state.ejected_for.is_some();
        ejected.then(|| "ejected since requests failed, and tried again".to_owned())
    };
    let reason = share.excluded.clone();
    Candidate {
        url: endpoint.url.to_string(),
        chance: rounded(share.chance * 100.0),
        next: share.next,
        healthy: share.state.healthy(),
        weight: share.weight.into(),
        weight_now: Some(share.weight_now).filter(|now| *now != share.weight),
        in_flight: Some(share.state.in_flight),
        reason: reason.or_else(|| endpoint.is_full().then(full)).or_else(last_resort),
    }
}
