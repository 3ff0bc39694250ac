//! Who watches the requests of a worker.

use std::sync::Arc;
use std::time::Duration;

use http::{StatusCode, Version};

use super::access_log::{Line, Lines};
use super::metrics::WorkerMetrics;
use crate::chain::{Completion, Connection, Observed, Outcome};
use crate::error::Reason;
use crate::upstream::Endpoint;

/// Counts and logs the requests of one worker, each exactly once.
///
/// Cost per request: counting is a handful of additions to memory of the worker's own; a line of the
/// log is one allocation, about a microsecond of formatting, and a place in the worker's queue.
#[derive(Debug)]
pub struct Observer {
    /// The worker's counters.
    pub metrics: Option<Arc<WorkerMetrics>>,
    /// The worker's end of the access log.
    pub log: Option<Lines>,
}

impl Observer {
    /// Whether requests are logged.
    #[must_use]
    pub const fn logs(&self) -> bool {
        self.log.is_some()
    }

    /// A request has reached the chain.
    pub(crate) fn begun(&self) {
        if let Some(metrics) = &self.metrics {
            metrics.begun();
        }
    }

    /// An attempt on an upstream is over; without a status it failed.
    pub(crate) fn attempted(
        &self,
        endpoint: &Arc<Endpoint>,
        elapsed: Duration,
        status: Option<StatusCode>,
    ) {
        if let Some(metrics) = &self.metrics {
            metrics.attempted(endpoint, elapsed, status);
        }
    }

    /// A request is over.
    pub(crate) fn over(&self, completion: &Completion, observed: &Observed, begun: bool) {
        if let Some(metrics) = &self.metrics {
            metrics.over(completion, begun);
        }
        if let Some(log) = &self.log {
            log.write(&Line { completion, observed });
        }
    }

    /// The server itself answered something that it could not read as a request.
    pub fn unreadable(&self, connection: &Arc<Connection>, status: StatusCode) {
        let reason = match status {
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE | StatusCode::URI_TOO_LONG => {
                Reason::HeaderTooLarge
            }
            _ => Reason::BadRequest,
        };
        let mut completion = Completion::empty();
        completion.outcome = Outcome::Finished;
        completion.status = Some(status);
        completion.reason = Some(reason);
        let observed = Observed {
            connection: Arc::clone(connection),
            client: Some(connection.peer.ip().to_canonical()),
            request_id: None,
            version: Version::HTTP_11,
        };
        self.over(&completion, &observed, false);
    }
}
