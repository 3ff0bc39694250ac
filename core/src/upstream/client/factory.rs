//! What the clients of all workers have in common.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;

use super::connect::{Connector, TlsSetupError};
use super::dns::{Dns, LookUp, SystemLookUp};
use super::pool::Pool;
use super::stats::{ConnectionStats, HostBook};
use super::{ClientOptions, HyperClient, PoolLimit, ReqwestClient, TcpProbe};

/// What is shared by the clients of all workers.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: Arc<ClientOptions>,
    pub(super) connector: Arc<Connector>,
    book: Arc<HostBook>,
    /// The one pool of all workers, where the number of connections is fixed.
    fixed: Option<Arc<Pool>>,
    workers: AtomicUsize,
}

impl Shared {
    /// The pool of one more worker.
    pub(super) fn pool(&self) -> Arc<Pool> {
        let worker = self.workers.fetch_add(1, Ordering::Relaxed);
        match &self.fixed {
            Some(fixed) => Arc::clone(fixed),
            None => Arc::new(Pool::new(&self.options, &self.book, worker)),
        }
    }
}

/// Makes the clients of a gateway's workers: they share names, TLS sessions, limits and counters.
#[derive(Debug, Clone)]
pub struct ClientFactory(Arc<Shared>);

impl ClientFactory {
    /// Clients that look names up as the system does. Look-ups run on `control`, never on a worker.
    ///
    /// # Errors
    /// A configured certificate or key that cannot be read.
    pub fn new(options: ClientOptions, control: &Handle) -> Result<Self, TlsSetupError> {
        Self::with_look_up(options, control, Arc::new(SystemLookUp::new()))
    }

    /// Clients that look names up by `source`.
    ///
    /// # Errors
    /// A configured certificate or key that cannot be read.
    pub fn with_look_up(
        options: ClientOptions,
        control: &Handle,
        source: Arc<dyn LookUp>,
    ) -> Result<Self, TlsSetupError> {
        let options = Arc::new(options);
        let book = Arc::new(HostBook::default());
        let connector = Connector::new(Dns::new(source, control.clone()), &options)?;
        let connector = Arc::new(connector);
        let fixed = matches!(options.pool.limit, PoolLimit::Fixed { .. })
            .then(|| Arc::new(Pool::new(&options, &book, usize::MAX)));
        Ok(Self(Arc::new(Shared { options, connector, book, fixed, workers: AtomicUsize::new(0) })))
    }

    /// A client of strategy `hyper` for one worker; its connections are driven on `runtime`.
    #[must_use]
    pub fn hyper(&self, runtime: &Handle) -> HyperClient {
        HyperClient::new(Arc::clone(&self.0), runtime.clone())
    }

    /// A client of strategy `reqwest` for one worker.
    #[must_use]
    pub fn reqwest(&self, runtime: &Handle) -> ReqwestClient {
        ReqwestClient::new(Arc::clone(&self.0), runtime.clone())
    }

    /// A probe that finds upstreams as these clients do, with a time limit of its own.
    #[must_use]
    pub fn probe(&self, timeout: Duration) -> TcpProbe {
        TcpProbe { connector: Arc::clone(&self.0.connector), timeout }
    }

    /// The connections of each upstream host, sorted by address, over all workers. Takes a lock
    /// that no request takes while its connection is open.
    #[must_use]
    pub fn stats(&self) -> Vec<ConnectionStats> {
        self.0.book.read()
    }
}
