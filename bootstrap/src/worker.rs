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
use longmen_core::telemetry::Throttle;
use longmen_core::upstream::UpstreamClient;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, error, warn};

use crate::connection::{self, Settings};
use crate::listener;
use crate::stack::{self, Parts};

/// How long handshakes that have begun have to end before a listener closes: some round trips.
const HANDSHAKES: Duration = Duration::from_millis(100);

/// The most connections that are taken from a queue before its listener closes. Others who hold the
/// socket may keep it filled.
const QUEUE_MAX: usize = 65_535;

/// How often the emptying of a queue is tried again where the process can accept nothing for now, and
/// the time between: requests that end give descriptors back.
const DRAIN_TRIES: usize = 40;
const DRAIN_PAUSE: Duration = Duration::from_millis(50);

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
        let alarm = Alarm(self.lifecycle.clone());
        std::thread::Builder::new().name(self.name.clone()).spawn(move || {
            let _alarm = alarm;
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
        let mut loops = JoinSet::new();
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
        while let Some(ended) = loops.join_next().await {
            if ended.is_err() {
                error!("a worker accepts nothing any more: stopping");
                self.lifecycle.fail();
            }
        }
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

/// Ends the gateway, as failed, when its thread panics: what it served is not served any more.
struct Alarm(Lifecycle);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            error!("a worker panicked: stopping");
            self.0.fail();
        }
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
            error!("a worker cannot listen: {error}");
            lifecycle.fail();
            return;
        }
    };
    let failures = Throttle::default();
    loop {
        tokio::select! {
            accepted = accept(&listener, &failures) => {
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
                accepted = accept(&listener, &failures) => {
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
    let emptied = drain(
        DRAIN_PAUSE,
        || listener.accept(),
        move |(stream, peer)| {
            if stream.set_nonblocking(true).is_ok()
                && let Ok(stream) = TcpStream::from_std(stream)
            {
                serve(stream, peer);
            }
        },
    );
    tokio::select! {
        left = emptied => if let Err(error) = left {
            warn!("connections that wait are reset, since they cannot be accepted: {error}");
        },
        () = lifecycle.hard().cancelled() => {}
    }
}

/// Takes what waits in a queue.
///
/// # Errors
/// The process cannot accept for too long; what waits is left.
async fn drain<T>(
    pause: Duration,
    mut accept: impl FnMut() -> io::Result<T>,
    mut serve: impl FnMut(T),
) -> io::Result<()> {
    let mut tries = 0;
    for _ in 0..QUEUE_MAX {
        match accept() {
            Ok(accepted) => serve(accepted),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if is_of_the_peer(&error) => {}
            Err(error) if tries == DRAIN_TRIES => return Err(error),
            Err(_) => {
                tries += 1;
                tokio::time::sleep(pause).await;
            }
        }
    }
    Ok(())
}

/// Whether this is about one connection, and the next may be accepted at once.
fn is_of_the_peer(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}

/// Accepts one connection. An error of the process (no descriptors left) is waited out, not spun on.
async fn accept(
    listener: &TcpListener,
    failures: &Throttle,
) -> Option<(TcpStream, std::net::SocketAddr)> {
    match listener.accept().await {
        Ok(accepted) => Some(accepted),
        Err(error) => {
            if !is_of_the_peer(&error) {
                if let Some(left_out) = failures.pass() {
                    warn!("cannot accept connections: {error}{left_out}");
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::time::Duration;

    use longmen_core::lifecycle::Lifecycle;

    use super::{Alarm, DRAIN_TRIES, Doors, accept_all, drain};

    /// What a queue whose accepts end so gives, and whether it is emptied.
    async fn drained(results: Vec<io::Result<u32>>) -> (Vec<u32>, bool) {
        let mut results = results.into_iter();
        let empty = || Err(io::ErrorKind::WouldBlock.into());
        let mut taken = Vec::new();
        let emptied = drain(
            Duration::from_millis(1),
            || results.next().unwrap_or_else(empty),
            |number| taken.push(number),
        );
        let emptied = emptied.await.is_ok();
        (taken, emptied)
    }

    #[tokio::test]
    async fn errors_do_not_end_the_emptying_of_a_queue() {
        let no_descriptors = || Err(io::Error::from_raw_os_error(24));
        let aborted = || Err(io::ErrorKind::ConnectionAborted.into());
        let results = vec![Ok(1), aborted(), Ok(2), no_descriptors(), Ok(3)];
        assert_eq!(drained(results).await, (vec![1, 2, 3], true));
        let mut results: Vec<_> = (0..1000).map(|_| aborted()).collect();
        results.push(Ok(1));
        assert_eq!(drained(results).await, (vec![1], true));
        let mut results: Vec<_> = (0..=DRAIN_TRIES).map(|_| no_descriptors()).collect();
        results.push(Ok(1));
        assert_eq!(drained(results).await, (vec![], false));
    }

    #[tokio::test]
    async fn a_worker_that_cannot_listen_is_a_failure() {
        use std::os::fd::OwnedFd;

        let lifecycle = Lifecycle::new();
        let doors = Doors::default();
        doors.open.cancel();
        // Nothing that can be waited on; not blocking, as every socket here.
        let file = tempfile::tempfile().unwrap();
        let listener = std::net::TcpListener::from(OwnedFd::from(file));
        listener.set_nonblocking(true).unwrap();
        let accepting = accept_all(listener, doors, lifecycle.clone(), |_, _| {});
        tokio::time::timeout(Duration::from_secs(10), accepting).await.unwrap();
        assert!(lifecycle.soft().is_cancelled());
        assert!(lifecycle.cut_off().await.failed);
    }

    #[tokio::test]
    async fn a_worker_that_panics_is_a_failure() {
        let lifecycle = Lifecycle::new();
        let alarm = Alarm(lifecycle.clone());
        let worker = std::thread::spawn(move || {
            let _alarm = alarm;
            panic!("as planned");
        });
        assert!(worker.join().is_err());
        assert!(lifecycle.soft().is_cancelled());
        assert!(lifecycle.cut_off().await.failed);
        drop(Alarm(Lifecycle::new()));
    }
}
