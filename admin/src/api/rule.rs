//! `/rule`: rules, as far as they differ from selectors; see [`conditioned`].
//!
//! Source: ShenYu 2.7.1 admin, executed. Ours: as for selectors; besides, a rule is in the
//! namespace of its selector, and one that moves to another selector leaves its old one on gateways
//! too.

mod write;

pub(crate) mod request;
pub(crate) mod response;

use longmen_core::model::Rule;
use longmen_core::sync::Group;
use longmen_db::repository::conditioned::Stored;
use longmen_db::{Tx, UnitOfWork};

use self::request::{RuleCondition, RuleRequest};
use self::response::RuleResponse;
use crate::api::common::MISSING_RULE;
use crate::api::conditioned::{self, Object, parts};
use crate::audit::{Differences, Kind};
use crate::context::Context;
use crate::error::ApiResult;
use crate::permission::Permission::{AnyOf, Authenticated};
use crate::router::Routes;

/// The routes of rules.
#[must_use]
pub(crate) fn routes() -> Routes {
    Routes::new("rule")
        .get("/rule", Authenticated, "Lists rules", conditioned::list::<Rule>)
        .get("/rule/{id}", Authenticated, "Shows a rule", conditioned::detail::<Rule>)
        .post("/rule", AnyOf(&["system:plugin:edit"]), "Creates a rule", write::create)
        .put(
            "/rule/{id}",
            AnyOf(&["system:plugin:edit"]),
            "Changes a rule",
            conditioned::write::update::<Rule>,
        )
        .post(
            "/rule/batchEnabled",
            AnyOf(&["system:plugin:disable"]),
            "Switches rules on or off",
            conditioned::write::batch_enabled::<Rule>,
        )
        .delete(
            "/rule/batch",
            AnyOf(&["system:plugin:delete"]),
            "Deletes rules",
            conditioned::write::delete::<Rule>,
        )
        .post("/rule/list/search", Authenticated, "Searches rules", conditioned::search::<Rule>)
        .post(
            "/rule/list/search/adaptor",
            Authenticated,
            "Searches rules, answered as a list",
            conditioned::search_adaptor::<Rule>,
        )
}

impl Object for Rule {
    type Request = RuleRequest;
    type Narrow = RuleCondition;
    type Response = RuleResponse;

    const GROUP: Group = Group::Rule;
    const KIND: Kind = Kind::Rule;
    const MANY: &'static str = "rules";
    const OWNER: &'static str = "selectorId";
    const LIST_IN_NAMESPACE: Option<&'static str> = Some("queryRules");
    const PLACES: (&'static str, &'static str) = ("detailRule.id", "updateRule.id");
    const MISSING: &'static str = MISSING_RULE;

    parts!();

    fn listed(tx: &Tx, row: Stored<Self>) -> RuleResponse {
        RuleResponse::listed(tx, row)
    }

    async fn detailed(tx: &mut Tx, row: Stored<Self>) -> ApiResult<RuleResponse> {
        RuleResponse::detailed(tx, row).await
    }

    async fn change(context: &Context, id: &str, request: &RuleRequest) -> ApiResult<u64> {
        write::change(context, id, request).await
    }

    async fn remove(
        uow: &mut UnitOfWork,
        _asked: &[String],
        ids: &[&str],
        _namespace: &str,
    ) -> ApiResult<Vec<Self>> {
        write::remove(uow, ids).await
    }

    fn own_differences(before: &Self, after: &Self, told: Differences) -> Differences {
        told.of("selectorId", &*before.selector_id, &*after.selector_id)
    }
}
