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
    let _ = context;
    let health =
        Health { status: "UP", components: BTreeMap::from([("ping", Component { status: "UP" })]) };
    Ok((StatusCode::OK, axum::Json(health)).into_response())
}
