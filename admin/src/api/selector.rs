//! `/selector`: selectors.
//!
//! Source: ShenYu 2.7.1 admin, executed. Ours: lists are ordered by sort and id; an edit or a
//! delete with another namespace than the selector's changes nothing at all; what no gateway could
//! use is refused before it is stored.

mod write;

pub(crate) mod request;
pub(crate) mod response;

use longmen_core::model::Selector;
use longmen_db::repository::conditioned::{self, ObjectFilter};
use longmen_db::{Keyword, Page};

use self::request::SelectorCondition;
use self::response::SelectorResponse;
use crate::api::common::{MISSING_SELECTOR, granted_to, missing};
use crate::api::search::{SearchPage, SearchRequest};
use crate::context::Context;
use crate::error::ApiResult;
use crate::extract::{Body, FromQuery, JavaType, Path, Query, QueryArgs};
use crate::page::{CURRENT_PAGE, PAGE_SIZE, PageQuery, Pager};
use crate::permission::Permission::{AnyOf, Authenticated};
use crate::reply::Reply;
use crate::router::Routes;

/// The routes of selectors.
#[must_use]
pub(crate) fn routes() -> Routes {
    Routes::new("selector")
        .get("/selector", Authenticated, "Lists selectors", list)
        .get("/selector/{id}", Authenticated, "Shows a selector", detail)
        .post("/selector", AnyOf(&["system:plugin:edit"]), "Creates a selector", write::create)
        .put("/selector/{id}", AnyOf(&["system:plugin:edit"]), "Changes a selector", write::update)
        .post(
            "/selector/batchEnabled",
            AnyOf(&["system:plugin:disable"]),
            "Switches selectors on or off",
            write::batch_enabled,
        )
        .delete(
            "/selector/batch",
            AnyOf(&["system:plugin:delete"]),
            "Deletes selectors with all that belongs to them",
            write::delete,
        )
        .post("/selector/list/search", Authenticated, "Searches selectors", search)
        .post(
            "/selector/list/search/adaptor",
            Authenticated,
            "Searches selectors, answered as a list",
            search_adaptor,
        )
}

/// Which selectors to list.
struct ListQuery {
    plugin_id: Option<String>,
    name: Option<String>,
    namespace_id: Option<String>,
    page: PageQuery,
}

impl FromQuery for ListQuery {
    const PARAMETERS: &'static [(&'static str, JavaType, bool)] = &[
        ("pluginId", JavaType::String, false),
        ("name", JavaType::String, false),
        ("namespaceId", JavaType::String, false),
        CURRENT_PAGE,
        PAGE_SIZE,
    ];

    fn from_query(args: &QueryArgs) -> ApiResult<Self> {
        Ok(Self {
            plugin_id: args.filled("pluginId"),
            name: args.filled("name"),
            namespace_id: args.filled("namespaceId"),
            page: PageQuery::required(args)?,
        })
    }
}

async fn list(
    context: Context,
    Query(query): Query<ListQuery>,
) -> ApiResult<Reply<Pager<SelectorResponse>>> {
    let condition = SelectorCondition {
        keyword: query.name,
        plugin: query.plugin_id.map(|id| vec![id]),
        namespace_id: query.namespace_id,
        switch_status: None,
    };
    let page = find_page(&context, condition, query.page).await?;
    Ok(Reply::new("query success", Pager::with_neighbours(query.page, page.total, page.rows)))
}

async fn search(
    context: Context,
    Body(request): Body<SearchRequest<SelectorCondition>>,
) -> ApiResult<Reply<SearchPage<SelectorResponse>>> {
    let query = request.page();
    let page = find_page(&context, request.condition.unwrap_or_default(), query).await?;
    Ok(Reply::new("query success", page.into()))
}

async fn search_adaptor(
    context: Context,
    Body(request): Body<SearchRequest<SelectorCondition>>,
) -> ApiResult<Reply<Pager<SelectorResponse>>> {
    let query = request.page();
    let page = find_page(&context, request.condition.unwrap_or_default(), query).await?;
    Ok(Reply::new("query success", Pager::with_neighbours(query, page.total, page.rows)))
}

async fn find_page(
    context: &Context,
    condition: SelectorCondition,
    query: PageQuery,
) -> ApiResult<Page<SelectorResponse>> {
    let filter = ObjectFilter {
        namespace_id: condition.namespace_id.filter(|id| !id.is_empty()),
        owner_ids: condition.plugin.unwrap_or_default(),
        keyword: Keyword::parse(condition.keyword.as_deref().unwrap_or_default()),
        enabled: condition.switch_status,
        granted_to: granted_to(context)?,
    };
    let mut tx = context.read().await?;
    let page = conditioned::page::<Selector>(&mut tx, &filter, query.request()).await?;
    Ok(page.map(|row| SelectorResponse::listed(&tx, row)))
}

async fn detail(context: Context, Path(id): Path<String>) -> ApiResult<Reply<SelectorResponse>> {
    let mut tx = context.read().await?;
    let Some(row) = conditioned::find::<Selector>(&mut tx, &id).await? else {
        return Err(missing("detailSelector.id", MISSING_SELECTOR));
    };
    Ok(Reply::new("detail success", SelectorResponse::detailed(&mut tx, row).await?))
}
