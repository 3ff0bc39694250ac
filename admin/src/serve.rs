//! The listener: accepting, bounding and draining connections.
//!
//! axum's own loop sets no deadline for request heads and no limit on connections, so a peer that
//! sends nothing, or takes nothing of its answer, would stay for ever; this one closes it.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use longmen_core::{io::WriteStall, lifecycle::Lifecycle};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt as _;

use crate::config::ServerConfig;

/// The address a call came from, in the extensions of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// How long a peer may keep a connection waiting.
#[derive(Debug, Clone, Copy)]
struct Deadlines {
    /// To send the head of a request.
    head: Duration,
    /// To take anything of what is written to it.
    write_stall: Duration,
}

/// How many connections are open at once; more wait in the listener's queue.
const MAX_CONNECTIONS: usize = 8192;

/// The pause after a failed accept (out of descriptors, mostly).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves `router` until `stop`, then lets the requests in flight end.
///
/// Connections that were taken over (websockets) are not waited for here: whoever took one over
/// ends it on the same signal.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    config: ServerConfig,
    life: Lifecycle,
) {
    let deadlines =
        Deadlines { head: config.client_head_timeout, write_stall: config.client_write_stall };
    let stop = life.soft();
    let connections = TaskTracker::new();
    let cut = CancellationToken::new();
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = accept(&listener, &places) => accepted,
        };
        let Some((stream, peer, place)) = accepted else { continue };
        let (router, stop, cut) = (router.clone(), stop.clone(), cut.clone());
        connections.spawn(async move {
            let _place = place;
            tokio::select! {
                () = cut.cancelled() => {}
                () = serve_connection(stream, peer, router, stop, deadlines) => {}
            }
        });
    }
    drop(listener);
    connections.close();
    let grace = config.shutdown_grace;
    if tokio::time::timeout(grace, connections.wait()).await.is_err() {
        let left = connections.len();
        tracing::warn!(left, after = ?grace, "connections were cut off at the stop");
        cut.cancel();
        connections.wait().await;
    }
}

/// Serves one connection until it ends, or to the end of its current request after `stop`.
async fn serve_connection(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    stop: CancellationToken,
    deadlines: Deadlines,
) {
    let service = router.map_request(move |mut request: http::Request<_>| {
        request.extensions_mut().insert(Peer(peer));
        request
    });
    let mut connection = std::pin::pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(deadlines.head)
            .serve_connection(
                TokioIo::new(WriteStall::new(stream, deadlines.write_stall)),
                TowerToHyperService::new(service),
            )
            .with_upgrades()
    );
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::debug!(%peer, %error, "a connection ended with an error");
    }
}

type Accepted = (TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit);

async fn accept(listener: &TcpListener, places: &Arc<Semaphore>) -> Option<Accepted> {
    // The semaphore is never closed.
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => {
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%peer, %error, "a connection refused its no-delay option");
            }
            Some((stream, peer, place))
        }
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}
