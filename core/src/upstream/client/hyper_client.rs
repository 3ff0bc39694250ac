//! The strategy `hyper`: raw connections, a pool per worker.

mod multiplex;

use std::sync::Arc;
use std::time::Duration;

use http::header::{CONNECTION, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::runtime::Handle;
use tracing::trace;

use super::conn::{ConnState, Drive, Http1, Replay, RequestBody};
use super::connect::{self, Alpn, Transport};
use super::factory::Shared;
use super::failure;
use super::io::UpstreamIo;
use super::pool::{Grant, Permit, Pool};
use super::pooled_body::PooledBody;
use super::{SendFailure, SendFuture, Tunnel, UpstreamClient};
use crate::body::Body;
use crate::error::{GatewayError, is_grpc};
use crate::upstream::{Endpoint, Scheme, announce_body};

/// A kept connection that was unused for this long is looked at once more before a request is
/// written that must not be written twice.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Raw hyper connections, HTTP/1.1 and HTTP/2.
///
/// Each connection is driven by a task of its own on the worker's runtime, so one that the upstream
/// closes is noticed while it is unused.
#[derive(Debug)]
pub struct HyperClient {
    shared: Arc<Shared>,
    pool: Arc<Pool>,
    runtime: Handle,
}

/// A request that was not answered on one connection.
#[expect(
    clippy::large_enum_variant,
    reason = "the large one goes on at once; a box would be one more"
)]
enum Miss {
    /// Nothing was sent: here it is again.
    Unsent(Request<RequestBody>, hyper::Error),
    Failed(GatewayError),
}

impl HyperClient {
    pub(super) fn new(shared: Arc<Shared>, runtime: Handle) -> Self {
        Self { pool: shared.pool(), shared, runtime }
    }

    pub(super) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Sends on a kept connection, and on a fresh one where no kept one is usable.
    async fn exchange(
        &self,
        endpoint: &Arc<Endpoint>,
        mut request: Request<Body>,
    ) -> Result<Response<Body>, SendFailure> {
        if self.shared.options.wiretap {
            trace!(upstream = %endpoint, head = ?(request.method(), request.uri(), request.headers()), "request");
        }
        if self.is_multiplexed(endpoint, &request) {
            return self.multiplex(endpoint, request).await;
        }
        announce_body(&mut request);
        if !self.shared.options.keep_alive {
            request.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let mut request = request.map(RequestBody::new);
        let repeatable = is_idempotent(request.method());
        while let Some(kept) = self.pool.pop(endpoint.pool_key, repeatable) {
            match self.on_kept(endpoint, kept, request).await {
                Ok(response) => return Ok(response),
                Err(Miss::Unsent(unsent, _)) => request = unsent,
                Err(Miss::Failed(error)) => return Err(error.into()),
            }
        }
        self.on_fresh(endpoint, request, false).await
    }

    /// Sends on a fresh connection; or on one that came free while this waited for its turn, unless
    /// it `must` be fresh.
    async fn on_fresh(
        &self,
        endpoint: &Arc<Endpoint>,
        mut request: Request<RequestBody>,
        must: bool,
    ) -> Result<Response<Body>, SendFailure> {
        let permit = loop {
            match self.pool.acquire(endpoint, must).await {
                Ok(Grant::Open(permit)) => break permit,
                Ok(Grant::Kept(kept)) => match self.on_kept(endpoint, kept, request).await {
                    Ok(response) => return Ok(response),
                    Err(Miss::Unsent(unsent, _)) => request = unsent,
                    Err(Miss::Failed(error)) => return Err(error.into()),
                },
                Err(error) => {
                    let error = connect::failed(error, &endpoint.address, "the pool is fixed");
                    return Err(unsent(error, request));
                }
            }
        };
        let opened = match self.reach(endpoint, &permit, Alpn::Http1).await {
            Ok(transport) => self.open(endpoint, transport, permit, false).await,
            Err(error) => Err(error),
        };
        match opened {
            Ok(connection) => self.on_new(endpoint, connection, request).await,
            Err(error) => Err(unsent(error, request)),
        }
    }

    /// Sends on a connection that nobody has used yet: what fails there is the upstream's.
    async fn on_new(
        &self,
        endpoint: &Endpoint,
        connection: Http1,
        request: Request<RequestBody>,
    ) -> Result<Response<Body>, SendFailure> {
        match self.on_connection(endpoint, connection, request).await {
            Ok(response) => Ok(response),
            Err(Miss::Unsent(request, error)) => {
                Err(unsent(failure::of_call(&endpoint.address, &error, true), request))
            }
            Err(Miss::Failed(error)) => Err(error.into()),
        }
    }

    /// Sends on a connection that served another request before.
    async fn on_kept(
        &self,
        endpoint: &Endpoint,
        connection: Http1,
        request: Request<RequestBody>,
    ) -> Result<Response<Body>, Miss> {
        if is_idempotent(request.method()) {
            connection.state.allow(Replay::Written);
        } else {
            connection.state.allow(Replay::Unwritten);
            if connection.since.elapsed() > LOOK_AGAIN {
                // The runtime looks at its sockets before it comes back here: an end that has
                // arrived already is seen, and nothing is written.
                tokio::task::yield_now().await;
            }
        }
        self.on_connection(endpoint, connection, request).await
    }

    async fn on_connection(
        &self,
        endpoint: &Endpoint,
        mut connection: Http1,
        mut request: Request<RequestBody>,
    ) -> Result<Response<Body>, Miss> {
        connection.begin();
        if let Err(error) = connection.sender.ready().await {
            return Err(Miss::Unsent(request, error));
        }
        request.body_mut().watch(&connection.state);
        match connection.sender.try_send_request(request).await {
            Ok(response) => self.answer(endpoint, connection, response).map_err(Miss::Failed),
            Err(mut error) => Err(match error.take_message() {
                Some(unsent) => Miss::Unsent(unsent.map(unwatched), error.into_error()),
                None => {
                    let error = error.into_error();
                    Miss::Failed(failure::of_call(&endpoint.address, &error, false))
                }
            }),
        }
    }

    /// An answer on its way to the client. The connection of one that cannot be passed on ends.
    fn answer(
        &self,
        endpoint: &Endpoint,
        connection: Http1,
        response: Response<Incoming>,
    ) -> Result<Response<Body>, GatewayError> {
        failure::of_answer(&endpoint.address, &response)?;
        Ok(response.map(|incoming| PooledBody::wrap(incoming, connection, &self.pool)))
    }

    async fn reach(
        &self,
        endpoint: &Endpoint,
        permit: &Permit,
        alpn: Alpn,
    ) -> Result<Transport, GatewayError> {
        self.shared.connector.connect(&endpoint.address, alpn).await.map_err(|error| {
            permit.failed(error.kind());
            error.for_request(&endpoint.address)
        })
    }

    /// Speaks HTTP/1.1 on a connection.
    async fn open(
        &self,
        endpoint: &Endpoint,
        transport: Transport,
        permit: Permit,
        upgrades: bool,
    ) -> Result<Http1, GatewayError> {
        let state = ConnState::new(endpoint.pool_key);
        let io = UpstreamIo::new(
            transport,
            Arc::clone(&state),
            permit,
            Arc::clone(&self.shared.connector),
        );
        let (sender, connection): (SendRequest<RequestBody>, _) = http1::Builder::new()
            .max_header_size(self.shared.options.max_response_header_bytes)
            .handshake(TokioIo::new(io))
            .await
            .map_err(|error| failure::of_call(&endpoint.address, &error, true))?;
        if upgrades {
            self.runtime.spawn(Drive::new(connection.with_upgrades(), Arc::clone(&state)));
        } else {
            self.runtime.spawn(Drive::new(connection, Arc::clone(&state)));
        }
        Ok(Http1::new(sender, state))
    }

    /// Sends on a fresh connection that nothing was sent on before. For a request that failed on a
    /// kept one.
    pub(super) async fn afresh(
        &self,
        endpoint: &Arc<Endpoint>,
        request: Request<Body>,
    ) -> Result<Response<Body>, SendFailure> {
        self.on_fresh(endpoint, request.map(RequestBody::new), true).await
    }

    async fn switch(
        &self,
        endpoint: &Arc<Endpoint>,
        request: Request<Body>,
    ) -> Result<Result<Tunnel, Response<Body>>, SendFailure> {
        let failed = |error: &hyper::Error| failure::of_call(&endpoint.address, error, false);
        let permit = match self.pool.acquire(endpoint, true).await {
            Ok(Grant::Open(permit)) => permit,
            // Never given where a fresh one is asked for.
            Ok(Grant::Kept(_)) => return Err(internal().into()),
            Err(error) => {
                let error = connect::failed(error, &endpoint.address, "the pool is fixed");
                return Err(SendFailure { error, request: Some(Box::new(request)) });
            }
        };
        let opened = match self.reach(endpoint, &permit, Alpn::Http1).await {
            Ok(transport) => self.open(endpoint, transport, permit, true).await,
            Err(error) => Err(error),
        };
        let mut connection = match opened {
            Ok(connection) => connection,
            Err(error) => return Err(SendFailure { error, request: Some(Box::new(request)) }),
        };
        connection.begin();
        let sent = connection.sender.send_request(request.map(RequestBody::new));
        let mut response = sent.await.map_err(|error| failed(&error))?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Ok(Err(self.answer(endpoint, connection, response)?));
        }
        let upgrade = hyper::upgrade::on(&mut response);
        connection.let_go();
        let io = upgrade.await.map_err(|error| failed(&error))?;
        Ok(Ok(Tunnel { head: response.into_parts().0, io }))
    }

    /// Whether a request goes out on a connection that it may share.
    fn is_multiplexed(&self, endpoint: &Endpoint, request: &Request<Body>) -> bool {
        let offered = self.shared.options.http2 && endpoint.address.scheme == Scheme::Https;
        offered || is_grpc(request.method(), request.headers())
    }
}

impl UpstreamClient for HyperClient {
    fn send<'a>(
        &'a self,
        endpoint: &'a Arc<Endpoint>,
        request: Request<Body>,
    ) -> SendFuture<'a, Response<Body>> {
        Box::pin(self.exchange(endpoint, request))
    }

    fn upgrade<'a>(
        &'a self,
        endpoint: &'a Arc<Endpoint>,
        request: Request<Body>,
    ) -> SendFuture<'a, Result<Tunnel, Response<Body>>> {
        Box::pin(self.switch(endpoint, request))
    }

    fn sweep(&self) {
        self.pool.sweep();
    }

    fn sweep_interval(&self) -> Duration {
        self.shared.options.pool.eviction_interval
    }
}

/// Whether doing it twice does what doing it once does.
///
/// Source: RFC 9110, section 9.2.2.
pub(super) fn is_idempotent(method: &Method) -> bool {
    method.is_idempotent()
}

fn unwatched(body: RequestBody) -> RequestBody {
    RequestBody::new(body.into_inner())
}

fn unsent(error: GatewayError, request: Request<RequestBody>) -> SendFailure {
    SendFailure { error, request: Some(Box::new(request.map(RequestBody::into_inner))) }
}

fn internal() -> GatewayError {
    GatewayError::new(
        crate::error::Fault::Gateway,
        crate::error::Reason::UpstreamConnect,
        StatusCode::INTERNAL_SERVER_ERROR,
        "no connection to the upstream",
    )
}
