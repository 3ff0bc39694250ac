//! `/rule`: rules.
//!
//! Source: ShenYu 2.7.1 admin, executed. Ours: as for selectors; besides, a rule is in the
//! namespace of its selector, and one that moves to another selector leaves its old one on gateways
//! too.

mod write;

pub(crate) mod request;
pub(crate) mod response;

use longmen_core::model::Rule;
use longmen_db::repository::conditioned::{self, ObjectFilter};
use longmen_db::{Keyword, Page, repository};

use self::request::RuleCondition;
use self::response::RuleResponse;
use crate::api::common::{MISSING_NAMESPACE, MISSING_RULE, granted_to, missing};
use crate::api::search::{SearchPage, SearchRequest};
use crate::context::Context;
use crate::error::ApiResult;
use crate::extract::{Body, FromQuery, JavaType, Path, Query, QueryArgs, Violations};
use crate::page::{CURRENT_PAGE, PAGE_SIZE, PageQuery, Pager};
use crate::permission::Permission::{AnyOf, Authenticated};
use crate::reply::Reply;
use crate::router::Routes;

/// The routes of rules.
#[must_use]
pub(crate) fn routes() -> Routes {
    Routes::new("rule")
        .get("/rule", Authenticated, "Lists rules", list)
        .get("/rule/{id}", Authenticated, "Shows a rule", detail)
        .post("/rule", AnyOf(&["system:plugin:edit"]), "Creates a rule", write::create)
        .put("/rule/{id}", AnyOf(&["system:plugin:edit"]), "Changes a rule", write::update)
        .post(
            "/rule/batchEnabled",
            AnyOf(&["system:plugin:disable"]),
            "Switches rules on or off",
            write::batch_enabled,
        )
        .delete("/rule/batch", AnyOf(&["system:plugin:delete"]), "Deletes rules", write::delete)
        .post("/rule/list/search", Authenticated, "Searches rules", search)
        .post(
            "/rule/list/search/adaptor",
            Authenticated,
            "Searches rules, answered as a list",
            search_adaptor,
        )
}

/// Which rules to list.
struct ListQuery {
    selector_id: Option<String>,
    name: Option<String>,
    namespace_id: Option<String>,
    page: PageQuery,
}

impl FromQuery for ListQuery {
    const PARAMETERS: &'static [(&'static str, JavaType, bool)] = &[
        ("selectorId", JavaType::String, false),
        ("name", JavaType::String, false),
        ("namespaceId", JavaType::String, true),
        CURRENT_PAGE,
        PAGE_SIZE,
    ];

    fn from_query(args: &QueryArgs) -> ApiResult<Self> {
        Ok(Self {
            selector_id: args.filled("selectorId"),
            name: args.filled("name"),
            namespace_id: args.filled("namespaceId"),
            page: PageQuery::required(args)?,
        })
    }
}

async fn list(
    context: Context,
    Query(query): Query<ListQuery>,
) -> ApiResult<Reply<Pager<RuleResponse>>> {
    let mut tx = context.read().await?;
    let mut rules = Violations::new();
    let namespace = query.namespace_id.as_deref().unwrap_or_default();
    let namespace = repository::namespace::find(&mut tx, namespace).await?;
    rules.exists("namespaceId", namespace.is_some(), MISSING_NAMESPACE);
    rules.into_parameter_result("queryRules")?;
    drop(tx);
    let condition = RuleCondition {
        keyword: query.name,
        selectors: query.selector_id.map(|id| vec![id]),
        namespace_id: query.namespace_id,
        switch_status: None,
    };
    let page = find_page(&context, condition, query.page).await?;
    Ok(Reply::new("query success", Pager::with_neighbours(query.page, page.total, page.rows)))
}

async fn search(
    context: Context,
    Body(request): Body<SearchRequest<RuleCondition>>,
) -> ApiResult<Reply<SearchPage<RuleResponse>>> {
    let query = request.page();
    let page = find_page(&context, request.condition.unwrap_or_default(), query).await?;
    Ok(Reply::new("query success", page.into()))
}

async fn search_adaptor(
    context: Context,
    Body(request): Body<SearchRequest<RuleCondition>>,
) -> ApiResult<Reply<Pager<RuleResponse>>> {
    let query = request.page();
    let page = find_page(&context, request.condition.unwrap_or_default(), query).await?;
    Ok(Reply::new("query success", Pager::with_neighbours(query, page.total, page.rows)))
}

async fn find_page(
    context: &Context,
    condition: RuleCondition,
    query: PageQuery,
) -> ApiResult<Page<RuleResponse>> {
    let filter = ObjectFilter {
        namespace_id: condition.namespace_id.filter(|id| !id.is_empty()),
        owner_ids: condition.selectors.unwrap_or_default(),
        keyword: Keyword::parse(condition.keyword.as_deref().unwrap_or_default()),
        enabled: condition.switch_status,
        granted_to: granted_to(context)?,
    };
    let mut tx = context.read().await?;
    let page = conditioned::page::<Rule>(&mut tx, &filter, query.request()).await?;
    Ok(page.map(|row| RuleResponse::listed(&tx, row)))
}

async fn detail(context: Context, Path(id): Path<String>) -> ApiResult<Reply<RuleResponse>> {
    let mut tx = context.read().await?;
    let Some(row) = conditioned::find::<Rule>(&mut tx, &id).await? else {
        return Err(missing("detailRule.id", MISSING_RULE));
    };
    Ok(Reply::new("detail success", RuleResponse::detailed(&mut tx, row).await?))
}
