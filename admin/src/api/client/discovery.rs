//! Storing where the instances of a selector are to be found.
//!
//! Source: ShenYu 2.7.1, register-discoveryConfig. Ours: it is stored at once and in one change set, with
//! the selector held, instead of 2 s later; a source that a person bound stays as it is; and the source is
//! not watched: this admin serves `local` alone.

use std::time::Duration;

use longmen_core::model::Selector;
use longmen_db::repository::binding::{self, Bound, NewBinding, UseDiscovery};
use longmen_db::repository::conditioned;
use longmen_db::repository::discovery::{self, NewDiscovery};

use super::request::{DiscoveryRegister, namespace, required, selector_name};
use super::target::{Target, inside};
use crate::api::common::filled;
use crate::api::discovery::{DISCOVERY_TYPES, LOCAL};
use crate::context::Context;
use crate::error::{ApiError, ApiResult};

/// The level of a discovery that serves a plugin.
const LEVEL_PLUGIN: &str = "1";

/// How often the selector is looked for, and the pause in between: the service registers its APIs at the
/// same time.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);

/// Stores the discovery of a plugin and the binding of a selector to it, where they are missing.
///
/// # Errors
/// What is left out, as a refusal; failures of the store.
pub(super) async fn store(context: &Context, request: &DiscoveryRegister) -> ApiResult<()> {
    let namespace = namespace(request.namespace_id.as_deref())?;
    let plugin = required("pluginName", request.plugin_name.as_deref())?;
    let name = selector_name(required("selectorName", request.selector_name.as_deref())?);
    let kind = required("discoveryType", request.discovery_type.as_deref())?;
    if !DISCOVERY_TYPES.contains(&kind) {
        return Err(ApiError::refused(format!(
            "discoveryType: {kind:?} is none, expected {}",
            DISCOVERY_TYPES.join(", ")
        )));
    }
    for _ in 1..ATTEMPTS {
        if bind(context, request, (namespace, plugin, &name, kind)).await? {
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
    }
    if bind(context, request, (namespace, plugin, &name, kind)).await? {
        return Ok(());
    }
    Err(ApiError::refused(format!(
        "selectorName: {name} is not in {plugin} of {namespace}, expected a registered selector"
    )))
}

/// Binds the selector. Out: whether it is there.
async fn bind(
    context: &Context,
    request: &DiscoveryRegister,
    (namespace, plugin, name, kind): (&str, &str, &str, &str),
) -> ApiResult<bool> {
    let (mut target, linked) = Target::hold(context, "", namespace, &[plugin]).await?;
    let Some(linked) = linked.first() else { return Ok(false) };
    let Some(found) = target.find_selector(linked, name).await? else { return Ok(false) };
    let uow = &mut target.uow;
    let Some(held) = conditioned::find_for_update::<Selector>(uow, &found.id).await? else {
        return Ok(false);
    };
    let bound = Bound::Selector(&held.object.id);
    if let Some(there) = binding::find_of(uow, bound).await? {
        if there.discovery.discovery_type != kind {
            tracing::debug!(
                selector.id = held.object.id,
                there = there.discovery.discovery_type,
                kind,
                "a registered discovery is left out: the selector is bound already"
            );
        }
        return Ok(true);
    }
    let props = serde_json::Value::Object(request.props.clone().unwrap_or_default()).to_string();
    let known = discovery::find_by_level(uow, namespace, plugin, LEVEL_PLUGIN).await?;
    let use_discovery = match known.filter(|row| row.discovery_type == kind) {
        Some(row) => UseDiscovery::Existing(row.id),
        None => UseDiscovery::New(NewDiscovery {
            discovery_name: filled(request.name.as_deref()).unwrap_or(kind).to_owned(),
            discovery_level: LEVEL_PLUGIN.to_owned(),
            plugin_name: plugin.to_owned(),
            namespace_id: namespace.to_owned(),
            discovery_type: kind.to_owned(),
            server_list: request.server_list.clone().unwrap_or_default(),
            props: Some(props.clone()),
        }),
    };
    let new = NewBinding {
        discovery: use_discovery,
        plugin_name: plugin.to_owned(),
        handler: filled(request.handler.as_deref()).unwrap_or("{}").to_owned(),
        listener_node: request.listener_node.clone(),
        props: Some(props),
        upstreams: Vec::new(),
    };
    binding::insert(uow, bound, &new).await.map_err(inside)?;
    if let Some(stored) = binding::load_of(uow, bound).await? {
        stored.record_created(uow);
    }
    if kind != LOCAL {
        tracing::warn!(
            selector = name,
            kind,
            "a registered discovery is stored, and its source is not watched: this admin serves {LOCAL} alone"
        );
    }
    target.commit().await?;
    Ok(true)
}
