//! Plugins of a namespace: which run there, where in the chain, with which settings.

mod request;
mod response;
mod search;
mod sync;
mod write;

use longmen_db::{
    Like, Tx,
    repository::{
        namespace,
        namespace_plugin::{self, NamespacePluginFilter},
        plugin,
    },
};

use self::{
    request::{ActiveQuery, LinkedQuery, PluginsQuery},
    response::NamespacePluginResponse,
};
use super::plugin_template::{ActiveResponse, PluginDataResponse};
use crate::{
    context::Context,
    error::ApiResult,
    extract::{Path, Query, Violations},
    page::Pager,
    permission::Permission::{AnyOf, Authenticated},
    reply::Reply,
    router::Routes,
};

pub(super) fn routes() -> Routes {
    const EDIT: &[&str] = &["system:plugin:edit"];
    const DELETE: &[&str] = &["system:plugin:delete"];
    const SWITCH: &[&str] = &["system:plugin:disable"];
    const SYNC: &[&str] = &["system:plugin:modify"];
    Routes::new("namespace-plugin")
        .get("/namespace-plugin", Authenticated, "Lists the plugins of a namespace", page)
        .get(
            "/namespace-plugin/all/{namespaceId}",
            Authenticated,
            "Lists the plugins of a namespace as gateways know them",
            all,
        )
        .get("/namespace-plugin/snapshot/active", Authenticated, "What is switched on", active)
        .get(
            "/namespace-plugin/listByNamespace",
            Authenticated,
            "Lists the catalogue's entries of what is linked",
            linked,
        )
        .get("/namespace-plugin/{id}", AnyOf(EDIT), "Shows a plugin of a namespace", detail)
        .put("/namespace-plugin/{id}", AnyOf(EDIT), "Changes a plugin's settings", write::update)
        .post(
            "/namespace-plugin/{namespaceId}/{pluginId}",
            AnyOf(EDIT),
            "Links a plugin of the catalogue to a namespace",
            write::link,
        )
        .delete(
            "/namespace-plugin/batch",
            AnyOf(DELETE),
            "Takes plugins out of a namespace, with their selectors and rules",
            write::delete,
        )
        .post(
            "/namespace-plugin/enabled",
            AnyOf(SWITCH),
            "Switches plugins on or off, by the ids of their links",
            write::enabled,
        )
        .post(
            "/namespace-plugin/enabledByNamespace",
            AnyOf(SWITCH),
            "Switches plugins on or off, by the ids of the plugins",
            write::enabled_by_namespace,
        )
        .post(
            "/namespace-plugin/syncPluginAll",
            AnyOf(SYNC),
            "Sends everything of a namespace to its gateways again",
            sync::all,
        )
        .post(
            "/namespace-plugin/list/search",
            Authenticated,
            "Searches the plugins of namespaces",
            search::with_navigation,
        )
        .post(
            "/namespace-plugin/list/search/adaptor",
            Authenticated,
            "Searches the plugins of namespaces, answering as the other lists do",
            search::paged,
        )
        .put(
            "/namespace-plugin/syncPluginData",
            AnyOf(SYNC),
            "Sends one plugin with its selectors and rules to the gateways again",
            sync::one,
        )
}

async fn page(
    context: Context,
    Query(query): Query<PluginsQuery>,
) -> ApiResult<Reply<Pager<NamespacePluginResponse>>> {
    let mut tx = context.read().await?;
    require_namespace(&mut tx, &query.namespace_id, "queryPlugins").await?;
    let filter = NamespacePluginFilter {
        namespace_id: Some(query.namespace_id),
        name: query.name.as_deref().and_then(Like::contains),
        not_name: None,
        enabled: query.enabled.map(|enabled| enabled != 0),
    };
    // The page is not looked at: consoles ask for one that is to hold everything.
    let whole = longmen_db::PageRequest::new(1, longmen_db::MAX_PAGE_SIZE);
    let page = namespace_plugin::page(&mut tx, &filter, whole).await?;
    let rows = page.rows.into_iter().map(|row| NamespacePluginResponse::listed(row, &tx));
    Ok(Reply::new("query success", Pager::whole(query.page, rows.collect())))
}

async fn all(
    context: Context,
    Path(namespace_id): Path<String>,
) -> ApiResult<Reply<Vec<PluginDataResponse>>> {
    let mut tx = context.read().await?;
    require_namespace(&mut tx, &namespace_id, "queryAllNamespacePlugins").await?;
    let rows = namespace_plugin::of_namespace(&mut tx, &namespace_id).await?;
    Ok(Reply::new("query success", rows.into_iter().map(response::data).collect()))
}

async fn detail(
    context: Context,
    Path(id): Path<String>,
) -> ApiResult<Reply<NamespacePluginResponse>> {
    let mut tx = context.read().await?;
    let found = namespace_plugin::find(&mut tx, &id).await?;
    let mut rules = Violations::new();
    rules.exists("id", found.is_some(), "namespace plugin relation is not exist");
    rules.into_parameter_result("detailNamespacePlugin")?;
    let found = found.map(|row| NamespacePluginResponse::shown(row, &tx));
    Ok(Reply::maybe("detail success", found))
}

async fn active(
    context: Context,
    Query(query): Query<ActiveQuery>,
) -> ApiResult<Reply<Vec<ActiveResponse>>> {
    let mut tx = context.read().await?;
    let rows = namespace_plugin::active(&mut tx, &query.namespace_id).await?;
    Ok(Reply::data(rows.into_iter().map(ActiveResponse::from).collect()))
}

async fn linked(
    context: Context,
    Query(query): Query<LinkedQuery>,
) -> ApiResult<Reply<Vec<PluginDataResponse>>> {
    let mut tx = context.read().await?;
    let rows = plugin::of_namespace(&mut tx, &query.namespace).await?;
    Ok(Reply::new("query success", rows.into_iter().map(PluginDataResponse::from).collect()))
}

async fn require_namespace(tx: &mut Tx, namespace_id: &str, method: &str) -> ApiResult<()> {
    let found = namespace::find(tx, namespace_id).await?;
    let mut rules = Violations::new();
    rules.exists("namespaceId", found.is_some(), "namespace is not existed");
    rules.into_parameter_result(method)
}
