//! Storing a registered API: its selector, its rule, its description, and those of the context path.

use longmen_core::model::MetaData;
use longmen_core::sync::{Event, Group};
use longmen_db::repository::meta_data::{self, MetaDataRow};
use longmen_db::{Change, Operation};

use super::condition;
use super::request::{Api, MetaDataRegister};
use super::target::{Target, inside};
use crate::audit::{self, Kind as Audited};
use crate::context::Context;
use crate::error::ApiResult;

/// The plugin that cuts context paths off.
const CONTEXT_PATH: &str = "contextPath";

/// Stores what is missing of an API; all in one change set.
///
/// # Errors
/// What is left out, as a refusal; failures of the store.
pub(super) async fn store(context: &Context, request: &MetaDataRegister) -> ApiResult<()> {
    let api = request.api()?;
    let cut = api.context_path.filter(|_| api.kind.is_by_path());
    let mut plugins = vec![api.kind.plugin()];
    plugins.extend(cut.map(|_| CONTEXT_PATH));
    let (mut target, linked) =
        Target::hold(context, api.app_name, api.namespace_id, &plugins).await?;
    let selectors = target.selectors(&linked, &api.selector_name()).await?;
    let mut selectors = selectors.iter();
    if let Some(own) = selectors.next() {
        let condition = condition::of_path(api.path);
        target.ensure_rule(own, api.rule_name, condition, api.kind.rule_handle()).await?;
    }
    if !api.kind.is_by_path() || request.register_meta_data.unwrap_or_default() {
        describe(&mut target, request, &api).await?;
    }
    if let (Some(owner), Some(path)) = (selectors.next(), cut) {
        let handle = context_path_handle(path, request.add_prefixed.unwrap_or_default());
        target.ensure_rule(owner, path, condition::all_below(path), &handle).await?;
    }
    target.commit().await
}

fn context_path_handle(path: &str, add_prefixed: bool) -> String {
    let path = path.split_once("/**").map_or(path, |(path, _)| path);
    serde_json::json!({"addPrefixed": add_prefixed, "contextPath": path}).to_string()
}

/// Stores the description of an API. The service knows best what it is, so its members replace those
/// that are there; whether it is in force is a person's to say.
async fn describe(
    target: &mut Target<'_>,
    request: &MetaDataRegister,
    api: &Api<'_>,
) -> ApiResult<()> {
    let found = find(target, request, api).await?;
    let told = |id: &str, enabled: bool| MetaData {
        id: id.to_owned(),
        app_name: Some(api.app_name.to_owned()),
        context_path: None,
        path: api.path.to_owned(),
        rpc_type: api.kind.word().to_owned(),
        service_name: request.service_name.clone(),
        method_name: request.method_name.clone(),
        parameter_types: request.parameter_types.clone(),
        rpc_ext: request.rpc_ext.clone(),
        enabled,
        namespace_id: Some(api.namespace_id.to_owned()),
    };
    let description = request.path_desc.as_deref();
    let uow = &mut target.uow;
    let Some(row) = found else {
        let made = told(&uow.next_id()?, request.enabled.unwrap_or_default());
        meta_data::insert(uow, &made, description).await.map_err(inside)?;
        uow.record(change(&made, Operation::Create, Event::Create).after(&made));
        return audit::created(uow, Audited::MetaData, &made.path).await;
    };
    let before = row.meta_data;
    let after = told(&before.id, before.enabled);
    if before == after && row.path_desc.as_deref() == description {
        return Ok(());
    }
    meta_data::update(uow, &after, description).await.map_err(inside)?;
    uow.record(change(&after, Operation::Update, Event::Update).before(&before).after(&after));
    Ok(())
}

/// The description that is there, held. Two never have one path, so that of the path comes first
/// also where the reference looks for the method alone.
async fn find(
    target: &mut Target<'_>,
    request: &MetaDataRegister,
    api: &Api<'_>,
) -> ApiResult<Option<MetaDataRow>> {
    let uow = &mut target.uow;
    let mut found = meta_data::find_by_path(uow, api.namespace_id, api.path).await?;
    if found.is_none() && api.kind.is_by_method() {
        let service = request.service_name.as_deref().unwrap_or_default();
        let method = request.method_name.as_deref().unwrap_or_default();
        found = meta_data::find_by_method(uow, api.namespace_id, service, method).await?;
    }
    let Some(found) = found else { return Ok(None) };
    let ids = [found.meta_data.id];
    Ok(meta_data::find_many_for_update(uow, api.namespace_id, &ids).await?.pop())
}

fn change(meta_data: &MetaData, operation: Operation, event: Event) -> Change {
    let namespace = meta_data.namespace_id.clone().unwrap_or_default();
    Change::new(namespace, Group::MetaData, &*meta_data.id, operation).stock_event(event)
}

#[cfg(test)]
mod tests {
    use super::context_path_handle;

    #[test]
    fn the_settings_of_a_context_path_are_the_reference_s() {
        let recorded = "{\"addPrefixed\":false,\"contextPath\":\"/http\"}";
        assert_eq!(context_path_handle("/http", false), recorded);
        assert_eq!(context_path_handle("/http/**", false), recorded);
        assert_eq!(
            context_path_handle("/a\"b", true),
            "{\"addPrefixed\":true,\"contextPath\":\"/a\\\"b\"}"
        );
    }
}
