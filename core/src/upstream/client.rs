//! Calling upstreams: one trait, one strategy per client.

mod conn;
mod connect;
mod dns;
mod factory;
mod failure;
mod http2;
mod hyper_client;
mod io;
mod options;
mod pool;
mod pooled_body;
mod probe;
mod reqwest_client;
mod stats;

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::header::{HOST, HeaderValue};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{Request, Response, Uri, Version};
use hyper::upgrade::Upgraded;

pub use connect::{TlsConnector, TlsSetupError, TlsStream};
pub use dns::{Answer, LookUp, LookUpError, LookUpFuture, SystemLookUp};
pub use factory::ClientFactory;
pub use hyper_client::HyperClient;
pub use options::{ClientOptions, KeyStore, PoolLimit, PoolOptions, ProxyOptions, TlsOptions};
pub use probe::TcpProbe;
pub use reqwest_client::ReqwestClient;
pub use stats::{ConnectFailure, ConnectionStats};

use super::{Endpoint, join_cookies};
use crate::body::Body;
use crate::error::GatewayError;

/// What the reference says when an upstream took too long.
pub(crate) const SHENYU_TIMEOUT: &str =
    "Request timeout, the maximum number of retry times has been exceeded";

/// A call that brought no response head.
#[derive(Debug)]
pub struct SendFailure {
    /// What went wrong, and whether another attempt is safe.
    pub error: GatewayError,
    /// The request, given back when nothing of it was sent.
    pub request: Option<Box<Request<Body>>>,
}

impl From<GatewayError> for SendFailure {
    fn from(error: GatewayError) -> Self {
        Self { error, request: None }
    }
}

/// The future of a call.
pub type SendFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, SendFailure>> + Send + 'a>>;

/// An upstream that switched protocols.
#[derive(Debug)]
pub struct Tunnel {
    /// Its answer, status 101.
    pub head: http::response::Parts,
    /// The raw connection behind it.
    pub io: Upgraded,
}

/// One client strategy. An instance belongs to one worker.
///
/// Requests come in origin form with `Host` set and hop-by-hop headers removed
/// ([`request_head_for`]); answers go out as they came, bodies streaming.
pub trait UpstreamClient: Debug + Send + Sync {
    /// Sends a request; resolves with the response head. No time limit but that of connecting: the
    /// caller bounds the attempt. Dropping the future gives the connection up.
    fn send<'a>(
        &'a self,
        endpoint: &'a Arc<Endpoint>,
        request: Request<Body>,
    ) -> SendFuture<'a, Response<Body>>;

    /// Sends an upgrade request on a connection of its own; resolves once the upstream switched, or
    /// with its ordinary answer.
    fn upgrade<'a>(
        &'a self,
        endpoint: &'a Arc<Endpoint>,
        request: Request<Body>,
    ) -> SendFuture<'a, Result<Tunnel, Response<Body>>>;

    /// Closes connections unused for longer than allowed. Called by the worker now and then.
    fn sweep(&self);

    /// How often that should be.
    fn sweep_interval(&self) -> Duration {
        Duration::from_secs(1)
    }
}

/// Turns a client's request head into the one for the upstream: origin form, `Host` of the
/// endpoint or, with `preserve_host`, the client's, HTTP/1.1, the cookies of an HTTP/2 request in one
/// line.
///
/// Hop-by-hop headers are gone already: they were the client's, and plugins have set theirs since.
pub fn request_head_for(
    head: &mut Parts,
    endpoint: &Endpoint,
    target: PathAndQuery,
    preserve_host: bool,
) {
    let asked = std::mem::replace(&mut head.uri, Uri::from(target));
    if std::mem::replace(&mut head.version, Version::HTTP_11) == Version::HTTP_2 {
        join_cookies(&mut head.headers);
    }
    if !preserve_host {
        head.headers.insert(HOST, endpoint.host.clone());
    } else if !head.headers.contains_key(HOST) {
        // HTTP/2 has it in the target, and HTTP/1.0 may have none.
        let authority = asked.authority().map(|authority| authority.as_str());
        let host = authority.and_then(|authority| HeaderValue::from_str(authority).ok());
        head.headers.insert(HOST, host.unwrap_or_else(|| endpoint.host.clone()));
    }
}

#[cfg(test)]
mod tests {
    use http::Request;
    use http::uri::PathAndQuery;

    use super::request_head_for;
    use crate::model::Upstream;
    use crate::upstream::{Address, Endpoint, EndpointOptions};

    /// The host that the upstream `up:1` is told for a request to this target with this header.
    fn told(target: &str, host: Option<&str>, preserve_host: bool) -> String {
        let upstream = Upstream { url: "up:1".into(), ..Upstream::default() };
        let address = Address::read(&upstream).unwrap();
        let own = address.host_header().unwrap();
        let options = EndpointOptions::default();
        let endpoint = Endpoint::new("s", address, "up:1".into(), own, 1, options, 1);
        let mut request = Request::get(target);
        if let Some(host) = host {
            request = request.header("host", host);
        }
        let (mut head, ()) = request.body(()).unwrap().into_parts();
        request_head_for(&mut head, &endpoint, PathAndQuery::from_static("/x?y"), preserve_host);
        assert_eq!(head.uri, "/x?y");
        head.headers["host"].to_str().unwrap().to_owned()
    }

    #[test]
    fn the_host_is_the_upstreams_or_the_one_that_was_asked_for() {
        assert_eq!(told("/a", Some("api.example"), false), "up:1");
        assert_eq!(told("/a", Some("api.example"), true), "api.example");
        // HTTP/2 has it in the target, HTTP/1.0 may have none.
        assert_eq!(told("http://api.example:8/a", None, true), "api.example:8");
        assert_eq!(told("http://api.example:8/a", None, false), "up:1");
        assert_eq!(told("/a", None, true), "up:1");
    }
}
