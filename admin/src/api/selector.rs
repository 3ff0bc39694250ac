//! `/selector`: selectors, as far as they differ from rules; see [`conditioned`].
//!
//! Source: ShenYu 2.7.1 admin, executed. Ours: lists are ordered by sort and id; an edit or a
//! delete with another namespace than the selector's changes nothing at all; what no gateway could
//! use is refused before it is stored.

mod write;

pub(crate) mod request;
pub(crate) mod response;

use longmen_core::model::Selector;
use longmen_core::sync::Group;
use longmen_db::repository::conditioned::Stored;
use longmen_db::{Tx, UnitOfWork};

use self::request::{SelectorCondition, SelectorRequest};
use self::response::SelectorResponse;
use crate::api::common::MISSING_SELECTOR;
use crate::api::conditioned::{self, Object, parts};
use crate::audit::{Differences, Kind};
use crate::context::Context;
use crate::error::ApiResult;
use crate::permission::Permission::{AnyOf, Authenticated};
use crate::router::Routes;

/// The routes of selectors.
#[must_use]
pub(crate) fn routes() -> Routes {
    Routes::new("selector")
        .get("/selector", Authenticated, "Lists selectors", conditioned::list::<Selector>)
        .get("/selector/{id}", Authenticated, "Shows a selector", conditioned::detail::<Selector>)
        .post("/selector", AnyOf(&["system:plugin:edit"]), "Creates a selector", write::create)
        .put(
            "/selector/{id}",
            AnyOf(&["system:plugin:edit"]),
            "Changes a selector",
            conditioned::write::update::<Selector>,
        )
        .post(
            "/selector/batchEnabled",
            AnyOf(&["system:plugin:disable"]),
            "Switches selectors on or off",
            conditioned::write::batch_enabled::<Selector>,
        )
        .delete(
            "/selector/batch",
            AnyOf(&["system:plugin:delete"]),
            "Deletes selectors with all that belongs to them",
            conditioned::write::delete::<Selector>,
        )
        .post(
            "/selector/list/search",
            Authenticated,
            "Searches selectors",
            conditioned::search::<Selector>,
        )
        .post(
            "/selector/list/search/adaptor",
            Authenticated,
            "Searches selectors, answered as a list",
            conditioned::search_adaptor::<Selector>,
        )
}

impl Object for Selector {
    type Request = SelectorRequest;
    type Narrow = SelectorCondition;
    type Response = SelectorResponse;

    const GROUP: Group = Group::Selector;
    const KIND: Kind = Kind::Selector;
    const MANY: &'static str = "selectors";
    const OWNER: &'static str = "pluginId";
    const LIST_IN_NAMESPACE: Option<&'static str> = None;
    const PLACES: (&'static str, &'static str) = ("detailSelector.id", "updateSelector.id");
    const MISSING: &'static str = MISSING_SELECTOR;

    parts!();

    fn listed(tx: &Tx, row: Stored<Self>) -> SelectorResponse {
        SelectorResponse::listed(tx, row)
    }

    async fn detailed(tx: &mut Tx, row: Stored<Self>) -> ApiResult<SelectorResponse> {
        SelectorResponse::detailed(tx, row).await
    }

    async fn change(context: &Context, id: &str, request: &SelectorRequest) -> ApiResult<u64> {
        write::change(context, id, request).await
    }

    async fn remove(
        uow: &mut UnitOfWork,
        asked: &[String],
        ids: &[&str],
        namespace: &str,
    ) -> ApiResult<Vec<Self>> {
        write::remove(uow, asked, ids, namespace).await
    }

    fn own_differences(before: &Self, after: &Self, told: Differences) -> Differences {
        told.of("type", before.selector_type, after.selector_type).of(
            "continued",
            before.continued,
            after.continued,
        )
    }
}
