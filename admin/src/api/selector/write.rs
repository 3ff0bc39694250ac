//! Creating, changing, switching and deleting selectors.

use longmen_core::model::{Level, Selector};
use longmen_core::sync::{Event, Group};
use longmen_db::repository::{self, conditioned, data_permission, namespace_plugin, selector};
use longmen_db::{Change, Operation, Tx, UnitOfWork};

use super::request::{SelectorDraft, SelectorRequest};
use crate::api::common::{BatchDelete, MISSING_SELECTOR, absent, distinct, filled, missing};
use crate::api::condition::{check_usable, in_words};
use crate::api::handle::validate_handle;
use crate::audit::{self, Differences, Kind};
use crate::context::Context;
use crate::error::{ApiError, ApiResult};
use crate::extract::{BatchEnabled, Body, Path};
use crate::reply::{NoData, Reply};
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
    selector::insert(&mut uow, &stored, &draft.new_conditions(&[])).await?;
    let (user, namespace) = (&context.caller()?.user_id, &draft.namespace_id);
    data_permission::grant_created(&mut uow, user, namespace, Level::Selector, &id).await?;
    uow.record(changed(&stored, Operation::Create).after(&stored));
    audit::created(&mut uow, Kind::Selector, &draft.name).await?;
    uow.commit().await?;
    Ok(Reply::new("create success", id))
}

/// Changes a selector. Answers how many there were: 0 when it is in another namespace.
pub(super) async fn update(
    context: Context,
    (Path(id), Body(request)): (Path<String>, Body<SelectorRequest>),
) -> ApiResult<Reply<u64>> {
    let mut tx = context.read().await?;
    if conditioned::find::<Selector>(&mut tx, &id).await?.is_none() {
        return Err(missing("updateSelector.id", MISSING_SELECTOR));
    }
    drop(tx);
    Ok(Reply::new("update success", change(&context, &id, &request).await?))
}

/// Switches selectors on or off.
pub(super) async fn batch_enabled(
    context: Context,
    Body(request): Body<BatchEnabled>,
) -> ApiResult<Reply<NoData>> {
    let ids = distinct(request.ids.unwrap_or_default());
    let enabled = request.enabled.unwrap_or_default();
    let namespace = filled(request.namespace_id.as_deref());
    let mut uow = context.begin().await?;
    let rows = conditioned::find_many_for_update::<Selector>(&mut uow, &ids).await?;
    let found = rows.iter().map(|row| &row.object);
    let found: Vec<&Selector> = found.filter(|found| in_namespace(found, namespace)).collect();
    absent(&ids, |id| found.iter().any(|found| found.id == id), "selectors")?;
    conditioned::set_enabled::<Selector>(&mut uow, &ids, enabled).await?;
    // In the order of the request, as the reference pushes them.
    for before in ids.iter().filter_map(|id| found.iter().find(|found| found.id == *id)) {
        let after = Selector { enabled, ..(*before).clone() };
        uow.record(changed(&after, Operation::Update).before(*before).after(&after));
        let what = differences(before, &after);
        audit::updated(&mut uow, Kind::Selector, name(before), &what).await?;
    }
    uow.commit().await?;
    Ok(Reply::text("enable success"))
}

/// Deletes selectors with their rules, bindings and grants. Answers how many there were.
pub(super) async fn delete(
    context: Context,
    Body(request): Body<BatchDelete>,
) -> ApiResult<Reply<usize>> {
    let namespace = request.namespace_id.as_deref();
    let mut uow = context.begin().await?;
    let rows = conditioned::find_many_for_update::<Selector>(&mut uow, &request.ids()).await?;
    let found = rows.iter().map(|row| &row.object);
    let ids: Vec<&str> = found
        .filter(|found| in_namespace(found, namespace))
        .map(|found| found.id.as_str())
        .collect();
    if ids.is_empty() {
        return Err(ApiError::refused(format!(
            "ids: {:?} names no selector of the namespace {}, expected ids of its selectors",
            request.ids(),
            namespace.unwrap_or_default(),
        )));
    }
    let removed = selector::delete(&mut uow, &ids).await?;
    removed.record(&mut uow);
    let names: Vec<&str> = removed.selectors.iter().map(name).collect();
    audit::deleted(&mut uow, Kind::Selector, &names).await?;
    uow.commit().await?;
    Ok(Reply::new("delete success", removed.selectors.len()))
}

/// Refuses a selector of a plugin that its namespace does not have: no list of that namespace would
/// show it, and it would come into force by surprise once the plugin is linked. The refusal is ours.
async fn linked(tx: &mut Tx, draft: &SelectorDraft, plugin_name: &str) -> ApiResult<()> {
    let SelectorDraft { namespace_id, plugin_id, .. } = draft;
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
    validate_handle(state, &plugin.name, Level::Selector, draft.handle.as_deref())?;
    Ok((draft, plugin.name))
}

/// Replaces a selector and its conditions. Out: 0, and nothing is changed, when it is in another
/// namespace than the request says.
async fn change(context: &Context, id: &str, request: &SelectorRequest) -> ApiResult<u64> {
    let (draft, plugin_name) = checked(context.state(), request).await?;
    let mut uow = context.begin().await?;
    let Some(before) = conditioned::find_for_update::<Selector>(&mut uow, id).await? else {
        return Ok(0);
    };
    let before = before.object;
    if !in_namespace(&before, Some(&draft.namespace_id)) {
        return Ok(0);
    }
    same_plugin(&before, &draft)?;
    let own = own_conditions(&mut uow, id).await?;
    let after = draft.to_selector(id, &plugin_name);
    let touched = selector::update(&mut uow, &after, &draft.new_conditions(&own)).await?;
    uow.record(changed(&after, Operation::Update).before(&before).after(&after));
    let what = differences(&before, &after);
    audit::updated(&mut uow, Kind::Selector, &draft.name, &what).await?;
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

async fn own_conditions(uow: &mut UnitOfWork, id: &str) -> ApiResult<Vec<String>> {
    let rows = conditioned::conditions::<Selector>(uow, id).await?;
    Ok(rows.into_iter().map(|row| row.id).collect())
}

fn in_namespace(selector: &Selector, namespace: Option<&str>) -> bool {
    namespace.is_none_or(|wanted| selector.namespace_id.as_deref() == Some(wanted))
}

/// The entry of the change log, without the objects: stock gateways get every write as an update.
fn changed(selector: &Selector, operation: Operation) -> Change {
    let namespace = selector.namespace_id.clone().unwrap_or_default();
    Change::new(namespace, Group::Selector, &*selector.id, operation).stock_event(Event::Update)
}

fn name(selector: &Selector) -> &str {
    selector.name.as_deref().unwrap_or_default()
}

/// What the operation log says of an edit.
fn differences(before: &Selector, after: &Selector) -> String {
    let handle = |selector: &Selector| selector.handle.clone().unwrap_or_default();
    Differences::default()
        .of("name", name(before), name(after))
        .of("type", before.selector_type, after.selector_type)
        .of("matchMode", before.match_mode, after.match_mode)
        .of("sort", before.sort.unwrap_or_default(), after.sort.unwrap_or_default())
        .of("enabled", before.enabled, after.enabled)
        .of("loged", before.logged, after.logged)
        .of("continued", before.continued, after.continued)
        .of("handle", handle(before), handle(after))
        .of("conditions", in_words(before.conditions()), in_words(after.conditions()))
        .text()
}
