//! The strategy `hyper`: raw connections, a pool per worker.

use std::error::Error as StdError;
use std::sync::Arc;

use http::{Request, Response, StatusCode};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::runtime::Handle;

use super::pool::Pool;
use super::pooled_body::PooledBody;
use super::{ClientOptions, SendFailure, SendFuture, Tunnel, UpstreamClient, connect};
use crate::body::{Body, BodyError};
use crate::error::{Fault, GatewayError, Reason, Retry};
use crate::upstream::Endpoint;

/// HTTP/1.1 on raw hyper connections.
///
/// Each connection is driven by a task of its own on the worker's runtime, so one that the upstream
/// closes is noticed while it is unused.
#[derive(Debug)]
pub struct HyperClient {
    options: ClientOptions,
    pool: Arc<Pool>,
    runtime: Handle,
}

impl HyperClient {
    /// A client for one worker; its connections are driven on `runtime`.
    #[must_use]
    pub fn new(options: ClientOptions, runtime: Handle) -> Self {
        let pool = Arc::new(Pool::new(&options));
        Self { options, pool, runtime }
    }

    async fn open(&self, endpoint: &Endpoint) -> Result<SendRequest<Body>, GatewayError> {
        let stream = connect::connect(endpoint, &self.options).await?;
        let (sender, connection) = http1::Builder::new()
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| failure(endpoint, &error))?;
        self.runtime.spawn(async move {
            // The caller of each request sees its own error; an unused connection has none to tell.
            let _ = connection.await;
        });
        Ok(sender)
    }

    /// Sends on a kept connection, and on a fresh one where the kept one turned out closed before
    /// anything was sent.
    async fn exchange(
        &self,
        endpoint: &Arc<Endpoint>,
        mut request: Request<Body>,
    ) -> Result<Response<Body>, SendFailure> {
        while let Some(mut sender) = self.pool.pop(endpoint.pool_key) {
            if sender.ready().await.is_err() {
                continue;
            }
            match sender.try_send_request(request).await {
                Ok(response) => return Ok(self.wrap(endpoint, sender, response)),
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(failure(endpoint, error.error()).into()),
                },
            }
        }
        let mut sender = match self.open(endpoint).await {
            Ok(sender) => sender,
            Err(error) => return Err(SendFailure { error, request: Some(Box::new(request)) }),
        };
        match sender.try_send_request(request).await {
            Ok(response) => Ok(self.wrap(endpoint, sender, response)),
            Err(mut error) => {
                let unsent = error.take_message().map(Box::new);
                Err(SendFailure { error: failure(endpoint, error.error()), request: unsent })
            }
        }
    }

    fn wrap(
        &self,
        endpoint: &Endpoint,
        sender: SendRequest<Body>,
        response: Response<hyper::body::Incoming>,
    ) -> Response<Body> {
        response.map(|incoming| PooledBody::wrap(incoming, sender, &self.pool, endpoint.pool_key))
    }

    async fn switch(
        &self,
        endpoint: &Arc<Endpoint>,
        request: Request<Body>,
    ) -> Result<Result<Tunnel, Response<Body>>, SendFailure> {
        let stream = connect::connect(endpoint, &self.options).await?;
        let (mut sender, connection) = http1::Builder::new()
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| failure(endpoint, &error))?;
        self.runtime.spawn(async move {
            let _ = connection.with_upgrades().await;
        });
        let response =
            sender.send_request(request).await.map_err(|error| failure(endpoint, &error))?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Ok(Err(response.map(Body::from)));
        }
        let (head, incoming) = response.into_parts();
        let mut switched = Response::from_parts(head, incoming);
        let io =
            hyper::upgrade::on(&mut switched).await.map_err(|error| failure(endpoint, &error))?;
        Ok(Ok(Tunnel { head: switched.into_parts().0, io }))
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
}

/// What a hyper error means for the request.
///
/// A broken request body shows up here too, but is the client's fault.
fn failure(endpoint: &Endpoint, error: &hyper::Error) -> GatewayError {
    if let Some(of_body) = BodyError::within(error) {
        return GatewayError::of_request_body(of_body);
    }
    if error.is_user() {
        return GatewayError::bad_request(Reason::BadRequest, "the request body is broken")
            .detail(format_args!("{endpoint}: {}", chain(error)));
    }
    let (reason, message) = if error.is_parse() {
        (Reason::UpstreamProtocol, "the upstream's answer is not HTTP")
    } else {
        (Reason::UpstreamReset, "the upstream closed the connection without an answer")
    };
    let retry = if error.is_canceled() { Retry::Safe } else { Retry::IfIdempotent };
    GatewayError::new(Fault::Upstream, reason, StatusCode::BAD_GATEWAY, message)
        .shenyu(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error")
        .retry_when(retry)
        .detail(format_args!("{endpoint}: {}", chain(error)))
}

fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    text
}
