//! An upstream that keeps every request as it came and answers as it is told.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};

use super::message::{
    ChunkedEnd, Framing, chunked_end, decode_chunked, framing, head_end, head_lines,
};

/// More than this of one request is not read.
const MAX_BYTES: usize = 64 << 20;

/// One request as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The number of its connection, from 1 in the order of acceptance.
    pub connection: usize,
    /// The head with its empty line.
    pub head: Vec<u8>,
    /// The body as it came, with its chunks.
    pub raw_body: Vec<u8>,
    /// Whether it ended as its head said.
    pub complete: bool,
}

impl Received {
    /// The request line.
    #[must_use]
    pub fn line(&self) -> String {
        head_lines(&self.head)
            .next()
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .unwrap_or_default()
    }

    /// The body without its framing.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        match framing(&self.head, Framing::None) {
            Framing::Chunked => decode_chunked(&self.raw_body),
            _ => self.raw_body.clone(),
        }
    }
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Sent as they are.
    pub bytes: Vec<u8>,
    /// What follows.
    pub then: Then,
}

/// What an upstream does after its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Waits for the next request.
    Keep,
    /// Closes the connection.
    Close,
    /// Says nothing more, but keeps the connection open until the peer closes it.
    Hold,
}

type Script = Arc<dyn Fn(&Received) -> Reply + Send + Sync>;

struct State {
    script: Script,
    received: Vec<Received>,
    /// Bytes of the request that is under way on each connection that has one.
    under_way: Vec<(usize, usize)>,
    connections: usize,
}

struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_waiters();
    }

    async fn until(&self, limit: Duration, holds: impl Fn(&State) -> bool) -> bool {
        let waiting = async {
            loop {
                let changed = self.changed.notified();
                if holds(&self.lock()) {
                    return;
                }
                changed.await;
            }
        };
        tokio::time::timeout(limit, waiting).await.is_ok()
    }
}

/// A recording upstream; stops when dropped.
pub struct RawUpstream {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl fmt::Debug for RawUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawUpstream").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Drop for RawUpstream {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl RawUpstream {
    /// Listens on `address` and answers by `script`.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub async fn start(
        address: SocketAddr,
        script: impl Fn(&Received) -> Reply + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let state = State {
            script: Arc::new(script),
            received: Vec::new(),
            under_way: Vec::new(),
            connections: 0,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Notify::new() });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, accepting })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers by another script from the next request on.
    pub fn script(&self, script: impl Fn(&Received) -> Reply + Send + Sync + 'static) {
        self.shared.change(|state| state.script = Arc::new(script));
    }

    /// What came since the last call, in the order in which it ended.
    #[must_use]
    pub fn take(&self) -> Vec<Received> {
        std::mem::take(&mut self.shared.lock().received)
    }

    /// Waits until no request is half received; false when that takes longer than `limit`.
    pub async fn quiet(&self, limit: Duration) -> bool {
        self.shared.until(limit, |state| state.under_way.is_empty()).await
    }

    /// Waits until so many bytes of one request, its head among them, have come, ended or not;
    /// false when that takes longer than `limit`.
    pub async fn has_read(&self, bytes: usize, limit: Duration) -> bool {
        let whole = |request: &Received| request.head.len() + request.raw_body.len();
        self.shared
            .until(limit, |state| {
                state.under_way.iter().any(|(_, read)| *read >= bytes)
                    || state.received.iter().any(|request| whole(request) >= bytes)
            })
            .await
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let number = {
            let mut state = shared.lock();
            state.connections += 1;
            state.connections
        };
        while connections.try_join_next().is_some() {}
        connections.spawn(serve(stream, number, Arc::clone(&shared)));
    }
}

async fn serve(mut stream: TcpStream, number: usize, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let mut buffer = Vec::new();
    while let Some(request) = read(&mut stream, &mut buffer, number, &shared).await {
        let script = Arc::clone(&shared.lock().script);
        let complete = request.complete;
        // A half request is not answered, but seen.
        let reply = complete.then(|| script(&request));
        shared.change(|state| {
            state.under_way.retain(|(connection, _)| *connection != number);
            state.received.push(request);
        });
        let Some(reply) = reply else { return };
        if stream.write_all(&reply.bytes).await.is_err() {
            return;
        }
        match reply.then {
            Then::Keep => {}
            Then::Close => {
                let _ = stream.shutdown().await;
                return;
            }
            Then::Hold => {
                let mut rest = [0; 1024];
                while matches!(stream.read(&mut rest).await, Ok(read) if read > 0) {}
                return;
            }
        }
    }
}

/// The next request of a connection, whole or as far as it came; `None` at its end.
async fn read(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
    number: usize,
    shared: &Shared,
) -> Option<Received> {
    loop {
        if let Some(end) = head_end(buffer) {
            let whole = match framing(&buffer[..end], Framing::None) {
                Framing::None | Framing::Close => Some(end),
                Framing::Length(length) => Some(end + length).filter(|at| buffer.len() >= *at),
                Framing::Chunked => match chunked_end(&buffer[end..]) {
                    ChunkedEnd::At(at) => Some(end + at),
                    ChunkedEnd::Open | ChunkedEnd::Broken => None,
                },
            };
            if let Some(whole) = whole {
                return Some(cut_off(buffer, end, whole, number, true));
            }
        }
        let read = stream.read_buf(buffer).await.unwrap_or(0);
        if read == 0 || buffer.len() > MAX_BYTES {
            if buffer.is_empty() {
                return None;
            }
            let (end, whole) = (head_end(buffer).unwrap_or(buffer.len()), buffer.len());
            return Some(cut_off(buffer, end, whole, number, false));
        }
        shared.change(|state| {
            match state.under_way.iter_mut().find(|(connection, _)| *connection == number) {
                Some((_, bytes)) => *bytes = buffer.len(),
                None => state.under_way.push((number, buffer.len())),
            }
        });
    }
}

fn cut_off(
    buffer: &mut Vec<u8>,
    head: usize,
    whole: usize,
    connection: usize,
    complete: bool,
) -> Received {
    let rest = buffer.split_off(whole);
    let mut bytes = std::mem::replace(buffer, rest);
    let raw_body = bytes.split_off(head);
    Received { connection, head: bytes, raw_body, complete }
}
