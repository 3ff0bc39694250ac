//! Workers: threads that only serve.
//!
//! `perCore`: each worker is a thread with a runtime, a listening socket and upstream connections of
//! its own. `shared`: one runtime with as many threads, one socket, one set of connections. Both run
//! the same code; everything on the path spawns through the runtime's handle.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use longmen_core::chain::Edge;
use longmen_core::lifecycle::Lifecycle;
use longmen_core::upstream::UpstreamClient;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tracing::{debug, warn};

use crate::connection::{self, Settings};
use crate::stack::{self, Parts};

/// The connections of all workers.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionLimit {
    count: Arc<AtomicUsize>,
    refused: Arc<AtomicU64>,
    limit: usize,
}

impl ConnectionLimit {
    /// A limit; 0 means none.
    pub(crate) fn new(limit: usize) -> Self {
        Self { count: Arc::default(), refused: Arc::default(), limit }
    }

    fn enter(&self) -> Option<Entered> {
        let before = self.count.fetch_add(1, Ordering::Relaxed);
        let entered = Entered(Arc::clone(&self.count));
        if self.limit == 0 || before < self.limit {
            return Some(entered);
        }
        self.refused.fetch_add(1, Ordering::Relaxed);
        None
    }

    /// Connections that are open.
    pub(crate) fn open(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Connections that were closed at once because so many are open.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

struct Entered(Arc<AtomicUsize>);

impl Drop for Entered {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a worker is made of. The parts are built on the worker's own thread.
pub(crate) struct Worker {
    pub(crate) name: String,
    pub(crate) threads: usize,
    pub(crate) listener: std::net::TcpListener,
    pub(crate) settings: Arc<Settings>,
    pub(crate) edge: Arc<Edge>,
    pub(crate) connections: ConnectionLimit,
    pub(crate) lifecycle: Lifecycle,
    #[expect(clippy::type_complexity, reason = "one closure that is called once")]
    pub(crate) parts:
        Box<dyn FnOnce(&tokio::runtime::Handle) -> (Parts, Arc<dyn UpstreamClient>) + Send>,
}

impl Worker {
    /// Starts the worker's threads.
    ///
    /// # Errors
    /// No thread, or no runtime, can be had.
    pub(crate) fn start(self) -> io::Result<JoinHandle<()>> {
        let runtime = runtime(&self.name, self.threads)?;
        let token = self.lifecycle.tracker().token();
        std::thread::Builder::new().name(self.name.clone()).spawn(move || {
            runtime.block_on(self.run());
            // What is left is over its time; a blocking look-up must not hold the stop up.
            runtime.shutdown_timeout(Duration::from_millis(100));
            drop(token);
        })
    }

    async fn run(self) {
        let handle = tokio::runtime::Handle::current();
        let (parts, client) = (self.parts)(&handle);
        let listener = match TcpListener::from_std(self.listener) {
            Ok(listener) => listener,
            Err(error) => {
                warn!("worker without a listener: {error}");
                self.lifecycle.soft().cancel();
                return;
            }
        };
        let sweep = handle.spawn(async move {
            let mut ticks = tokio::time::interval(client.sweep_interval());
            loop {
                ticks.tick().await;
                client.sweep();
            }
        });
        let stack = stack::build(parts);
        let soft = self.lifecycle.soft().clone();
        let serving = tokio_util::task::TaskTracker::new();
        loop {
            let accepted = tokio::select! {
                accepted = accept(&listener) => accepted,
                () = soft.cancelled() => break,
            };
            let Some((stream, peer)) = accepted else { continue };
            let Some(entered) = self.connections.enter() else {
                debug!(%peer, "connection refused: at the limit of connections");
                continue;
            };
            let (stack, settings, soft) = (stack.clone(), Arc::clone(&self.settings), soft.clone());
            let edge = Arc::clone(&self.edge);
            serving.spawn(async move {
                connection::serve(stream, peer, stack, edge, settings, soft).await;
                drop(entered);
            });
        }
        drop(listener);
        serving.close();
        tokio::select! {
            () = serving.wait() => {}
            () = self.lifecycle.hard().cancelled() => {}
        }
        sweep.abort();
    }
}

fn runtime(name: &str, threads: usize) -> io::Result<Runtime> {
    if threads <= 1 {
        return Builder::new_current_thread().enable_all().thread_name(name).build();
    }
    Builder::new_multi_thread().worker_threads(threads).enable_all().thread_name(name).build()
}

/// Accepts one connection. An error of the process (no descriptors left) is waited out, not spun on.
async fn accept(listener: &TcpListener) -> Option<(TcpStream, std::net::SocketAddr)> {
    match listener.accept().await {
        Ok(accepted) => Some(accepted),
        Err(error) => {
            let of_the_peer = matches!(
                error.kind(),
                io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::ConnectionReset
                    | io::ErrorKind::ConnectionRefused
            );
            if !of_the_peer {
                warn!("cannot accept connections: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            None
        }
    }
}
