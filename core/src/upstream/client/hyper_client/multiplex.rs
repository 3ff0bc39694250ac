//! Requests over HTTP/2.

use std::sync::Arc;

use http::header::HOST;
use http::uri::{Authority, PathAndQuery};
use http::{Request, Response, StatusCode, Uri, Version};

use super::super::conn::{Http1, RequestBody};
use super::super::connect::{self, Alpn};
use super::super::failure;
use super::super::http2::{Http2, Stream, StreamBody};
use super::super::io::UpstreamIo;
use super::super::pool::{Grant, Protocol};
use super::super::{SendFailure, conn};
use super::{HyperClient, Miss, is_idempotent, unsent};
use crate::body::Body;
use crate::error::{Fault, GatewayError, Reason, is_grpc};
use crate::upstream::{Endpoint, Scheme};

/// Connections tried for one request that the upstream says it did not touch.
const ATTEMPTS: usize = 3;

/// What a request goes out on.
enum Way {
    Shared(Stream),
    /// The upstream speaks HTTP/1.1 only.
    Kept(Http1),
    New(Http1),
}

impl HyperClient {
    /// Sends over HTTP/2, if the upstream speaks it; else over HTTP/1.1.
    pub(super) async fn multiplex(
        &self,
        endpoint: &Arc<Endpoint>,
        mut request: Request<Body>,
    ) -> Result<Response<Body>, SendFailure> {
        // Which is always HTTP/2, also without TLS.
        let grpc = is_grpc(request.method(), request.headers());
        let repeatable = is_idempotent(request.method());
        for attempt in 1.. {
            let stream = match self.way(endpoint, grpc, repeatable).await {
                Ok(Way::Shared(stream)) => stream,
                Ok(Way::Kept(kept)) => {
                    match self.on_kept(endpoint, kept, request.map(RequestBody::new)).await {
                        Ok(response) => return Ok(response),
                        Err(Miss::Unsent(again, _)) => {
                            request = again.map(RequestBody::into_inner);
                            continue;
                        }
                        Err(Miss::Failed(error)) => return Err(error.into()),
                    }
                }
                Ok(Way::New(connection)) => {
                    return self.on_new(endpoint, connection, request.map(RequestBody::new)).await;
                }
                Err(error) => return Err(SendFailure { error, request: Some(Box::new(request)) }),
            };
            match self.on_stream(endpoint, stream, request).await {
                Ok(response) => return Ok(response),
                Err(SendFailure { request: Some(again), .. }) if attempt < ATTEMPTS => {
                    request = *again;
                }
                Err(failure) => return Err(failure),
            }
        }
        Err(misconfigured("no attempt left").into())
    }

    async fn way(
        &self,
        endpoint: &Arc<Endpoint>,
        grpc: bool,
        repeatable: bool,
    ) -> Result<Way, GatewayError> {
        let (mut protocol, gate) = self.pool.protocol(endpoint);
        let https = endpoint.address.scheme == Scheme::Https;
        if protocol == Protocol::Http1 && https {
            return self.way_http1(endpoint, grpc, repeatable).await;
        }
        if let Some(stream) = self.pool.stream(endpoint) {
            return Ok(Way::Shared(stream));
        }
        // One opens; the others find its connection when their turn comes.
        let turn = gate.lock().await;
        if let Some(stream) = self.pool.stream(endpoint) {
            return Ok(Way::Shared(stream));
        }
        protocol = self.pool.protocol(endpoint).0;
        if protocol == Protocol::Http1 && https {
            drop(turn);
            return self.way_http1(endpoint, grpc, repeatable).await;
        }
        self.open_any(endpoint, Alpn::Http2, grpc).await
    }

    /// On an upstream that speaks HTTP/1.1 over TLS.
    async fn way_http1(
        &self,
        endpoint: &Arc<Endpoint>,
        grpc: bool,
        repeatable: bool,
    ) -> Result<Way, GatewayError> {
        if !grpc && let Some(kept) = self.pool.pop(endpoint.pool_key, repeatable) {
            return Ok(Way::Kept(kept));
        }
        // Offered again each time: an upstream may learn it.
        self.open_any(endpoint, Alpn::Http2, grpc).await
    }

    async fn open_any(
        &self,
        endpoint: &Arc<Endpoint>,
        alpn: Alpn,
        grpc: bool,
    ) -> Result<Way, GatewayError> {
        let permit = match self.pool.acquire(endpoint, grpc).await {
            Ok(Grant::Open(permit)) => permit,
            Ok(Grant::Kept(kept)) => return Ok(Way::Kept(kept)),
            Err(error) => {
                return Err(connect::failed(error, &endpoint.address, "the pool is fixed"));
            }
        };
        let transport = self.reach(endpoint, &permit, alpn).await?;
        let prior_knowledge = endpoint.address.scheme == Scheme::Http;
        if !transport.is_http2() && !prior_knowledge {
            self.pool.speaks_http1(endpoint);
            if grpc {
                return Err(misconfigured("the upstream does not speak HTTP/2"));
            }
            return Ok(Way::New(self.open(endpoint, transport, permit, false).await?));
        }
        let state = conn::ConnState::new(endpoint.pool_key);
        let io = UpstreamIo::new(transport, state, permit, Arc::clone(&self.shared.connector));
        let max_head = self.shared.options.max_response_header_bytes;
        let connection = Http2::open(io, &self.runtime, max_head)
            .await
            .map_err(|error| failure::of_call(&endpoint.address, &error, true))?;
        Ok(Way::Shared(self.pool.share(endpoint, connection)))
    }

    /// One attempt. A request that the upstream did not touch comes back with the failure, if there
    /// is all of it.
    async fn on_stream(
        &self,
        endpoint: &Endpoint,
        mut stream: Stream,
        request: Request<Body>,
    ) -> Result<Response<Body>, SendFailure> {
        let copy = request.body().replay().map(|bytes| {
            let mut copy = Request::new(Body::from(bytes));
            (*copy.method_mut(), *copy.uri_mut()) =
                (request.method().clone(), request.uri().clone());
            *copy.headers_mut() = request.headers().clone();
            *copy.version_mut() = request.version();
            copy
        });
        let request = for_http2(endpoint, request)?.map(RequestBody::new);
        match stream.sender.try_send_request(request).await {
            Ok(mut response) => {
                failure::of_answer(&endpoint.address, &response)?;
                *response.version_mut() = Version::HTTP_11;
                Ok(response.map(|incoming| StreamBody::wrap(incoming, stream)))
            }
            Err(mut error) => {
                let back = error.take_message();
                let error = error.into_error();
                let address = &endpoint.address;
                if let Some(back) = back {
                    let failure = failure::of_call(address, &error, true);
                    return Err(match copy {
                        Some(copy) => SendFailure { error: failure, request: Some(Box::new(copy)) },
                        None => unsent(failure, for_http1(back)),
                    });
                }
                let untouched = failure::is_unprocessed(&error);
                let failure = failure::of_call(address, &error, false);
                let request = copy.filter(|_| untouched).map(Box::new);
                Err(SendFailure { error: failure, request })
            }
        }
    }
}

/// A request in the form that HTTP/2 sends: the authority in the target, no `Host`.
fn for_http2(endpoint: &Endpoint, request: Request<Body>) -> Result<Request<Body>, GatewayError> {
    let (mut head, body) = request.into_parts();
    let host = head.headers.remove(HOST).unwrap_or_else(|| endpoint.host.clone());
    let authority = Authority::try_from(host.as_bytes())
        .map_err(|_| misconfigured("the upstream's Host is no authority"))?;
    let path = match head.uri.path_and_query() {
        Some(path) => path.clone(),
        None => PathAndQuery::from_static("/"),
    };
    let scheme = match endpoint.address.scheme {
        Scheme::Http => "http",
        Scheme::Https => "https",
    };
    head.uri = Uri::builder()
        .scheme(scheme)
        .authority(authority)
        .path_and_query(path)
        .build()
        .map_err(|_| misconfigured("the target has no form for HTTP/2"))?;
    head.version = Version::HTTP_2;
    Ok(Request::from_parts(head, body))
}

/// The other way round, for a request that came back.
fn for_http1(request: Request<RequestBody>) -> Request<RequestBody> {
    let (mut head, body) = request.into_parts();
    if let Some(host) = head.uri.authority().and_then(|host| host.as_str().parse().ok()) {
        head.headers.insert(HOST, host);
    }
    if let Some(path) = head.uri.path_and_query() {
        head.uri = Uri::from(path.clone());
    }
    head.version = Version::HTTP_11;
    Request::from_parts(head, body)
}

fn misconfigured(message: &'static str) -> GatewayError {
    GatewayError::new(Fault::Upstream, Reason::UpstreamProtocol, StatusCode::BAD_GATEWAY, message)
        .shenyu(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error")
}
