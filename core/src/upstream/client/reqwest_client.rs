//! The strategy `reqwest`.
//!
//! One reqwest client for each upstream host, so that hosts do not share a lock and each one's
//! connections are counted. What reqwest would send otherwise than it came goes out by the raw
//! client instead, under the same limits.

mod body;
mod connector;
mod target;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::header::TRANSFER_ENCODING;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body::Body as _;
use tokio::runtime::Handle;

use super::connect::{self, Alpn};
use super::factory::Shared;
use super::hyper_client::{HyperClient, is_idempotent};
use super::pool::{Grant, Permit};
use super::{SendFailure, SendFuture, Tunnel, UpstreamClient, failure};
use crate::body::Body;
use crate::error::{Fault, GatewayError, Reason};
use crate::upstream::{Endpoint, Scheme, hides_body};

use body::{AnswerBody, BodySlot};
use connector::{Counting, FRESH, Names};

/// A host that was not called for this long loses its client, and so its unused connections.
const FORGET: Duration = Duration::from_secs(60);

/// A client with reqwest in it, and a raw one beside.
#[derive(Debug)]
pub struct ReqwestClient {
    shared: Arc<Shared>,
    raw: HyperClient,
    hosts: Mutex<HashMap<u64, Host, foldhash::fast::RandomState>>,
}

#[derive(Debug)]
struct Host {
    client: reqwest::Client,
    used: Instant,
}

impl ReqwestClient {
    pub(super) fn new(shared: Arc<Shared>, runtime: Handle) -> Self {
        let raw = HyperClient::new(Arc::clone(&shared), runtime);
        Self { shared, raw, hosts: Mutex::default() }
    }

    async fn exchange(
        &self,
        endpoint: &Arc<Endpoint>,
        request: Request<Body>,
    ) -> Result<Response<Body>, SendFailure> {
        let proxied = self.shared.connector.is_proxied(&endpoint.address.host);
        let url = target::faithful(&self.shared.options, endpoint, &request);
        let Some(url) = url.filter(|_| !proxied) else {
            self.raw.pool().rewritten(endpoint);
            return self.raw.send(endpoint, request).await;
        };
        // Whether HTTP/2 will be spoken, and the header must not be there, is not known here.
        if hides_body(&request) {
            return self.raw.send(endpoint, request).await;
        }
        let permit = match self.raw.pool().acquire(endpoint, true).await {
            Ok(Grant::Open(permit)) => permit,
            // Never given where a fresh one is asked for.
            Ok(Grant::Kept(_)) => return self.raw.send(endpoint, request).await,
            Err(error) => {
                let error = connect::failed(error, &endpoint.address, "the pool is fixed");
                return Err(SendFailure { error, request: Some(Box::new(request)) });
            }
        };
        let client = match self.client(endpoint).await {
            Ok(client) => client,
            Err(error) => return Err(SendFailure { error, request: Some(Box::new(request)) }),
        };
        self.call(endpoint, client, url, request, permit).await
    }

    async fn call(
        &self,
        endpoint: &Arc<Endpoint>,
        client: reqwest::Client,
        url: reqwest::Url,
        request: Request<Body>,
        permit: Permit,
    ) -> Result<Response<Body>, SendFailure> {
        // The head once more, for an attempt that leaves by the raw client, or elsewhere.
        let again = copy_of_head(&request);
        let replay = request.body().replay();
        let (mut head, body) = request.into_parts();
        if self.shared.options.http2 && endpoint.address.scheme == Scheme::Https {
            // It is the URL's, and HTTP/2 sends that alone; for HTTP/1.1 it is added again.
            head.headers.remove(http::header::HOST);
        }
        if !self.shared.options.keep_alive {
            head.headers.insert(http::header::CONNECTION, HeaderValue::from_static("close"));
        }
        let mut outgoing = reqwest::Request::new(head.method, url);
        *outgoing.headers_mut() = head.headers;
        let slot = BodySlot::new(body);
        if !slot.is_end_stream() {
            *outgoing.body_mut() = Some(reqwest::Body::wrap(slot.outgoing()));
        }
        let fresh = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let sent = FRESH.scope(Arc::clone(&fresh), client.execute(outgoing)).await;
        let fresh = fresh.load(std::sync::atomic::Ordering::Relaxed);
        let error = match sent {
            Ok(response) => return self.answer(endpoint, response, permit, fresh),
            Err(error) => error,
        };
        // What is left of the request: its head, and a body that nobody has touched, or that is in
        // memory.
        let body = slot.take_back().or_else(|| replay.map(Body::from));
        let back = body.map(|body| again.map(|()| body));
        if error.is_connect() {
            let (kind, failed) = failure::of_connect(&endpoint.address, &error, error.is_timeout());
            permit.failed(kind);
            return Err(SendFailure { error: failed, request: back.map(Box::new) });
        }
        let failed = failure::of_call(&endpoint.address, &error, false);
        let dead = failed.reason() == Reason::UpstreamReset;
        match back {
            // A kept connection was dead: once more, where that is safe.
            Some(request) if dead && !fresh && is_idempotent(request.method()) => {
                permit.repeated();
                drop(permit);
                self.raw.afresh(endpoint, request).await
            }
            _ => Err(failed.into()),
        }
    }

    fn answer(
        &self,
        endpoint: &Endpoint,
        response: reqwest::Response,
        permit: Permit,
        fresh: bool,
    ) -> Result<Response<Body>, SendFailure> {
        if !fresh {
            self.raw.pool().reused(endpoint);
        }
        let mut response: Response<reqwest::Body> = response.into();
        if let Err(error) = failure::of_answer(&endpoint.address, &response) {
            // The library may still keep the connection, if the rest of the answer is there already.
            // It belongs to the client's own pool, which goes with the client. Any other connection
            // ends with the answer, and those beside it are left alone.
            let gone = may_be_kept(&response).then(|| self.lock().remove(&endpoint.pool_key));
            drop((response, gone));
            return Err(error.into());
        }
        let limit = self.shared.options.max_response_header_bytes;
        let lines = response.headers().iter();
        let size: usize = lines.map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
        if size > limit {
            return Err(failure::of_large_head(&endpoint.address, limit).into());
        }
        // Of what reqwest notes, only the words of the status line travel on.
        let words = response.extensions_mut().remove::<hyper::ext::ReasonPhrase>();
        response.extensions_mut().clear();
        if let Some(words) = words {
            response.extensions_mut().insert(words);
        }
        *response.version_mut() = http::Version::HTTP_11;
        Ok(response.map(|body| AnswerBody::wrap(body, permit)))
    }

    /// The client of a host; made at its first use.
    async fn client(&self, endpoint: &Endpoint) -> Result<reqwest::Client, GatewayError> {
        if let Some(host) = self.lock().get_mut(&endpoint.pool_key) {
            host.used = Instant::now();
            return Ok(host.client.clone());
        }
        let client = self.build(endpoint).await?;
        let mut hosts = self.lock();
        // Another request may have made one meanwhile.
        let host =
            hosts.entry(endpoint.pool_key).or_insert_with(|| Host { client, used: Instant::now() });
        Ok(host.client.clone())
    }

    async fn build(&self, endpoint: &Endpoint) -> Result<reqwest::Client, GatewayError> {
        let options = &self.shared.options;
        let tls = if endpoint.address.scheme == Scheme::Https {
            let alpn = if options.http2 { Alpn::Http2 } else { Alpn::Http1 };
            let config = self.shared.connector.tls.config(alpn).await;
            (*config.map_err(|error| no_client(endpoint, &error))?).clone()
        } else {
            self.shared.connector.tls.none().map_err(|error| no_client(endpoint, &error))?
        };
        let keeps = self.raw.pool().keeps();
        let builder = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .tcp_nodelay(true)
            .tls_backend_preconfigured(tls)
            .dns_resolver(Arc::new(Names(self.shared.connector.dns.clone())))
            .connect_timeout(options.connect_timeout)
            .pool_idle_timeout(options.pool.max_idle)
            .pool_max_idle_per_host(if keeps { options.pool.max_idle_per_upstream } else { 0 })
            .connector_layer(Counting::new(self.raw.pool(), endpoint));
        let builder = if options.http2 && endpoint.address.scheme == Scheme::Https {
            let limit = options.max_response_header_bytes;
            builder.http2_max_header_list_size(u32::try_from(limit).unwrap_or(u32::MAX))
        } else {
            builder.http1_only()
        };
        builder.build().map_err(|error| no_client(endpoint, &error))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Host, foldhash::fast::RandomState>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UpstreamClient for ReqwestClient {
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
        self.raw.upgrade(endpoint, request)
    }

    fn sweep(&self) {
        self.raw.sweep();
        let gone: Vec<Host> = {
            let mut hosts = self.lock();
            let old: Vec<u64> = hosts
                .iter()
                .filter(|(_, host)| host.used.elapsed() > FORGET)
                .map(|(key, _)| *key)
                .collect();
            old.into_iter().filter_map(|key| hosts.remove(&key)).collect()
        };
        drop(gone);
    }

    fn sweep_interval(&self) -> Duration {
        self.raw.sweep_interval()
    }
}

/// Whether the connection of an answer can be used again once the answer is read: it is not for another
/// protocol now, and the end of the connection is not the end of the answer.
///
/// Source: RFC 9112, section 6.3.
fn may_be_kept(response: &Response<reqwest::Body>) -> bool {
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return false;
    }
    let last = response.headers().get_all(TRANSFER_ENCODING).iter().next_back();
    let chunked = last.and_then(|codings| codings.as_bytes().rsplit(|byte| *byte == b',').next());
    let ends_itself = |coding: &[u8]| coding.trim_ascii().eq_ignore_ascii_case(b"chunked");
    response.body().is_end_stream() || chunked.is_none_or(ends_itself)
}

/// The head of a request, without its body.
fn copy_of_head(request: &Request<Body>) -> Request<()> {
    let mut copy = Request::new(());
    (*copy.method_mut(), *copy.uri_mut()) = (request.method().clone(), request.uri().clone());
    *copy.headers_mut() = request.headers().clone();
    *copy.version_mut() = request.version();
    copy
}

fn no_client(endpoint: &Endpoint, error: &(dyn std::error::Error + 'static)) -> GatewayError {
    GatewayError::new(
        Fault::Gateway,
        Reason::UpstreamConnect,
        StatusCode::INTERNAL_SERVER_ERROR,
        "no client for the upstream",
    )
    .detail(format_args!("{endpoint}: {}", failure::chain(error)))
}
