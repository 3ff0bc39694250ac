//! `POST /shenyu/explain`: what a request comes to at this gateway, and why. Nothing is sent, and nothing
//! changes.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use longmen_core::body::Body;
use longmen_core::chain::Tunnels;
use longmen_core::explain::{Options, RequestFault, explain, read};
use serde_json::json;
use tokio::runtime::Handle;

use super::{JSON, answer as answered};
use crate::config::GatewayConfig;
use crate::edge;
use crate::gateway::wall_clock;
use crate::management::Endpoints;
use crate::stack::{self, Filters};
use crate::sync::Applier;

/// The call, without `/shenyu/`.
pub(super) const CALL: &str = "explain";

/// How the gateway serves requests, but for who watches them.
pub(crate) fn options(
    config: &GatewayConfig,
    filters: &Filters,
    endpoints: &Endpoints,
    runtime: &Handle,
) -> Options {
    let limits = edge::head_limits(config);
    Options {
        driver: edge::driver_options(config, Tunnels::default()),
        edge: Arc::new(edge::unwatched(config)),
        before: stack::stages(filters, endpoints, limits),
        clock: wall_clock,
        runtime: runtime.clone(),
    }
}

/// Explains the request that a body describes; `peer` is the client's address where it names none.
pub(super) async fn answer(
    applier: &Applier,
    options: &Arc<Options>,
    body: Bytes,
    peer: IpAddr,
) -> Response<Body> {
    let options = Arc::clone(options);
    let explained = applier.ask(move |publisher| {
        let request = read(&body, peer)?;
        let explanation = explain(publisher, &options, &request)?;
        Ok(serde_json::to_string(&explanation).unwrap_or_default())
    });
    match explained.await {
        Ok(text) => answered(StatusCode::OK, JSON, text),
        Err(fault) => refused(&fault),
    }
}

fn refused(fault: &RequestFault) -> Response<Body> {
    let RequestFault { field, at, .. } = fault;
    let text = json!({"code": 400, "message": fault.to_string(), "field": field, "at": at});
    answered(StatusCode::BAD_REQUEST, JSON, text.to_string())
}
