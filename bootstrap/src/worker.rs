//! Workers: threads that only serve.
//!
//! `perCore`: each worker is a thread with a runtime, a listening socket and upstream connections of
//! its own. `shared`: one runtime with as many threads and one set of connections. Both run the same
//! code; everything on the path spawns through the runtime's handle.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use longmen_core::chain::{Edge, Tunnels};
use longmen_core::lifecycle::Lifecycle;
use longmen_core::upstream::UpstreamClient;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use crate::connection::{self, Settings};
use crate::listener;
use crate::stack::{self, Parts};

/// How long handshakes that have begun have to end before a listener closes: some round trips.
const HANDSHAKES: Duration = Duration::from_millis(100);

/// The most connections that are taken from a queue before its listener closes. Others who hold the
/// socket may keep it filled.
const QUEUE_MAX: usize = 65_535;

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

/// The sockets of a gateway: when they may be accepted from, who holds them, which are open.
#[derive(Debug, Clone, Default)]
pub(crate) struct Doors {
    /// Set when connections may be accepted.
    pub(crate) open: CancellationToken,
    /// Others who hold the same sockets: a successor, a supervisor.
    pub(crate) others: Arc<AtomicUsize>,
    /// Loops that may still accept.
    pub(crate) accepting: TaskTracker,
}

/// What a worker is made of. The parts are built on the worker's own thread.
pub(crate) struct Worker {
    pub(crate) name: String,
    pub(crate) threads: usize,
    pub(crate) listeners: Vec<std::net::TcpListener>,
    pub(crate) settings: Arc<Settings>,
    pub(crate) edge: Arc<Edge>,
    pub(crate) connections: ConnectionLimit,
    pub(crate) tunnels: Tunnels,
    pub(crate) doors: Doors,
    pub(crate) lifecycle: Lifecycle,
    #[expect(clippy::type_complexity, reason = "one closure that is called once")]
    pub(crate) parts: Box<dyn FnOnce(&Handle) -> (Parts, Arc<dyn UpstreamClient>) + Send>,
}

impl Worker {
    /// Starts the worker's threads.
    ///
    /// # Errors
    /// No thread, or no runtime, can be had.
    pub(crate) fn start(self) -> io::Result<JoinHandle<()>> {
        let runtime = runtime(&self.name, self.threads)?;
        let token = self.lifecycle.tracker().token();
        let accepting = self.doors.accepting.token();
        std::thread::Builder::new().name(self.name.clone()).spawn(move || {
            runtime.block_on(self.run(accepting));
            // What is left is over its time; a blocking look-up must not hold the stop up.
            runtime.shutdown_timeout(Duration::from_millis(100));
            drop(token);
        })
    }

    async fn run(self, accepting: tokio_util::task::task_tracker::TaskTrackerToken) {
        let handle = Handle::current();
        let (parts, client) = (self.parts)(&handle);
        let sweep = handle.spawn(async move {
            let mut ticks = tokio::time::interval(client.sweep_interval());
            loop {
                ticks.tick().await;
                client.sweep();
            }
        });
        let stack = stack::build(parts);
        let serving = TaskTracker::new();
        let loops = TaskTracker::new();
        for listener in self.listeners {
            let serve = {
                let (stack, connections, serving) =
                    (stack.clone(), self.connections.clone(), serving.clone());
                let (settings, edge) = (Arc::clone(&self.settings), Arc::clone(&self.edge));
                move |stream, peer| {
                    let Some(entered) = connections.enter() else {
                        debug!(%peer, "connection refused: at the limit of connections");
                        return;
                    };
                    let (stack, settings) = (stack.clone(), Arc::clone(&settings));
                    let edge = Arc::clone(&edge);
                    serving.spawn(async move {
                        connection::serve(stream, peer, stack, edge, settings).await;
                        drop(entered);
                    });
                }
            };
            loops.spawn(accept_all(listener, self.doors.clone(), self.lifecycle.clone(), serve));
        }
        loops.close();
        loops.wait().await;
        drop(accepting);
        serving.close();
        let ended = async {
            serving.wait().await;
            self.tunnels.gone().await;
        };
        tokio::select! {
            () = ended => {}
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

/// Accepts until the gateway stops, and then what has waited already.
async fn accept_all(
    listener: std::net::TcpListener,
    doors: Doors,
    lifecycle: Lifecycle,
    serve: impl Fn(TcpStream, std::net::SocketAddr),
) {
    let mut stops = pin!(lifecycle.soft().cancelled());
    tokio::select! {
        () = doors.open.cancelled() => {}
        () = stops.as_mut() => return,
    }
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            warn!("worker without a listener: {error}");
            lifecycle.soft().cancel();
            return;
        }
    };
    loop {
        tokio::select! {
            accepted = accept(&listener) => {
                if let Some((stream, peer)) = accepted {
                    serve(stream, peer);
                }
            }
            () = stops.as_mut() => break,
        }
    }
    // Others who hold the socket go on with its queue, and need new handshakes.
    if doors.others.load(Ordering::Acquire) == 0 {
        if let Err(error) = listener::refuse_new(&listener) {
            debug!("connections may be reset while the listener closes: {error}");
        }
        let mut settled = pin!(tokio::time::sleep(HANDSHAKES));
        loop {
            tokio::select! {
                accepted = accept(&listener) => {
                    if let Some((stream, peer)) = accepted {
                        serve(stream, peer);
                    }
                }
                () = settled.as_mut() => break,
                () = lifecycle.hard().cancelled() => break,
            }
        }
    }
    let Ok(listener) = listener.into_std() else { return };
    for _ in 0..QUEUE_MAX {
        let Ok((stream, peer)) = listener.accept() else { return };
        if stream.set_nonblocking(true).is_ok()
            && let Ok(stream) = TcpStream::from_std(stream)
        {
            serve(stream, peer);
        }
    }
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
