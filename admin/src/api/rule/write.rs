//! Creating, changing and deleting rules.

use longmen_core::model::{Level, Rule, Selector};
use longmen_core::sync::Event;
use longmen_db::repository::{conditioned, data_permission, rule};
use longmen_db::{Operation, Tx, UnitOfWork};

use super::request::{RuleDraft, RuleRequest};
use crate::api::common::{MISSING_SELECTOR, missing};
use crate::api::condition::check_usable;
use crate::api::conditioned::request::ObjectRequest as _;
use crate::api::conditioned::write::{
    changed, event, in_namespace, own_conditions, record_edit, record_update,
};
use crate::api::handle::validate_handle;
use crate::audit::{self, Kind};
use crate::context::Context;
use crate::error::{ApiError, ApiResult};
use crate::extract::Body;
use crate::reply::Reply;

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
    rule::insert(&mut uow, &stored, &draft.common.new_conditions(&[])).await?;
    let (user, namespace) = (&context.caller()?.user_id, &draft.common.namespace_id);
    data_permission::grant_created(&mut uow, user, namespace, Level::Rule, &id).await?;
    uow.record(changed(&stored, Operation::Create).after(&stored));
    audit::created(&mut uow, Kind::Rule, &draft.common.name).await?;
    uow.commit().await?;
    Ok(Reply::new("create success", 1))
}

/// Deletes rules with the grants on them, and notes it for the gateways.
pub(super) async fn remove(uow: &mut UnitOfWork, ids: &[&str]) -> ApiResult<Vec<Rule>> {
    let removed = rule::delete(uow, ids).await?;
    for gone in &removed {
        uow.record(event(gone, Operation::Delete, Event::Delete).before(gone));
    }
    Ok(removed)
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
    if namespace != draft.common.namespace_id {
        return Err(ApiError::refused(format!(
            "namespaceId: {} is not the namespace of the selector {}, expected {namespace}",
            draft.common.namespace_id, owner.id,
        )));
    }
    let handle = draft.common.handle.as_deref();
    validate_handle(context.state(), &owner.plugin_name, Level::Rule, handle)?;
    Ok(owner)
}

/// Replaces a rule and its conditions. Out: 0, and nothing is changed, when it is in another
/// namespace than the request says.
pub(super) async fn change(context: &Context, id: &str, request: &RuleRequest) -> ApiResult<u64> {
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
    if !in_namespace(&before, Some(&draft.common.namespace_id)) {
        return Ok(0);
    }
    let owner = owner(&mut uow, context, &draft).await?;
    if owner.plugin_name != before.plugin_name {
        return Err(ApiError::refused(format!(
            "selectorId: {} is a selector of {}, expected one of {}",
            owner.id, owner.plugin_name, before.plugin_name,
        )));
    }
    let own = own_conditions::<Rule>(&mut uow, id).await?;
    let after = draft.to_rule(id, &owner.plugin_name);
    let touched = rule::update(&mut uow, &after, &draft.common.new_conditions(&own)).await?;
    if before.selector_id == after.selector_id {
        record_update(&mut uow, &before, &after).await?;
    } else {
        // Gateways know a rule by its selector: it leaves the old one and appears in the new one.
        uow.record(event(&before, Operation::Delete, Event::Delete).before(&before));
        uow.record(changed(&after, Operation::Create).after(&after));
        record_edit(&mut uow, &before, &after).await?;
    }
    uow.commit().await?;
    Ok(touched)
}
