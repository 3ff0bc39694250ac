//! Binding selectors.

use longmen_core::model::Selector;
use longmen_db::repository::binding::{self, Bound, NewBinding, UseDiscovery};
use longmen_db::repository::conditioned;
use longmen_db::repository::discovery::{self, NewDiscovery};
use longmen_db::{Tx, UnitOfWork};

use super::request::ProxySelectorRequest;
use crate::api::common::filled;
use crate::api::discovery::{DISCOVERY_TYPES, LOCAL};
use crate::context::Context;
use crate::error::{ApiError, ApiResult};
use crate::extract::{Body, Path};
use crate::reply::{NoData, Reply};

/// The level of a discovery that serves one selector.
const LEVEL_SELECTOR: &str = "0";

/// Binds a selector to a discovery and, of a local one, to upstreams.
pub(super) async fn bind(
    context: Context,
    Body(request): Body<ProxySelectorRequest>,
) -> ApiResult<Reply<NoData>> {
    request.usable().map_err(ApiError::refused)?;
    let mut uow = context.begin().await?;
    let selector = selector_of(&mut uow, &request).await?;
    if let Some(bound) = binding::find_of(&mut uow, Bound::Selector(&selector.id)).await? {
        return Err(ApiError::refused(format!(
            "selectorId: {} is bound already, by the discovery handler {}; change its upstreams \
             instead",
            selector.id, bound.handler.id,
        )));
    }
    let name = request.discovery_type().unwrap_or_default();
    let new = new_binding(&mut uow, &request, name, &selector.plugin_name).await?;
    binding::insert(&mut uow, Bound::Selector(&selector.id), &new).await?;
    if let Some(stored) = binding::load_of(&mut uow, Bound::Selector(&selector.id)).await? {
        stored.record_created(&mut uow);
    }
    uow.commit().await?;
    Ok(Reply::text("create success"))
}

/// Tells gateways the upstreams of a handler again; of a local discovery they are what is stored.
pub(super) async fn fetch(
    context: Context,
    Path(handler_id): Path<String>,
) -> ApiResult<Reply<NoData>> {
    let mut uow = context.begin().await?;
    let Some(stored) = binding::load_for_update(&mut uow, &handler_id).await? else {
        return Err(ApiError::refused(format!(
            "discoveryHandlerId: {handler_id} is not there, expected the id of a discovery handler"
        )));
    };
    stored.record_upstreams(&mut uow, &stored.upstreams);
    uow.commit().await?;
    Ok(Reply::text(""))
}

/// The binding that a request asks for. A discovery made for it is named `name`.
///
/// # Errors
/// A discovery that is not there or in another namespace, or a type this admin does not serve.
pub(super) async fn new_binding(
    tx: &mut Tx,
    request: &ProxySelectorRequest,
    name: &str,
    plugin_name: &str,
) -> ApiResult<NewBinding> {
    let namespace_id = request.namespace_id.clone().unwrap_or_default();
    let part = request.discovery.clone().unwrap_or_default();
    let discovery = if let Some(id) = filled(part.id.as_deref()) {
        let row = discovery::find(tx, id).await?.filter(|row| row.namespace_id == namespace_id);
        let row = row.ok_or_else(|| {
            ApiError::refused(format!(
                "discovery.id: {id} is not there, expected a discovery of {namespace_id}"
            ))
        })?;
        served(Some(&row.discovery_type))?;
        UseDiscovery::Existing(row.id)
    } else {
        served(part.discovery_type.as_deref())?;
        UseDiscovery::New(NewDiscovery {
            discovery_name: name.to_owned(),
            discovery_level: LEVEL_SELECTOR.to_owned(),
            plugin_name: plugin_name.to_owned(),
            namespace_id,
            discovery_type: part.discovery_type.unwrap_or_default(),
            server_list: part.server_list.unwrap_or_default(),
            props: part.props,
        })
    };
    Ok(NewBinding {
        discovery,
        plugin_name: plugin_name.to_owned(),
        handler: request.handler.clone().unwrap_or_default(),
        listener_node: request.listener_node.clone(),
        props: request.props.clone(),
        upstreams: request.new_upstreams(),
    })
}

/// Refuses types of discovery that are none, and those that this admin does not serve.
fn served(discovery_type: Option<&str>) -> ApiResult<()> {
    match discovery_type {
        Some(LOCAL) => Ok(()),
        Some(known) if DISCOVERY_TYPES.contains(&known) => Err(ApiError::refused(format!(
            "discovery.discoveryType: {known} is not served by this admin, expected {LOCAL}"
        ))),
        other => Err(ApiError::refused(format!(
            "shenyu discovery mode current didn't support {}",
            other.unwrap_or("null")
        ))),
    }
}

/// The selector to bind, of the namespace and plugin that the request names, held until the end of
/// the transaction.
async fn selector_of(uow: &mut UnitOfWork, request: &ProxySelectorRequest) -> ApiResult<Selector> {
    let id = request.selector_id.as_deref().unwrap_or_default();
    let Some(row) = conditioned::find_for_update::<Selector>(uow, id).await? else {
        return Err(ApiError::refused(format!(
            "selectorId: {id:?} is not there, expected the id of a selector"
        )));
    };
    let selector = row.object;
    let namespace = selector.namespace_id.as_deref().unwrap_or_default();
    let sent = request.namespace_id.as_deref().unwrap_or_default();
    if sent != namespace {
        return Err(ApiError::refused(format!(
            "namespaceId: {sent} is not the namespace of the selector {id}, expected {namespace}"
        )));
    }
    let sent = request.plugin_name.as_deref().unwrap_or_default();
    if sent != selector.plugin_name {
        return Err(ApiError::refused(format!(
            "pluginName: {sent} is not the plugin of the selector {id}, expected {}",
            selector.plugin_name
        )));
    }
    Ok(selector)
}
