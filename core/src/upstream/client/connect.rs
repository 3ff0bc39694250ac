//! Opening connections.

use std::io;
use std::net::SocketAddr;

use http::StatusCode;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{ClientOptions, SHENYU_TIMEOUT};
use crate::error::{Fault, GatewayError, Reason, Retry};
use crate::upstream::{Endpoint, Scheme};

/// Connects to an endpoint: all its addresses in turn, within one limit.
pub(super) async fn connect(
    endpoint: &Endpoint,
    options: &ClientOptions,
) -> Result<TcpStream, GatewayError> {
    if endpoint.address.scheme == Scheme::Https {
        return Err(refused(endpoint, "https upstreams are not supported by this build"));
    }
    match timeout(options.connect_timeout, dial(endpoint)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(refused(endpoint, error)),
        Err(_) => Err(GatewayError::new(
            Fault::Upstream,
            Reason::UpstreamConnectTimeout,
            StatusCode::GATEWAY_TIMEOUT,
            "connecting to the upstream took too long",
        )
        .shenyu(StatusCode::REQUEST_TIMEOUT, SHENYU_TIMEOUT)
        .retry_when(Retry::Safe)
        .detail(format_args!("{endpoint} after {:?}", options.connect_timeout))),
    }
}

fn refused(endpoint: &Endpoint, error: impl std::fmt::Display) -> GatewayError {
    GatewayError::new(
        Fault::Upstream,
        Reason::UpstreamConnect,
        StatusCode::BAD_GATEWAY,
        "the upstream cannot be reached",
    )
    .shenyu(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error")
    .retry_when(Retry::Safe)
    .detail(format_args!("{endpoint}: {error}"))
}

async fn dial(endpoint: &Endpoint) -> io::Result<TcpStream> {
    let address = &endpoint.address;
    let stream = match address.ip {
        Some(ip) => TcpStream::connect(ip).await?,
        None => {
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((&*address.host, address.port)).await?.collect();
            TcpStream::connect(&found[..]).await?
        }
    };
    stream.set_nodelay(true)?;
    Ok(stream)
}
