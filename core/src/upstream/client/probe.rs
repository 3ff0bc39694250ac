//! Probes that take the way of requests.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::connect::Connector;
use crate::upstream::{Endpoint, Probe, ProbeFuture};

/// Opens a TCP connection and closes it. The name is looked up as for requests, all its addresses are
/// tried, and where requests go by a proxy, so does the probe. Made by
/// [`ClientFactory::probe`](super::ClientFactory::probe).
#[derive(Debug, Clone)]
pub struct TcpProbe {
    pub(super) connector: Arc<Connector>,
    /// How long all of that may take.
    pub(super) timeout: Duration,
}

impl Probe for TcpProbe {
    fn probe<'a>(&'a self, endpoint: &'a Endpoint) -> ProbeFuture<'a> {
        Box::pin(async move {
            let reaching = self.connector.reach(&endpoint.address);
            matches!(timeout(self.timeout, reaching).await, Ok(Ok(_)))
        })
    }
}
