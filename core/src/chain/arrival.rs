//! A request that somebody watches, until it is over.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, Version};

use super::{Connection, Exchange, Inbound, client_address};
use crate::body::{Body, drain};
use crate::error::GatewayError;
use crate::telemetry::Observer;

/// What the observer is told about a request beside its completion.
#[derive(Debug)]
pub struct Observed {
    /// The client's connection.
    pub connection: Arc<Connection>,
    /// The client's address; `None` where nobody asks for it.
    pub client: Option<IpAddr>,
    /// The request's id, if it has one.
    pub request_id: Option<HeaderValue>,
    /// The version of HTTP that the client speaks.
    pub version: Version,
}

impl Observed {
    /// Who watches.
    pub(super) fn observer(&self) -> Option<&Observer> {
        self.connection.edge.observer.as_ref()
    }

    /// What is watched of a request; `None` when nobody watches.
    pub(super) fn new(
        connection: &Arc<Connection>,
        request_id: Option<&HeaderValue>,
        version: Version,
        headers: &HeaderMap,
    ) -> Option<Self> {
        let observer = connection.edge.observer.as_ref()?;
        let peer = connection.peer.ip();
        let client = || client_address::resolve(&connection.edge.trusted, peer, headers);
        Some(Self {
            connection: Arc::clone(connection),
            client: observer.logs().then(client),
            request_id: request_id.cloned(),
            version,
        })
    }
}

/// A watched request that is over before the chain saw it.
#[derive(Debug)]
pub struct Arrival {
    method: Method,
    target: Uri,
    received: Instant,
    observed: Observed,
}

impl Arrival {
    fn of(request: &Request<Inbound>) -> Option<Self> {
        let inbound = request.body();
        let observed = Observed::new(
            &inbound.connection,
            inbound.request_id.as_ref(),
            request.version(),
            request.headers(),
        )?;
        Some(Self {
            method: request.method().clone(),
            target: request.uri().clone(),
            received: inbound.received,
            observed,
        })
    }

    fn begin(self) -> Exchange {
        let mut exchange = Exchange::begin(self.method, self.target, self.received);
        exchange.observe(self.observed);
        exchange
    }

    /// Answers the request with a refusal.
    pub(crate) fn refused(self, error: &GatewayError, response: Response<Body>) -> Response<Body> {
        let mut exchange = self.begin();
        exchange.because(error.reason());
        answered(exchange, response)
    }
}

/// A layer answers instead of the chain. Whoever watches requests is told, to the end of the answer;
/// what is left of the request's body is read and dropped.
#[must_use]
pub fn answer_early(request: Request<Inbound>, response: Response<Body>) -> Response<Body> {
    let arrival = Arrival::of(&request);
    drain(request.into_body().body);
    match arrival {
        None => response,
        Some(arrival) => answered(arrival.begin(), response),
    }
}

/// A layer refuses the request; the error tells the observer once it has become an answer.
pub(crate) fn refuse_early(request: Request<Inbound>, error: GatewayError) -> GatewayError {
    let arrival = Arrival::of(&request);
    drain(request.into_body().body);
    error.ending(arrival)
}

fn answered(mut exchange: Exchange, response: Response<Body>) -> Response<Body> {
    let (head, body) = response.into_parts();
    exchange.answered(head.status);
    Response::from_parts(head, exchange.watch(body))
}
