//! Whether reqwest would send a request as it came.

use http::Request;
use http::header::{ACCEPT, HOST};
use reqwest::Url;

use super::super::ClientOptions;
use crate::body::Body;
use crate::error::is_grpc;
use crate::upstream::{Endpoint, Scheme};

/// The URL for reqwest, if it then sends the very request. It parses URLs as browsers do, adds
/// `Accept` where there is none, and does HTTP/2 over TLS only.
pub(super) fn faithful(
    options: &ClientOptions,
    endpoint: &Endpoint,
    request: &Request<Body>,
) -> Option<Url> {
    if !request.headers().contains_key(ACCEPT) || is_grpc(request.method(), request.headers()) {
        return None;
    }
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
    if !target.starts_with('/') {
        return None;
    }
    let base = endpoint.address.to_string();
    let url = Url::parse(&format!("{base}{target}")).ok()?;
    // The same host, as a name or as the address it is written as, and the same bytes behind it.
    let same_host = url.host_str()?.trim_start_matches('[').trim_end_matches(']')
        == &*endpoint.address.host
        && url.port_or_known_default() == Some(endpoint.address.port);
    let same_target = match target.split_once('?') {
        Some((path, query)) => url.path() == path && url.query() == Some(query),
        None => url.path() == target && url.query().is_none(),
    };
    if !same_host || !same_target || url.fragment().is_some() {
        return None;
    }
    // HTTP/2 has one place for the host, and reqwest fills it from the URL.
    let shared = options.http2 && endpoint.address.scheme == Scheme::Https;
    if shared && request.headers().get(HOST).is_some_and(|host| *host != endpoint.host) {
        return None;
    }
    Some(url)
}
