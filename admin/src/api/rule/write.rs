//! Creating, changing, switching and deleting rules.

use longmen_core::model::{Level, Rule, Selector};
use longmen_core::sync::{Event, Group};
use longmen_db::repository::{conditioned, data_permission, rule};
use longmen_db::{Change, Operation, Tx};

use super::request::{RuleDraft, RuleRequest};
use crate::api::common::{
    BatchDelete, MISSING_RULE, MISSING_SELECTOR, absent, distinct, filled, missing,
};
use crate::api::condition::{check_usable, in_words};
use crate::api::handle::validate_handle;
use crate::audit::{self, Differences, Kind};
use crate::context::Context;
use crate::error::{ApiError, ApiResult};
use crate::extract::{BatchEnabled, Body, Path};
use crate::reply::{NoData, Reply};

/// Stores a new rule, or changes the one that the body names. Answers how many were written.
pub(super) async fn create(
    context: Context,
    Body(request): Body<RuleRequest>,
) -> ApiResult<Reply<u64>> {
    if let Some(id) = request.id() {
        return Ok(Reply::new("create success", change(&context, id, &request).await?));
    }
    let draft = checked(&context, &request)?;
    let mut uow = context.begin().await?;
    let owner = owner(&mut uow, &context, &draft).await?;
    let id = uow.next_id()?;
    let stored = draft.to_rule(&id, &owner.plugin_name);
    rule::insert(&mut uow, &stored, &draft.new_conditions(&[])).await?;
    let (user, namespace) = (&context.caller()?.user_id, &draft.namespace_id);
    data_permission::grant_created(&mut uow, user, namespace, Level::Rule, &id).await?;
    uow.record(changed(&stored, Operation::Create).after(&stored));
    audit::created(&mut uow, Kind::Rule, &draft.name).await?;
    uow.commit().await?;
    Ok(Reply::new("create success", 1))
}

/// Changes a rule. Answers how many there were: 0 when it is in another namespace.
pub(super) async fn update(
    context: Context,
    (Path(id), Body(request)): (Path<String>, Body<RuleRequest>),
) -> ApiResult<Reply<u64>> {
    let mut tx = context.read().await?;
    if conditioned::find::<Rule>(&mut tx, &id).await?.is_none() {
        return Err(missing("updateRule.id", MISSING_RULE));
    }
    drop(tx);
    Ok(Reply::new("update success", change(&context, &id, &request).await?))
}

/// Switches rules on or off.
pub(super) async fn batch_enabled(
    context: Context,
    Body(request): Body<BatchEnabled>,
) -> ApiResult<Reply<NoData>> {
    let ids = distinct(request.ids.unwrap_or_default());
    let enabled = request.enabled.unwrap_or_default();
    let namespace = filled(request.namespace_id.as_deref());
    let mut uow = context.begin().await?;
    let rows = conditioned::find_many_for_update::<Rule>(&mut uow, &ids).await?;
    let found = rows.iter().map(|row| &row.object);
    let found: Vec<&Rule> = found.filter(|found| in_namespace(found, namespace)).collect();
    absent(&ids, |id| found.iter().any(|found| found.id == id), "rules")?;
    conditioned::set_enabled::<Rule>(&mut uow, &ids, enabled).await?;
    // In the order of the request, as the reference pushes them.
    for before in ids.iter().filter_map(|id| found.iter().find(|found| found.id == *id)) {
        let after = Rule { enabled, ..(*before).clone() };
        uow.record(changed(&after, Operation::Update).before(*before).after(&after));
        let what = differences(before, &after);
        audit::updated(&mut uow, Kind::Rule, name(before), &what).await?;
    }
    uow.commit().await?;
    Ok(Reply::text("enable success"))
}

/// Deletes rules with the grants on them. Answers how many there were.
pub(super) async fn delete(
    context: Context,
    Body(request): Body<BatchDelete>,
) -> ApiResult<Reply<usize>> {
    let namespace = request.namespace_id.as_deref();
    let mut uow = context.begin().await?;
    let rows = conditioned::find_many_for_update::<Rule>(&mut uow, &request.ids()).await?;
    let found = rows.iter().map(|row| &row.object);
    let ids: Vec<&str> = found
        .filter(|found| in_namespace(found, namespace))
        .map(|found| found.id.as_str())
        .collect();
    let removed = rule::delete(&mut uow, &ids).await?;
    for gone in &removed {
        uow.record(event(gone, Operation::Delete, Event::Delete).before(gone));
    }
    let names: Vec<&str> = removed.iter().map(name).collect();
    audit::deleted(&mut uow, Kind::Rule, &names).await?;
    uow.commit().await?;
    Ok(Reply::new("delete success", removed.len()))
}

/// Checks what needs no look into the store.
fn checked(context: &Context, request: &RuleRequest) -> ApiResult<RuleDraft> {
    let draft = request.draft().map_err(ApiError::refused)?;
    check_usable(context.state(), request.rule_conditions.as_deref().unwrap_or_default())?;
    Ok(draft)
}

/// The selector of a rule to be stored, after the checks that depend on it.
async fn owner(tx: &mut Tx, context: &Context, draft: &RuleDraft) -> ApiResult<Selector> {
    let found = conditioned::find::<Selector>(tx, &draft.selector_id).await?;
    // Seen by the field rules just before: only a deletion in between leads to its absence.
    let owner = found.ok_or_else(|| missing("selectorId", MISSING_SELECTOR))?.object;
    let namespace = owner.namespace_id.as_deref().unwrap_or_default();
    if namespace != draft.namespace_id {
        return Err(ApiError::refused(format!(
            "namespaceId: {} is not the namespace of the selector {}, expected {namespace}",
            draft.namespace_id, owner.id,
        )));
    }
    let handle = draft.handle.as_deref();
    validate_handle(context.state(), &owner.plugin_name, Level::Rule, handle)?;
    Ok(owner)
}

/// Replaces a rule and its conditions. Out: 0, and nothing is changed, when it is in another
/// namespace than the request says.
async fn change(context: &Context, id: &str, request: &RuleRequest) -> ApiResult<u64> {
    let draft = checked(context, request)?;
    let mut uow = context.begin().await?;
    let Some(seen) = conditioned::find::<Rule>(&mut uow, id).await? else { return Ok(0) };
    // Selectors before rules, the order in which a delete of a selector takes them.
    let selectors = [seen.object.selector_id.as_str(), draft.selector_id.as_str()];
    conditioned::find_many_for_update::<Selector>(&mut uow, &selectors).await?;
    let Some(before) = conditioned::find_for_update::<Rule>(&mut uow, id).await? else {
        return Ok(0);
    };
    let before = before.object;
    if !in_namespace(&before, Some(&draft.namespace_id)) {
        return Ok(0);
    }
    let owner = owner(&mut uow, context, &draft).await?;
    if owner.plugin_name != before.plugin_name {
        return Err(ApiError::refused(format!(
            "selectorId: {} is a selector of {}, expected one of {}",
            owner.id, owner.plugin_name, before.plugin_name,
        )));
    }
    let own = conditioned::conditions::<Rule>(&mut uow, id).await?;
    let own: Vec<String> = own.into_iter().map(|row| row.id).collect();
    let after = draft.to_rule(id, &owner.plugin_name);
    let touched = rule::update(&mut uow, &after, &draft.new_conditions(&own)).await?;
    if before.selector_id == after.selector_id {
        uow.record(changed(&after, Operation::Update).before(&before).after(&after));
    } else {
        // Gateways know a rule by its selector: it leaves the old one and appears in the new one.
        uow.record(event(&before, Operation::Delete, Event::Delete).before(&before));
        uow.record(changed(&after, Operation::Create).after(&after));
    }
    let what = differences(&before, &after);
    audit::updated(&mut uow, Kind::Rule, &draft.name, &what).await?;
    uow.commit().await?;
    Ok(touched)
}

fn in_namespace(rule: &Rule, namespace: Option<&str>) -> bool {
    namespace.is_none_or(|wanted| rule.namespace_id.as_deref() == Some(wanted))
}

/// The entry of the change log, without the objects: stock gateways get every write as an update.
fn changed(rule: &Rule, operation: Operation) -> Change {
    event(rule, operation, Event::Update)
}

fn event(rule: &Rule, operation: Operation, event: Event) -> Change {
    let namespace = rule.namespace_id.clone().unwrap_or_default();
    Change::new(namespace, Group::Rule, &*rule.id, operation).stock_event(event)
}

fn name(rule: &Rule) -> &str {
    rule.name.as_deref().unwrap_or_default()
}

/// What the operation log says of an edit.
fn differences(before: &Rule, after: &Rule) -> String {
    let handle = |rule: &Rule| rule.handle.clone().unwrap_or_default();
    Differences::default()
        .of("name", name(before), name(after))
        .of("selectorId", &*before.selector_id, &*after.selector_id)
        .of("matchMode", before.match_mode, after.match_mode)
        .of("sort", before.sort.unwrap_or_default(), after.sort.unwrap_or_default())
        .of("enabled", before.enabled, after.enabled)
        .of("loged", before.logged, after.logged)
        .of("handle", handle(before), handle(after))
        .of("conditions", in_words(before.conditions()), in_words(after.conditions()))
        .text()
}
