//! Writing raw ports.

use longmen_core::sync::Group;
use longmen_db::repository::binding::{self, Bound};
use longmen_db::repository::{proxy_selector, upstream};
use longmen_db::{Change, Operation};

use super::bind::new_binding;
use super::request::ProxySelectorRequest;
use crate::api::common::distinct;
use crate::context::Context;
use crate::error::{ApiError, ApiResult};
use crate::extract::{Body, Ids, Path};
use crate::reply::{NoData, Reply};

/// The plugin of all raw ports, whatever the request says.
const PLUGIN: &str = "tcp";

/// Stores a new raw port with its upstreams.
pub(super) async fn create(
    context: Context,
    Body(request): Body<ProxySelectorRequest>,
) -> ApiResult<Reply<NoData>> {
    request.usable().map_err(ApiError::refused)?;
    let port = request.new_port(PLUGIN).map_err(ApiError::refused)?;
    let mut uow = context.begin().await?;
    let new = new_binding(&mut uow, &request, &port.name, PLUGIN).await?;
    let id = proxy_selector::insert(&mut uow, &port).await?;
    binding::insert(&mut uow, Bound::ProxySelector(&id), &new).await?;
    if let Some(stored) = binding::load_of(&mut uow, Bound::ProxySelector(&id)).await? {
        stored.record_created(&mut uow);
    }
    uow.commit().await?;
    Ok(Reply::text("create success"))
}

/// Replaces a raw port and its upstreams; its discovery and namespace stay.
pub(super) async fn update(
    context: Context,
    (Path(id), Body(request)): (Path<String>, Body<ProxySelectorRequest>),
) -> ApiResult<Reply<NoData>> {
    request.usable().map_err(ApiError::refused)?;
    if request.discovery_upstreams.is_none() {
        return Err(ApiError::refused(
            "discoveryUpstreams: null is no list, expected the upstreams, [] for none",
        ));
    }
    let port = request.new_port(PLUGIN).map_err(ApiError::refused)?;
    let mut uow = context.begin().await?;
    let bound = Bound::ProxySelector(&id);
    // Before its handler, the order in which a delete takes them.
    proxy_selector::find_for_update(&mut uow, &id).await?;
    let handler = binding::find_of(&mut uow, bound).await?.map(|row| row.handler.id);
    let before = match &handler {
        Some(handler_id) => binding::load_for_update(&mut uow, handler_id).await?,
        None => None,
    };
    let (Some(before), Some(handler_id)) = (before, handler) else {
        return Err(ApiError::refused(format!(
            "id: {id} is not there, expected the id of a proxy selector"
        )));
    };
    let namespace = before.announcement.namespace_id.clone().unwrap_or_default();
    if port.namespace_id != namespace {
        return Err(ApiError::refused(format!(
            "namespaceId: {} is not the namespace of this proxy selector, expected {namespace}",
            port.namespace_id,
        )));
    }
    proxy_selector::update(&mut uow, &id, &port).await?;
    let renaming = request.handler.as_deref().unwrap_or_default();
    let (node, props) = (request.listener_node.as_deref(), request.props.as_deref());
    binding::update_handler(&mut uow, &handler_id, renaming, node, props).await?;
    upstream::replace(&mut uow, &handler_id, &request.started_upstreams()).await?;
    let Some(after) = binding::load(&mut uow, &handler_id).await? else {
        return Err(anyhow::anyhow!("discovery handler {handler_id} went in its own update").into());
    };
    if before.announcement != after.announcement {
        // Without an event: stock admins do not tell a changed port, name or setting.
        uow.record(
            Change::new(namespace, Group::ProxySelector, &*id, Operation::Update)
                .before(&before.announcement)
                .after(&after.announcement),
        );
    }
    after.record_upstreams(&mut uow, &before.upstreams);
    uow.commit().await?;
    Ok(Reply::text("update success"))
}

/// Deletes raw ports with their upstreams; unknown ids are passed over.
pub(super) async fn delete(context: Context, ids: Ids) -> ApiResult<Reply<NoData>> {
    let ids = distinct(ids.checked("deleteProxySelectors")?);
    let mut uow = context.begin().await?;
    for gone in proxy_selector::delete(&mut uow, &ids).await? {
        gone.record_deleted(&mut uow);
    }
    uow.commit().await?;
    Ok(Reply::text("delete success"))
}
