//! Creating, changing and deleting selectors.

use longmen_core::model::{Level, Selector};
use longmen_db::repository::{self, conditioned, data_permission, namespace_plugin, selector};
use longmen_db::{Operation, Tx, UnitOfWork};

use super::request::{SelectorDraft, SelectorRequest};
use crate::api::common::missing;
use crate::api::condition::check_usable;
use crate::api::conditioned::request::ObjectRequest as _;
use crate::api::conditioned::write::{changed, in_namespace, own_conditions, record_update};
use crate::api::handle::validate_handle;
use crate::audit::{self, Kind};
use crate::context::Context;
use crate::error::{ApiError, ApiResult};
use crate::extract::Body;
use crate::reply::Reply;
use crate::state::AppState;

/// Stores a new selector, or changes the one that the body names. Answers its id.
pub(super) async fn create(
    context: Context,
    Body(request): Body<SelectorRequest>,
) -> ApiResult<Reply<String>> {
    if let Some(id) = request.id() {
        change(&context, id, &request).await?;
        return Ok(Reply::new("create success", id.to_owned()));
    }
    let (draft, plugin_name) = checked(context.state(), &request).await?;
    let mut uow = context.begin().await?;
    linked(&mut uow, &draft, &plugin_name).await?;
    let id = uow.next_id()?;
    let stored = draft.to_selector(&id, &plugin_name);
    selector::insert(&mut uow, &stored, &draft.common.new_conditions(&[])).await?;
    let (user, namespace) = (&context.caller()?.user_id, &draft.common.namespace_id);
    data_permission::grant_created(&mut uow, user, namespace, Level::Selector, &id).await?;
    uow.record(changed(&stored, Operation::Create).after(&stored));
    audit::created(&mut uow, Kind::Selector, &draft.common.name).await?;
    uow.commit().await?;
    Ok(Reply::new("create success", id))
}

/// Deletes selectors with their rules, bindings and grants, and notes it for the gateways.
///
/// # Errors
/// None of `asked` is a selector of the namespace; failures of the store.
pub(super) async fn remove(
    uow: &mut UnitOfWork,
    asked: &[String],
    ids: &[&str],
    namespace: &str,
) -> ApiResult<Vec<Selector>> {
    if ids.is_empty() {
        return Err(ApiError::refused(format!(
            "ids: {asked:?} names no selector of the namespace {namespace}, expected ids of its \
             selectors"
        )));
    }
    let removed = selector::delete(uow, ids).await?;
    removed.record(uow);
    Ok(removed.selectors)
}

/// Refuses a selector of a plugin that its namespace does not have: no list of that namespace would
/// show it, and it would come into force by surprise once the plugin is linked. The refusal is ours.
async fn linked(tx: &mut Tx, draft: &SelectorDraft, plugin_name: &str) -> ApiResult<()> {
    let (namespace_id, plugin_id) = (&draft.common.namespace_id, &draft.plugin_id);
    if namespace_plugin::find_by_plugin(tx, namespace_id, plugin_id).await?.is_some() {
        return Ok(());
    }
    Err(ApiError::refused(format!(
        "pluginId: {plugin_id} ({plugin_name}) is not linked to the namespace {namespace_id}, \
         expected one of its plugins"
    )))
}

/// Checks a request and makes of it what is stored. Out: that, and the name of the plugin.
async fn checked(
    state: &AppState,
    request: &SelectorRequest,
) -> ApiResult<(SelectorDraft, String)> {
    let draft = request.draft().map_err(ApiError::refused)?;
    if draft.is_custom() {
        check_usable(state, request.selector_conditions.as_deref().unwrap_or_default())?;
    }
    let mut tx = state.store().read().await?;
    let plugin = repository::plugin::find(&mut tx, &draft.plugin_id).await?;
    // Seen by the field rules just before: only a deletion in between leads here.
    let plugin = plugin.ok_or_else(|| missing("pluginId", "plugin is not existed"))?;
    validate_handle(state, &plugin.name, Level::Selector, draft.common.handle.as_deref())?;
    Ok((draft, plugin.name))
}

/// Replaces a selector and its conditions. Out: 0, and nothing is changed, when it is in another
/// namespace than the request says.
pub(super) async fn change(
    context: &Context,
    id: &str,
    request: &SelectorRequest,
) -> ApiResult<u64> {
    let (draft, plugin_name) = checked(context.state(), request).await?;
    let mut uow = context.begin().await?;
    let Some(before) = conditioned::find_for_update::<Selector>(&mut uow, id).await? else {
        return Ok(0);
    };
    let before = before.object;
    if !in_namespace(&before, Some(&draft.common.namespace_id)) {
        return Ok(0);
    }
    same_plugin(&before, &draft)?;
    let own = own_conditions::<Selector>(&mut uow, id).await?;
    let after = draft.to_selector(id, &plugin_name);
    let touched = selector::update(&mut uow, &after, &draft.common.new_conditions(&own)).await?;
    record_update(&mut uow, &before, &after).await?;
    uow.commit().await?;
    Ok(touched)
}

/// A selector stays with its plugin: its rules' handles are that plugin's.
fn same_plugin(before: &Selector, draft: &SelectorDraft) -> ApiResult<()> {
    let plugin_id = before.plugin_id.as_deref().unwrap_or_default();
    if plugin_id == draft.plugin_id {
        return Ok(());
    }
    Err(ApiError::refused(format!(
        "pluginId: {} is not the plugin of this selector, expected {plugin_id} ({})",
        draft.plugin_id, before.plugin_name,
    )))
}
