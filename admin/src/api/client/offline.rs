//! Instances that say good-bye.

use longmen_db::Actor;
use longmen_db::repository::binding::{self, Bound};
use longmen_db::repository::instance::say_farewell;
use longmen_db::repository::upstream;

use super::request::UriRegister;
use super::target::Target;
use crate::context::Context;
use crate::error::ApiResult;
use crate::registration::held::Held;

/// Takes an instance out: its own row goes, one that a person configured stays, as down.
///
/// # Errors
/// What is left out, as a refusal; failures of the store.
pub(super) async fn take_out(context: &Context, request: &UriRegister) -> ApiResult<()> {
    let (_, instance) = request.instance()?;
    context.state().registration().departed(instance.clone());
    // For the other admins too, whatever becomes of the rest.
    let mut uow = context.state().store().begin(Actor::system()).await?;
    say_farewell(&mut uow, instance.farewell()).await?;
    uow.commit().await?;
    let client = request.app_name.as_deref().unwrap_or_default();
    let namespace = instance.namespace_id.as_str();
    let (mut target, linked) = Target::hold(context, client, namespace, &[instance.plugin]).await?;
    let Some(plugin) = linked.first() else { return Ok(()) };
    let Some(selector) = target.find_selector(plugin, &instance.selector).await? else {
        return Ok(());
    };
    let bound = binding::find_of(&mut target.uow, Bound::Selector(&selector.id)).await?;
    let Some(bound) = bound else { return Ok(()) };
    if let Some(held) = Held::of(&mut target.uow, &selector.id, &bound.handler.id).await? {
        let row = upstream::find_by_url(&mut target.uow, &bound.handler.id, &instance.url).await?;
        if let Some(row) = row {
            held.take_out(&mut target.uow, &[row]).await?;
        }
    }
    target.commit().await
}
