//! Instances that say good-bye.

use longmen_core::model::{Selector, Upstream, UpstreamList};
use longmen_db::repository::binding::{self, Bound};
use longmen_db::repository::conditioned;
use longmen_db::repository::upstream::{self, Origin, UpstreamRow};
use longmen_db::{Binding, UnitOfWork};

use super::mirror;
use super::request::UriRegister;
use super::target::Target;
use super::uri::{DOWN, UP};
use crate::context::Context;
use crate::error::ApiResult;

/// Takes an instance out: its own row goes, one that a person configured stays, as down.
///
/// # Errors
/// What is left out, as a refusal; failures of the store.
pub(super) async fn take_out(context: &Context, request: &UriRegister) -> ApiResult<()> {
    let (_, instance) = request.instance()?;
    context.state().registration().departed(instance.clone());
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

/// A selector and its list, both held.
pub(crate) struct Held {
    selector: Selector,
    handler_id: String,
    before: Binding,
}

impl Held {
    /// Holds them; none if either is gone.
    ///
    /// # Errors
    /// Failures of the store.
    pub(crate) async fn of(
        uow: &mut UnitOfWork,
        selector_id: &str,
        handler_id: &str,
    ) -> ApiResult<Option<Self>> {
        let selector = conditioned::find_for_update::<Selector>(uow, selector_id).await?;
        let before = binding::load_for_update(uow, handler_id).await?;
        Ok(selector.zip(before).map(|(selector, before)| Self {
            selector: selector.object,
            handler_id: handler_id.to_owned(),
            before,
        }))
    }

    /// Takes upstreams out: those that registered themselves go, those that a person configured stay,
    /// as down.
    ///
    /// # Errors
    /// Failures of the store.
    pub(crate) async fn take_out(
        self,
        uow: &mut UnitOfWork,
        rows: &[UpstreamRow],
    ) -> ApiResult<()> {
        let mut gone = Vec::new();
        for row in rows {
            match row.origin {
                Origin::Registered => gone.push(row.id.as_str()),
                Origin::Configured if row.upstream_status == UP => {
                    upstream::set_state(uow, &row.id, DOWN, Origin::Away).await?;
                }
                Origin::Configured | Origin::Away => {}
            }
        }
        upstream::delete(uow, &gone).await?;
        self.told(uow, &gone).await
    }

    /// Notes for gateways how the list is now; `gone` are the ids of the rows that went.
    ///
    /// # Errors
    /// Failures of the store.
    pub(crate) async fn told(self, uow: &mut UnitOfWork, gone: &[&str]) -> ApiResult<()> {
        let before = self.before.upstreams;
        let Some(after) = binding::load(uow, &self.handler_id).await? else { return Ok(()) };
        if after.upstreams == before {
            return Ok(());
        }
        // Stock gateways merge lists, and take an address out only when they are told that it is
        // down, or when nothing is left.
        if !gone.is_empty() && !after.upstreams.upstreams().is_empty() {
            let down = Binding { upstreams: marked(&before, gone), ..after.clone() };
            down.record_upstreams(uow, &before);
            after.record_upstreams(uow, &down.upstreams);
        } else {
            after.record_upstreams(uow, &before);
        }
        mirror::follow(uow, &self.selector, &after.upstreams).await
    }
}

/// The list with those that go as down.
fn marked(list: &UpstreamList, gone: &[&str]) -> UpstreamList {
    let one = |upstream: &Upstream| {
        let goes = upstream.id.as_deref().is_some_and(|id| gone.contains(&id));
        Upstream { status: if goes { DOWN } else { upstream.status }, ..upstream.clone() }
    };
    let marked = list.upstreams().iter().map(one).collect();
    UpstreamList { upstream_data_list: Some(marked), ..list.clone() }
}
