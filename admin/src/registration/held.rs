//! A selector and its upstreams, held while instances are taken out or brought back.

use longmen_core::model::{Selector, Upstream, UpstreamList};
use longmen_db::repository::upstream::{self, Origin, UpstreamRow};
use longmen_db::repository::{binding, conditioned};
use longmen_db::{Binding, UnitOfWork};

use super::mirror;
use crate::error::ApiResult;

/// The status of an upstream that is usable.
pub(crate) const UP: i32 = 0;
/// The status of one that is not.
pub(crate) const DOWN: i32 = 1;

/// From whom a row is once its instance is back; none where nothing is to be done: it is up, or a
/// person took it out.
pub(crate) fn revived(row: &UpstreamRow) -> Option<Origin> {
    match row.origin {
        _ if row.upstream_status == UP => None,
        Origin::Configured => None,
        Origin::Registered => Some(Origin::Registered),
        Origin::Away => Some(Origin::Configured),
    }
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
