//! `/shenyu-client`: services register themselves, by the SDKs of the reference as they are.
//!
//! A registration makes what is missing and leaves alone what is there, so restarts, several
//! instances at a time and rolling deploys end in the same rows as one registration; all rows of one
//! are one change set. An instance that says nothing new writes nothing.
//!
//! Source: ShenYu 2.7.1 admin and SDKs, executed. Ours: the answer comes when the rows are stored; an
//! address makes its selector where it comes before the metadata; a heartbeat brings a lost address
//! back and tells gateways nothing otherwise; writes need `system:plugin:edit`.

mod api_doc;
mod condition;
mod discovery;
mod kind;
mod mcp;
mod meta_data;
mod offline;
mod request;
mod target;
mod uri;

use self::api_doc::ApiDocRegister;
use self::kind::Kind;
use self::request::{DiscoveryRegister, EventType, McpRegister, MetaDataRegister, UriRegister};
use crate::context::Context;
use crate::error::{ApiError, ApiResult};
use crate::extract::Body;
use crate::permission::Permission::{self, AnyOf};
use crate::registration;
use crate::reply::PlainText;
use crate::router::Routes;

const EDIT: Permission = AnyOf(&["system:plugin:edit"]);

/// The only answer that SDKs take for one.
const SUCCESS: PlainText = PlainText("success");

/// The routes of registering clients.
#[must_use]
pub(crate) fn routes() -> Routes {
    Routes::new("shenyu-client")
        .post("/shenyu-client/register-metadata", EDIT, "Registers an API", register_meta_data)
        .post(
            "/shenyu-client/register-uri",
            EDIT,
            "Registers an instance, or says that it is alive",
            register_uri,
        )
        .post(
            "/shenyu-client/register-apiDoc",
            EDIT,
            "Registers the description of an API for people",
            register_api_doc,
        )
        .post(
            "/shenyu-client/register-discoveryConfig",
            EDIT,
            "Says where the instances of a selector are to be found",
            register_discovery,
        )
        .post(
            "/shenyu-client/register-mcp",
            EDIT,
            "Registers tools for language models",
            register_mcp,
        )
        .post("/shenyu-client/offline", EDIT, "Takes an instance out", go_offline)
}

async fn register_meta_data(
    context: Context,
    Body(request): Body<MetaDataRegister>,
) -> ApiResult<PlainText> {
    let state = context.state().clone();
    registration::run(&state, "a registered API", move || {
        let (context, request) = (context.clone(), request.clone());
        async move { meta_data::store(&context, &request).await }
    })
    .await?;
    Ok(SUCCESS)
}

async fn register_api_doc(
    context: Context,
    Body(request): Body<ApiDocRegister>,
) -> ApiResult<PlainText> {
    let state = context.state().clone();
    registration::run(&state, "a registered description", move || {
        let (context, request) = (context.clone(), request.clone());
        async move { api_doc::store(&context, &request).await }
    })
    .await?;
    Ok(SUCCESS)
}

async fn register_discovery(
    context: Context,
    Body(request): Body<DiscoveryRegister>,
) -> ApiResult<PlainText> {
    let state = context.state().clone();
    registration::run(&state, "a registered discovery", move || {
        let (context, request) = (context.clone(), request.clone());
        async move { discovery::store(&context, &request).await }
    })
    .await?;
    Ok(SUCCESS)
}

async fn register_mcp(context: Context, Body(request): Body<McpRegister>) -> ApiResult<PlainText> {
    let state = context.state().clone();
    registration::run(&state, "registered tools", move || {
        let (context, request) = (context.clone(), request.clone());
        async move { mcp::store(&context, &request).await }
    })
    .await?;
    Ok(SUCCESS)
}

async fn register_uri(context: Context, Body(request): Body<UriRegister>) -> ApiResult<PlainText> {
    let event = request.event(EventType::Register).map_err(ApiError::refused)?;
    apply(context, request, event).await
}

async fn go_offline(context: Context, Body(request): Body<UriRegister>) -> ApiResult<PlainText> {
    let event = request.event(EventType::Offline).map_err(ApiError::refused)?;
    apply(context, request, event).await
}

async fn apply(context: Context, request: UriRegister, event: EventType) -> ApiResult<PlainText> {
    // The good-bye was said by the call to `offline` before.
    if matches!(event, EventType::Updated | EventType::Deleted | EventType::Ignored) {
        return Ok(SUCCESS);
    }
    let state = context.state().clone();
    registration::run(&state, "a registered instance", move || {
        let (context, request) = (context.clone(), request.clone());
        async move {
            match event {
                EventType::Offline => offline::take_out(&context, &request).await,
                EventType::Heartbeat => uri::beat(&context, &request).await,
                _ => uri::register(&context, &request).await,
            }
        }
    })
    .await?;
    Ok(SUCCESS)
}
