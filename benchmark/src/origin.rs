//! The mock upstream: a small, fast HTTP server whose answers say what reached it.
//!
//! It speaks HTTP/1.1 with keep-alive, and HTTP/2 to a client that starts with its preface. Every
//! answer carries `x-upstream`, the name of the origin.
//!
//! | path | answer |
//! |---|---|
//! | `/hello` | 13 bytes of text |
//! | `/2k`, `/4k` | 2,048 and 4,000 bytes of text |
//! | `/delay20` | the 2,048 bytes after 20 ms |
//! | `/echo` | the request body, streamed back as it arrives; `x-method`, `x-target` |
//! | `/ws`, `/ws/…` | a websocket that sends every message back |
//! | `/sse` | an event stream; `?count=` events (10), one each `&interval_ms=` (100) |
//! | `/status/<code>` | an empty answer with that status |
//! | `/fault/close` | none: the connection is closed |
//! | `/fault/slow-head` | a head that comes after `?ms=` milliseconds (1,000) |
//! | `/fault/cut-body` | ten bytes of a body announced as a thousand, then the end |
//! | any other | JSON: `name method target headers bodyLength bodySha256` |

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use http::HeaderValue;
use tokio_util::sync::CancellationToken;

mod body;
mod echo;
mod rewind;
mod service;
mod sse;
mod websocket;
mod worker;

use worker::Worker;

/// How long a graceful stop waits for requests in flight, unless the builder says otherwise.
const DEFAULT_GRACE: Duration = Duration::from_secs(2);

/// A running mock upstream. Dropping it closes everything at once; [`Origin::stop`] is graceful.
pub struct Origin {
    addr: SocketAddr,
    shared: Arc<Shared>,
    counters: Vec<Arc<Counters>>,
    threads: Vec<JoinHandle<()>>,
}

/// What to start; made by [`Origin::builder`].
#[derive(Debug, Clone)]
pub struct Builder {
    name: String,
    bind: String,
    workers: usize,
    echo_headers: bool,
    grace: Duration,
}

/// What an origin does wrong to every request, to see how a gateway takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: requests are answered.
    None,
    /// The connection is closed as soon as a request head was read.
    Close,
    /// The head of the answer comes later by this time, cut to whole milliseconds.
    SlowHead(Duration),
}

/// State of one origin, shared by its workers.
#[derive(Debug)]
struct Shared {
    name: String,
    name_header: HeaderValue,
    echo_headers: bool,
    /// 0 = no fault, `u64::MAX` = close, else the delay of the head in milliseconds.
    fault: AtomicU64,
    /// Stops accepting, lets requests in flight finish.
    soft: CancellationToken,
    /// Ends everything at once.
    hard: CancellationToken,
    grace: Duration,
}

/// What one worker counts. Each is written by its worker alone.
#[derive(Debug, Default)]
struct Counters {
    requests: AtomicU64,
    connections: AtomicU64,
}

// === impl Origin ===

impl Origin {
    /// Starts to describe an origin: named `origin`, on a free port of 127.0.0.1, one worker.
    #[must_use]
    pub fn builder() -> Builder {
        Builder {
            name: "origin".into(),
            bind: "127.0.0.1:0".into(),
            workers: 1,
            echo_headers: true,
            grace: DEFAULT_GRACE,
        }
    }

    /// The address it listens on, with the real port.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://host:port`, without a slash at the end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The name it gives in `x-upstream`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Requests whose head was read so far, faulty ones included.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.counters.iter().map(|counters| counters.requests.load(Ordering::Relaxed)).sum()
    }

    /// Connections accepted so far.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.counters.iter().map(|counters| counters.connections.load(Ordering::Relaxed)).sum()
    }

    /// Sets what goes wrong from the next request on.
    pub fn set_fault(&self, fault: Fault) {
        self.shared.fault.store(fault.code(), Ordering::Relaxed);
    }

    /// Stops accepting, waits for the requests in flight (at most the grace time), ends.
    ///
    /// When it returns, the port is free and no thread of the origin is left.
    pub async fn stop(mut self) {
        self.shared.soft.cancel();
        let threads = std::mem::take(&mut self.threads);
        let joined = tokio::task::spawn_blocking(move || join(threads)).await;
        if let Err(error) = joined {
            std::panic::resume_unwind(error.into_panic());
        }
    }

    /// Waits until the origin was stopped from outside; for a process that is nothing else.
    ///
    /// # Panics
    /// When a worker thread panicked.
    pub fn wait(mut self) {
        join(std::mem::take(&mut self.threads));
    }

    /// A handle that stops it gracefully when cancelled.
    #[must_use]
    pub fn stopper(&self) -> CancellationToken {
        self.shared.soft.clone()
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.shared.hard.cancel();
        for thread in self.threads.drain(..) {
            // A panic of a worker must not turn a failing test into an abort.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Origin")
            .field("name", &self.shared.name)
            .field("addr", &self.addr)
            .field("workers", &self.counters.len())
            .finish_non_exhaustive()
    }
}

fn join(threads: Vec<JoinHandle<()>>) {
    for thread in threads {
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    }
}

// === impl Builder ===

impl Builder {
    /// The name given in `x-upstream` and in JSON answers.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Where to listen, `host:port`; port 0 takes a free one.
    #[must_use]
    pub fn bind(mut self, address: impl Into<String>) -> Self {
        self.bind = address.into();
        self
    }

    /// Number of worker threads, each with its own listener on the same port; at least 1.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.max(1);
        self
    }

    /// Whether JSON answers list the request's headers, as `[name, value]` pairs. On by default.
    #[must_use]
    pub const fn echo_headers(mut self, yes: bool) -> Self {
        self.echo_headers = yes;
        self
    }

    /// How long a graceful stop waits for requests in flight.
    #[must_use]
    pub const fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Binds and starts serving. Needs no runtime around it.
    ///
    /// # Errors
    /// When the name cannot stand in a header, the address cannot be resolved or bound, or a
    /// thread cannot be started.
    pub fn start(self) -> io::Result<Origin> {
        let name_header = HeaderValue::from_str(&self.name).map_err(|_| {
            let what = format!("origin name {:?} cannot be sent as a header value", self.name);
            io::Error::new(io::ErrorKind::InvalidInput, what)
        })?;
        let shared = Arc::new(Shared {
            name: self.name,
            name_header,
            echo_headers: self.echo_headers,
            fault: AtomicU64::new(Fault::None.code()),
            soft: CancellationToken::new(),
            hard: CancellationToken::new(),
            grace: self.grace,
        });
        let first = worker::listen(resolve(&self.bind)?)?;
        let addr = first.local_addr()?;
        let mut listeners = vec![first];
        for _ in 1..self.workers {
            listeners.push(worker::listen(addr)?);
        }
        let mut origin = Origin { addr, shared, counters: Vec::new(), threads: Vec::new() };
        for listener in listeners {
            let counters = Arc::new(Counters::default());
            let worker = Worker::new(listener, Arc::clone(&origin.shared), Arc::clone(&counters))?;
            let name = format!("origin-{}", origin.threads.len());
            let thread = std::thread::Builder::new().name(name).spawn(move || worker.run())?;
            origin.counters.push(counters);
            origin.threads.push(thread);
        }
        Ok(origin)
    }
}

fn resolve(address: &str) -> io::Result<SocketAddr> {
    address.to_socket_addrs()?.next().ok_or_else(|| {
        io::Error::new(io::ErrorKind::NotFound, format!("{address:?} names no address"))
    })
}

// === impl Fault ===

impl Fault {
    fn code(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Close => u64::MAX,
            Self::SlowHead(delay) => {
                u64::try_from(delay.as_millis()).unwrap_or(u64::MAX - 1).min(u64::MAX - 1)
            }
        }
    }

    const fn from_code(code: u64) -> Self {
        match code {
            0 => Self::None,
            u64::MAX => Self::Close,
            ms => Self::SlowHead(Duration::from_millis(ms)),
        }
    }
}
