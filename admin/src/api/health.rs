//! Whether the admin works.

use std::collections::BTreeMap;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::Serialize;

use crate::{context::Context, error::ApiResult, permission::Permission::Public, router::Routes};

pub(super) fn routes() -> Routes {
    Routes::new("health").get("/actuator/health", Public, "Whether the admin works", health)
}

#[derive(Debug, Serialize)]
struct Health {
    status: &'static str,
    components: BTreeMap<&'static str, Component>,
}

#[derive(Debug, Serialize)]
struct Component {
    status: &'static str,
}

async fn health(context: Context, (): ()) -> ApiResult<Response> {
    let store = context.state().store();
    let reachable = match store.read().await {
        Ok(_) => true,
        Err(error) => {
            tracing::warn!(%error, "the store is out of reach");
            false
        }
    };
    let word = |up| if up { "UP" } else { "DOWN" };
    let health = Health {
        status: word(reachable),
        components: BTreeMap::from([
            ("db", Component { status: word(reachable) }),
            ("ping", Component { status: "UP" }),
        ]),
    };
    let status = if reachable { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Ok((status, axum::Json(health)).into_response())
}
