//! The generic search over plugins of namespaces.

use longmen_db::{
    Keyword, Page, PageRequest, Tx,
    repository::namespace_plugin::{self, NamespacePluginFilter},
};
use serde::Deserialize;
use utoipa::ToSchema;

use super::response::NamespacePluginResponse;
use crate::{
    api::search::{SearchPage, SearchRequest},
    context::Context,
    error::ApiResult,
    extract::{Body, RequestBody, Violations, lenient},
    page::Pager,
    reply::Reply,
    state::AppState,
};

/// Which plugins.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PluginCondition {
    /// Text in the name; what follows a `!` must not be in it.
    #[serde(deserialize_with = "lenient::opt_string")]
    keyword: Option<String>,
    /// Whether they are enabled.
    #[serde(deserialize_with = "lenient::opt_bool")]
    switch_status: Option<bool>,
    /// Their namespace; all when absent.
    #[serde(deserialize_with = "lenient::opt_string")]
    namespace_id: Option<String>,
}

impl RequestBody for SearchRequest<PluginCondition> {
    async fn check(&self, _state: &AppState, rules: &mut Violations) -> ApiResult<()> {
        self.rules(rules);
        Ok(())
    }
}

/// `POST /namespace-plugin/list/search`.
pub(super) async fn with_navigation(
    context: Context,
    Body(request): Body<SearchRequest<PluginCondition>>,
) -> ApiResult<Reply<SearchPage<NamespacePluginResponse>>> {
    let page = request.page().request();
    let mut tx = context.read().await?;
    let found = find(&mut tx, request.condition.unwrap_or_default(), page).await?;
    Ok(Reply::new("query success", found.into()))
}

/// `POST /namespace-plugin/list/search/adaptor`.
pub(super) async fn paged(
    context: Context,
    Body(request): Body<SearchRequest<PluginCondition>>,
) -> ApiResult<Reply<Pager<NamespacePluginResponse>>> {
    let query = request.page();
    let mut tx = context.read().await?;
    let found = find(&mut tx, request.condition.unwrap_or_default(), query.request()).await?;
    Ok(Reply::new("query success", Pager::with_neighbours(query, found.total, found.rows)))
}

async fn find(
    tx: &mut Tx,
    condition: PluginCondition,
    page: PageRequest,
) -> ApiResult<Page<NamespacePluginResponse>> {
    let keyword = Keyword::parse(condition.keyword.as_deref().unwrap_or_default());
    let filter = NamespacePluginFilter {
        namespace_id: condition.namespace_id.filter(|id| !id.is_empty()),
        name: keyword.include,
        not_name: keyword.exclude,
        enabled: condition.switch_status,
    };
    let page = namespace_plugin::page(tx, &filter, page).await?;
    Ok(page.map(|row| NamespacePluginResponse::listed(row, tx)))
}
