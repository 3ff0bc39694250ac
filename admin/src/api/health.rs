//! Whether the admin works.

use std::{collections::BTreeMap, time::Duration};

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

/// How long the store may take to answer: whoever asks for health decides by it, and soon.
const STORE_DEADLINE: Duration = Duration::from_secs(2);

async fn health(context: Context, (): ()) -> ApiResult<Response> {
    let store = context.state().store();
    let reachable = match tokio::time::timeout(STORE_DEADLINE, store.read()).await {
        Ok(Ok(_)) => true,
        Ok(Err(error)) => {
            tracing::warn!(%error, "the store is out of reach");
            false
        }
        Err(_) => {
            tracing::warn!(after = ?STORE_DEADLINE, "the store does not answer");
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
