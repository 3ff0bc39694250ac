//! Changing what runs in a namespace.

use longmen_core::{
    model::DEFAULT_NAMESPACE,
    sync::{Event, Group},
};
use longmen_db::{
    Change, Operation, UnitOfWork,
    repository::{
        namespace,
        namespace_plugin::{self, NamespacePluginRow},
        plugin,
    },
};

use super::{request::SettingsRequest, response::NamespacePluginResponse};
use crate::{
    api::handle::validate_config,
    audit,
    context::Context,
    error::{ApiError, ApiResult},
    extract::{BatchEnabled, BatchIds, Body, Path, Violations},
    reply::{NoData, Reply},
};

const UNKNOWN: &str = "The plugin(s) does not exist！";

/// `PUT /namespace-plugin/{id}`.
pub(super) async fn update(
    context: Context,
    (Path(id), Body(request)): (Path<String>, Body<SettingsRequest>),
) -> ApiResult<Reply<NoData>> {
    let mut uow = context.begin().await?;
    let mut held = namespace_plugin::find_many_for_update(&mut uow, &[&id]).await?;
    let Some(before) = held.pop() else {
        let mut rules = Violations::new();
        rules.add("id", "namespace plugin relation is not exist");
        rules.into_parameter_result("updatePlugin")?;
        return Err(ApiError::Unreadable);
    };
    validate_config(context.state(), &before.name, request.config.as_deref())?;
    let enabled = request.enabled.unwrap_or(before.enabled);
    let config = request.config.as_deref();
    namespace_plugin::update(&mut uow, &id, config, request.sort, enabled).await?;
    let after = NamespacePluginRow {
        config: request.config.clone(),
        sort: request.sort,
        enabled,
        ..before.clone()
    };
    let what = audit::Differences::default()
        .of("config", text(&before.config), text(&after.config))
        .of("sort", before.sort.unwrap_or_default(), after.sort.unwrap_or_default())
        .of("enabled", before.enabled, after.enabled)
        .text();
    audit::updated(&mut uow, audit::Kind::NamespacePlugin, &after.name, &what).await?;
    record_update(&mut uow, &before, &after);
    uow.commit().await?;
    if enabled && !before.enabled {
        told_if_missing(&context, &[after]);
    }
    Ok(Reply::text("update success"))
}

/// `POST /namespace-plugin/{namespaceId}/{pluginId}`. Stock gateways are not told: they learn of the
/// plugin when it is next changed or synced.
pub(super) async fn link(
    context: Context,
    Path((namespace_id, plugin_id)): Path<(String, String)>,
) -> ApiResult<Reply<NamespacePluginResponse>> {
    let mut uow = context.begin().await?;
    let namespace = namespace::find(&mut uow, &namespace_id).await?;
    let template = plugin::find_many_for_update(&mut uow, &[&plugin_id]).await?.pop();
    let mut rules = Violations::new();
    rules.exists("namespaceId", namespace.is_some(), "namespace is not exist");
    rules.exists("pluginId", template.is_some(), "plugin is not exist");
    rules.into_parameter_result("generateNamespacePlugin")?;
    // Both are there, or the rules would have ended the call.
    let template = template.ok_or(ApiError::Unreadable)?;
    if namespace_plugin::find_by_plugin(&mut uow, &namespace_id, &plugin_id).await?.is_some() {
        return Err(ApiError::refused("The plugin of namespace is exist！"));
    }
    let id = namespace_plugin::link(&mut uow, &namespace_id, &plugin_id).await?;
    let linked = namespace_plugin::find(&mut uow, &id).await?;
    if let Some(linked) = &linked {
        uow.record(
            Change::new(&*namespace_id, Group::Plugin, &*plugin_id, Operation::Create)
                .after(&linked.to_model()),
        );
    }
    audit::created(&mut uow, audit::Kind::NamespacePlugin, &template.name).await?;
    let response = NamespacePluginResponse::just_linked(template, namespace_id, &uow);
    uow.commit().await?;
    let on: Vec<NamespacePluginRow> = linked.into_iter().filter(|row| row.enabled).collect();
    told_if_missing(&context, &on);
    Ok(Reply::data(response))
}

/// `DELETE /namespace-plugin/batch`.
pub(super) async fn delete(
    context: Context,
    Body(request): Body<BatchIds>,
) -> ApiResult<Reply<NoData>> {
    let (ids, namespace_id) = request.into_parts();
    let mut uow = context.begin().await?;
    let held = namespace_plugin::find_many_for_update(&mut uow, &ids).await?;
    let ids: Vec<&str> = held
        .iter()
        .filter(|row| row.namespace_id == namespace_id)
        .map(|row| row.id.as_str())
        .collect();
    if ids.is_empty() {
        return Err(ApiError::refused(UNKNOWN));
    }
    let (links, removed) = namespace_plugin::delete(&mut uow, &ids).await?;
    for link in &links {
        uow.record(
            Change::new(&*link.namespace_id, Group::Plugin, &*link.plugin_id, Operation::Delete)
                .stock_event(Event::Delete)
                .before(&link.to_model()),
        );
    }
    removed.record(&mut uow);
    let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
    audit::deleted(&mut uow, audit::Kind::NamespacePlugin, &names).await?;
    uow.commit().await?;
    Ok(Reply::text("delete success"))
}

/// `POST /namespace-plugin/enabled`.
pub(super) async fn enabled(
    context: Context,
    Body(request): Body<BatchEnabled>,
) -> ApiResult<Reply<NoData>> {
    let mut uow = context.begin().await?;
    let ids = request.ids.unwrap_or_default();
    let (count, on) = switch(&mut uow, &ids, request.enabled.unwrap_or_default()).await?;
    if count == 0 {
        return Err(ApiError::refused(UNKNOWN));
    }
    uow.commit().await?;
    told_if_missing(&context, &on);
    Ok(Reply::text("enable success"))
}

/// `POST /namespace-plugin/enabledByNamespace`; plugins that are not linked are passed over.
pub(super) async fn enabled_by_namespace(
    context: Context,
    Body(request): Body<BatchEnabled>,
) -> ApiResult<Reply<NoData>> {
    let namespace_id = request.namespace_id.as_deref().unwrap_or(DEFAULT_NAMESPACE);
    let plugin_ids = request.ids.unwrap_or_default();
    let mut uow = context.begin().await?;
    let ids = namespace_plugin::ids_of_plugins(&mut uow, namespace_id, &plugin_ids).await?;
    let (_, on) = switch(&mut uow, &ids, request.enabled.unwrap_or_default()).await?;
    uow.commit().await?;
    told_if_missing(&context, &on);
    Ok(Reply::text("enable success"))
}

/// Switches links on or off. Out: how many there were, and those that were off and now are on.
async fn switch<S: AsRef<str> + Sync>(
    uow: &mut UnitOfWork,
    ids: &[S],
    enabled: bool,
) -> ApiResult<(usize, Vec<NamespacePluginRow>)> {
    let held = namespace_plugin::find_many_for_update(uow, ids).await?;
    let ids: Vec<&str> = held.iter().map(|row| row.id.as_str()).collect();
    namespace_plugin::set_enabled(uow, &ids, enabled).await?;
    for before in &held {
        let after = NamespacePluginRow { enabled, ..before.clone() };
        record_update(uow, before, &after);
        let what = audit::Differences::default().of("enabled", before.enabled, enabled).text();
        audit::updated(uow, audit::Kind::NamespacePlugin, &before.name, &what).await?;
    }
    let count = held.len();
    let on = held.into_iter().filter(|before| enabled && !before.enabled).collect();
    Ok((count, on))
}

/// Warns of those among what was just switched on that connected gateways do not have; the answer
/// is the reference's.
fn told_if_missing(context: &Context, on: &[NamespacePluginRow]) {
    let state = context.state();
    for row in on {
        let name = [row.name.as_str()];
        state.publisher().switched_on(state.plugins(), &row.namespace_id, name);
    }
}

fn record_update(uow: &mut UnitOfWork, before: &NamespacePluginRow, after: &NamespacePluginRow) {
    uow.record(
        Change::new(&*after.namespace_id, Group::Plugin, &*after.plugin_id, Operation::Update)
            .stock_event(Event::Update)
            .before(&before.to_model())
            .after(&after.to_model()),
    );
}

fn text(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or_default()
}
