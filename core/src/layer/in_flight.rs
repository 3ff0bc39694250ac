//! The limit of requests under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Request, StatusCode};

use super::{Admission, Admitted};
use crate::chain::Inbound;
use crate::error::{Fault, GatewayError, Reason};

/// Lets at most `limit` requests be under way, counted to the end of the answer's body; one more is
/// answered 503 at once. Shared by all workers.
#[derive(Debug, Clone)]
pub struct InFlightLimit {
    count: Arc<AtomicUsize>,
    limit: usize,
}

impl InFlightLimit {
    /// A limit; 0 means none, and then nothing is counted.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { count: Arc::default(), limit }
    }

    /// Requests under way.
    #[must_use]
    pub fn current(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}

impl Admission for InFlightLimit {
    fn admit(&self, request: &mut Request<Inbound>) -> Admitted {
        if self.limit == 0 {
            return Admitted::Pass;
        }
        let before = self.count.fetch_add(1, Ordering::Relaxed);
        let permit = Permit(Arc::clone(&self.count));
        if before >= self.limit {
            return Admitted::Refuse(GatewayError::new(
                Fault::Gateway,
                Reason::Overloaded,
                StatusCode::SERVICE_UNAVAILABLE,
                "the gateway is at its limit of requests",
            ));
        }
        request.body_mut().permit = Some(permit);
        Admitted::Pass
    }
}

/// One request under way; gives its place back when dropped.
#[derive(Debug)]
pub struct Permit(Arc<AtomicUsize>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
