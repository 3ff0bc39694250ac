//! One worker: a thread with its own runtime and its own listener on the shared port.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_util::task::TaskTracker;

use super::rewind::Rewind;
use super::{Counters, Shared, rewind, service};

/// Connections the kernel holds for a worker that is busy. Load tests open thousands at once.
const BACKLOG: i32 = 4_096;

/// How long to wait after a failed accept, such as one that found no free descriptor.
const ACCEPT_BACK_OFF: Duration = Duration::from_millis(10);

/// A worker that is bound but not yet serving.
pub(super) struct Worker {
    runtime: Runtime,
    listener: std::net::TcpListener,
    shared: Arc<Shared>,
    counters: Arc<Counters>,
}

impl Worker {
    pub(super) fn new(
        listener: std::net::TcpListener,
        shared: Arc<Shared>,
        counters: Arc<Counters>,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, listener, shared, counters })
    }

    /// Serves until the origin is stopped.
    pub(super) fn run(self) {
        let Self { runtime, listener, shared, counters } = self;
        let hard = shared.hard.clone();
        runtime.block_on(async move {
            let listener = TcpListener::from_std(listener)
                .expect("the listener is non-blocking and the runtime has I/O enabled");
            let tasks = TaskTracker::new();
            tokio::select! {
                () = hard.cancelled() => return,
                () = accept(listener, &tasks, &shared, &counters) => {}
            }
            tasks.close();
            tokio::select! {
                () = hard.cancelled() => {}
                () = tasks.wait() => {}
                () = tokio::time::sleep(shared.grace) => {}
            }
        });
        // What is still open is closed by dropping its task.
        runtime.shutdown_background();
    }
}

/// Binds one of several listeners of the same address.
///
/// # Errors
/// When the address is in use by somebody who does not share it, or is not ours.
pub(super) fn listen(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket
        .bind(&address.into())
        .map_err(|error| io::Error::new(error.kind(), format!("bind {address}: {error}")))?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

async fn accept(
    listener: TcpListener,
    tasks: &TaskTracker,
    shared: &Arc<Shared>,
    counters: &Arc<Counters>,
) {
    loop {
        let accepted = tokio::select! {
            () = shared.soft.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                counters.connections.fetch_add(1, Ordering::Relaxed);
                tasks.spawn(connection(stream, Arc::clone(shared), Arc::clone(counters)));
            }
            // The peer may be gone already, or descriptors are short: neither ends the origin.
            Err(_) => tokio::time::sleep(ACCEPT_BACK_OFF).await,
        }
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>, counters: Arc<Counters>) {
    // Without it an answer in two writes waits for the peer's delayed acknowledgement.
    let _ = stream.set_nodelay(true);
    let soft = shared.soft.clone();
    let detected = tokio::select! {
        () = soft.cancelled() => return,
        detected = rewind::detect(stream) => detected,
    };
    let Ok((stream, protocol)) = detected else { return };
    match protocol {
        rewind::Protocol::Http1 => http1(stream, shared, counters).await,
        rewind::Protocol::Http2 => http2(stream, shared, counters).await,
    }
}

async fn http1(stream: Rewind, shared: Arc<Shared>, counters: Arc<Counters>) {
    let soft = shared.soft.clone();
    let service = service_fn(move |request| {
        counters.requests.fetch_add(1, Ordering::Relaxed);
        service::answer(Arc::clone(&shared), request)
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut served = std::pin::pin!(served);
    // A connection that breaks is the other side's news; the origin has nobody to tell.
    tokio::select! {
        _ = served.as_mut() => return,
        () = soft.cancelled() => served.as_mut().graceful_shutdown(),
    }
    let _ = served.await;
}

async fn http2(stream: Rewind, shared: Arc<Shared>, counters: Arc<Counters>) {
    let soft = shared.soft.clone();
    let service = service_fn(move |request| {
        counters.requests.fetch_add(1, Ordering::Relaxed);
        service::answer(Arc::clone(&shared), request)
    });
    let served = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service);
    let mut served = std::pin::pin!(served);
    tokio::select! {
        _ = served.as_mut() => return,
        () = soft.cancelled() => served.as_mut().graceful_shutdown(),
    }
    let _ = served.await;
}
