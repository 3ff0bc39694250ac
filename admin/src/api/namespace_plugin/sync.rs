//! Sending to gateways again what they should have already.

use longmen_core::sync::{Event, Group};
use longmen_db::{
    Change, Operation,
    repository::{namespace, namespace_plugin},
};

use super::request::{LinkQuery, NamespaceSyncRequest};
use crate::{
    context::Context,
    error::{ApiError, ApiResult},
    extract::{Body, Query},
    reply::{NoData, Reply},
};

const DONE: &str = "sync success";
const FAILED: &str = "sync fail";

/// `POST /namespace-plugin/syncPluginAll`.
pub(super) async fn all(
    context: Context,
    Body(request): Body<NamespaceSyncRequest>,
) -> ApiResult<Reply<NoData>> {
    let namespace_id = request.namespace_id.unwrap_or_default();
    let mut uow = context.begin().await?;
    if namespace::find(&mut uow, &namespace_id).await?.is_none() {
        return Err(ApiError::refused(FAILED));
    }
    // A refresh of a kind that is no group means the whole namespace.
    uow.record(
        Change::internal(&*namespace_id, "NAMESPACE", &*namespace_id, Operation::Refresh)
            .stock_event(Event::Refresh),
    );
    uow.commit().await?;
    Ok(Reply::text(DONE))
}

/// `PUT /namespace-plugin/syncPluginData`: code 200 in any case, the text tells.
pub(super) async fn one(
    context: Context,
    Query(query): Query<LinkQuery>,
) -> ApiResult<Reply<NoData>> {
    let mut uow = context.begin().await?;
    let Some(link) = namespace_plugin::find(&mut uow, &query.id).await? else {
        return Ok(Reply::text(FAILED));
    };
    uow.record(
        Change::new(link.namespace_id, Group::Plugin, link.plugin_id, Operation::Refresh)
            .stock_event(Event::Refresh),
    );
    uow.commit().await?;
    Ok(Reply::text(DONE))
}
