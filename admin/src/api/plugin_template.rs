//! The catalogue of plugins.

mod menu;
mod request;
mod write;

use http::Method;
use longmen_db::{
    Like, Tx,
    repository::plugin::{self, ActiveRow, PluginFilter, PluginRow},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::plugin_handle::PluginHandleResponse;
use crate::{
    context::Context,
    error::ApiResult,
    extract::{FromQuery, JavaType, Path, Query, QueryArgs, Violations},
    page::{CURRENT_PAGE, PAGE_SIZE, PageQuery, Pager},
    permission::Permission::{AnyOf, Authenticated},
    reply::Reply,
    router::Routes,
};

pub(super) fn routes() -> Routes {
    const EDIT: &[&str] = &["system:plugin:edit"];
    const DELETE: &[&str] = &["system:plugin:delete"];
    const MENU: &[&str] = &["system:plugin:resource"];
    const SWITCH: &[&str] = &["system:plugin:disable"];
    Routes::new("plugin-template")
        .get("/plugin-template", Authenticated, "Searches the catalogue", page)
        .get("/plugin-template/all", Authenticated, "Lists the catalogue", all)
        .get("/plugin-template/snapshot/active", Authenticated, "What is switched on", active)
        .get("/plugin-template/{id}", AnyOf(EDIT), "Shows a plugin of the catalogue", detail)
        .route(
            Method::POST,
            "/plugin-template",
            AnyOf(&["system:plugin:add"]),
            "Adds a plugin to the catalogue",
            Some(request::MAX_BODY_BYTES),
            write::create,
        )
        .route(
            Method::PUT,
            "/plugin-template/{id}",
            AnyOf(EDIT),
            "Changes a plugin of the catalogue; namespaces keep their settings",
            Some(request::MAX_BODY_BYTES),
            write::update,
        )
        .put(
            "/plugin-template/createPluginResource/{id}",
            AnyOf(MENU),
            "Makes the menu of a plugin",
            write::create_menu,
        )
        .delete(
            "/plugin-template/batch",
            AnyOf(DELETE),
            "Deletes plugins that no namespace has",
            write::delete,
        )
        .post(
            "/plugin-template/enabled",
            AnyOf(SWITCH),
            "Switches what a new link starts with",
            write::enabled,
        )
}

/// A plugin of the catalogue.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PluginResponse {
    id: String,
    role: String,
    name: String,
    /// Settings that a namespace starts with, JSON text.
    config: Option<String>,
    sort: Option<i32>,
    enabled: bool,
    date_created: String,
    date_updated: String,
    /// Base64 of an uploaded jar, or empty.
    file: String,
    plugin_handle_list: Vec<PluginHandleResponse>,
}

impl PluginResponse {
    fn new(row: PluginRow, tx: &Tx) -> Self {
        Self {
            date_created: tx.date_text(row.created_ms),
            date_updated: tx.date_text(row.updated_ms),
            id: row.id,
            role: row.role,
            name: row.name,
            config: row.config,
            sort: row.sort,
            enabled: row.enabled,
            file: row.plugin_jar.unwrap_or_default(),
            plugin_handle_list: Vec::new(),
        }
    }
}

/// A plugin as gateways know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PluginDataResponse {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) enabled: bool,
    pub(super) sort: Option<i32>,
    pub(super) namespace_id: Option<String>,
    pub(super) config: Option<String>,
    pub(super) role: String,
    /// Base64 of an uploaded jar, or empty.
    pub(super) plugin_jar: String,
}

impl From<PluginRow> for PluginDataResponse {
    fn from(row: PluginRow) -> Self {
        Self {
            id: row.id,
            name: row.name,
            enabled: row.enabled,
            sort: row.sort,
            namespace_id: None,
            config: row.config,
            role: row.role,
            plugin_jar: row.plugin_jar.unwrap_or_default(),
        }
    }
}

/// A plugin that is switched on, with what it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ActiveResponse {
    id: String,
    name: String,
    config: Option<String>,
    role: String,
    /// Its form fields.
    handle_count: i64,
    /// Its selectors.
    selector_count: i64,
}

impl From<ActiveRow> for ActiveResponse {
    fn from(row: ActiveRow) -> Self {
        let ActiveRow { id, name, config, role, handle_count, selector_count } = row;
        Self { id, name, config, role, handle_count, selector_count }
    }
}

struct PluginQuery {
    name: Option<String>,
    enabled: Option<i32>,
    role: Option<String>,
    page: PageQuery,
}

impl FromQuery for PluginQuery {
    const PARAMETERS: &'static [(&'static str, JavaType, bool)] = &[
        ("name", JavaType::String, false),
        ("enabled", JavaType::Integer, false),
        ("role", JavaType::String, false),
        CURRENT_PAGE,
        PAGE_SIZE,
    ];

    fn from_query(args: &QueryArgs) -> ApiResult<Self> {
        Ok(Self {
            name: args.filled("name"),
            enabled: args.integer("enabled")?,
            role: args.filled("role"),
            page: PageQuery::read(args)?,
        })
    }
}

async fn page(
    context: Context,
    Query(query): Query<PluginQuery>,
) -> ApiResult<Reply<Pager<PluginResponse>>> {
    let mut rules = Violations::new();
    query.page.check(&mut rules);
    rules.into_joined_result("queryPlugins", "| ")?;
    let filter = PluginFilter {
        name: query.name.as_deref().and_then(Like::contains),
        enabled: query.enabled.map(|enabled| enabled != 0),
        role: query.role.as_deref().and_then(Like::contains),
        keyword: None,
    };
    let mut tx = context.read().await?;
    let page = plugin::page(&mut tx, &filter, query.page.request()).await?;
    let rows = page.rows.into_iter().map(|row| PluginResponse::new(row, &tx)).collect();
    Ok(Reply::new("query success", Pager::plain(query.page, page.total, rows)))
}

async fn all(context: Context, (): ()) -> ApiResult<Reply<Vec<PluginDataResponse>>> {
    let rows = plugin::all(&mut *context.read().await?).await?;
    Ok(Reply::new("query success", rows.into_iter().map(PluginDataResponse::from).collect()))
}

async fn detail(context: Context, Path(id): Path<String>) -> ApiResult<Reply<PluginResponse>> {
    let mut tx = context.read().await?;
    let found = plugin::find(&mut tx, &id).await?;
    let mut rules = Violations::new();
    rules.exists("id", found.is_some(), "plugin is not existed");
    rules.into_parameter_result("detailPlugin")?;
    Ok(Reply::maybe("detail success", found.map(|row| PluginResponse::new(row, &tx))))
}

async fn active(context: Context, (): ()) -> ApiResult<Reply<Vec<ActiveResponse>>> {
    let rows = plugin::active(&mut *context.read().await?).await?;
    Ok(Reply::data(rows.into_iter().map(ActiveResponse::from).collect()))
}
