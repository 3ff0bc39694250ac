//! Form fields of plugins.

mod request;
mod response;

use longmen_db::{
    Change, GLOBAL, Like, Operation, Tx,
    repository::{
        dict, plugin,
        plugin_handle::{self, NewPluginHandle, PluginHandleRow},
    },
};

use self::request::{HandleQuery, HandleRequest};
use crate::{
    audit,
    context::Context,
    error::{ApiError, ApiResult},
    extract::{Body, Ids, JavaType, Path, Query, QueryArgs},
    page::Pager,
    permission::Permission::{AnyOf, Authenticated},
    reply::Reply,
    router::Routes,
};

pub(super) use self::response::PluginHandleResponse;

/// Kind of the change rows; gateways never see them.
const KIND: &str = "PLUGIN_HANDLE";

/// The data type of fields that are chosen from a list.
const CHOICE: i32 = 3;

pub(super) fn routes() -> Routes {
    const LIST: &[&str] = &["system:pluginHandler:list"];
    const ADD: &[&str] = &["system:pluginHandler:add"];
    const EDIT: &[&str] = &["system:pluginHandler:edit"];
    const DELETE: &[&str] = &["system:pluginHandler:delete"];
    Routes::new("plugin-handle")
        .get("/plugin-handle", AnyOf(LIST), "Searches form fields", page)
        .get(
            "/plugin-handle/all/{pluginId}/{type}",
            Authenticated,
            "Lists the form fields of a plugin for selectors (1), rules (2) or itself (3)",
            all,
        )
        .get("/plugin-handle/{id}", AnyOf(EDIT), "Shows a form field", detail)
        .post("/plugin-handle", AnyOf(ADD), "Creates a form field", create)
        .put("/plugin-handle/{id}", AnyOf(EDIT), "Changes a form field", update)
        .delete("/plugin-handle/batch", AnyOf(DELETE), "Deletes form fields", delete)
}

async fn page(
    context: Context,
    Query(query): Query<HandleQuery>,
) -> ApiResult<Reply<Pager<PluginHandleResponse>>> {
    let mut tx = context.read().await?;
    let field = query.field.as_deref().and_then(Like::contains);
    let (plugin_id, request) = (query.plugin_id.as_deref(), query.page.request());
    let page = plugin_handle::page(&mut tx, plugin_id, field.as_ref(), request).await?;
    let rows = with_choices(&mut tx, page.rows).await?;
    Ok(Reply::new("query success", Pager::plain(query.page, page.total, rows)))
}

async fn all(
    context: Context,
    Path((plugin_id, handle_type)): Path<(String, String)>,
) -> ApiResult<Reply<Vec<PluginHandleResponse>>> {
    let handle_type = QueryArgs::of("type", &handle_type)
        .integer("type")?
        .ok_or_else(|| ApiError::wrong_type("type", JavaType::Integer.name()))?;
    let mut tx = context.read().await?;
    let rows = plugin_handle::of_plugin(&mut tx, &plugin_id, handle_type).await?;
    let rows = with_choices(&mut tx, rows).await?;
    Ok(Reply::new("query success", rows))
}

async fn detail(
    context: Context,
    Path(id): Path<String>,
) -> ApiResult<Reply<PluginHandleResponse>> {
    let mut tx = context.read().await?;
    let row = existing(&mut tx, &id, "detailRule").await?;
    let mut rows = with_choices(&mut tx, vec![row]).await?;
    Ok(Reply::maybe("detail success", rows.pop()))
}

async fn create(context: Context, Body(request): Body<HandleRequest>) -> ApiResult<Reply<u64>> {
    let new = request.into_new()?;
    let mut uow = context.begin().await?;
    require_plugin(&mut uow, &new.plugin_id).await?;
    let id = plugin_handle::insert(&mut uow, &new).await?;
    uow.record(
        Change::internal(GLOBAL, KIND, &*id, Operation::Create).after(&response::history(&new)),
    );
    audit::created(&mut uow, audit::Kind::PluginHandle, &new.field).await?;
    uow.commit().await?;
    Ok(Reply::new("create success", 1))
}

async fn update(
    context: Context,
    (Path(id), Body(request)): (Path<String>, Body<HandleRequest>),
) -> ApiResult<Reply<u64>> {
    let new = request.into_new()?;
    let mut uow = context.begin().await?;
    plugin_handle::find_many_for_update(&mut uow, &[&id]).await?;
    let before = existing(&mut uow, &id, "updatePluginHandle").await?;
    require_plugin(&mut uow, &new.plugin_id).await?;
    let count = plugin_handle::update(&mut uow, &id, &new).await?;
    let before = of_row(before);
    uow.record(
        Change::internal(GLOBAL, KIND, &*id, Operation::Update)
            .before(&response::history(&before))
            .after(&response::history(&new)),
    );
    let what = audit::Differences::default()
        .of("label", text(&before.label), text(&new.label))
        .of("dataType", before.data_type, new.data_type)
        .of("type", before.handle_type, new.handle_type)
        .of("sort", before.sort, new.sort)
        .of("extObj", text(&before.ext_obj), text(&new.ext_obj))
        .text();
    audit::updated(&mut uow, audit::Kind::PluginHandle, &new.field, &what).await?;
    uow.commit().await?;
    Ok(Reply::new("update success", count))
}

async fn delete(context: Context, ids: Ids) -> ApiResult<Reply<u64>> {
    let ids = ids.checked("deletePluginHandles")?;
    let mut uow = context.begin().await?;
    let gone = plugin_handle::find_many_for_update(&mut uow, &ids).await?;
    let count = plugin_handle::delete(&mut uow, &ids).await?;
    let mut names = Vec::new();
    for row in gone {
        let id = row.id.clone();
        let before = of_row(row);
        uow.record(
            Change::internal(GLOBAL, KIND, id, Operation::Delete)
                .before(&response::history(&before)),
        );
        names.push(before.field);
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    audit::deleted(&mut uow, audit::Kind::PluginHandle, &names).await?;
    uow.commit().await?;
    Ok(Reply::new("delete success", count))
}

/// Refuses a field of no plugin. The refusal is ours: the reference stores it.
async fn require_plugin(tx: &mut Tx, plugin_id: &str) -> ApiResult<()> {
    if plugin::find(tx, plugin_id).await?.is_some() {
        return Ok(());
    }
    Err(ApiError::refused(format!(
        "pluginId: {plugin_id} is no plugin, expected the id of a plugin of the catalogue"
    )))
}

/// The field of this id, which the rules of the handler `method` demand.
async fn existing(tx: &mut Tx, id: &str, method: &str) -> ApiResult<PluginHandleRow> {
    if let Some(row) = plugin_handle::find(tx, id).await? {
        return Ok(row);
    }
    Err(ApiError::refused(format!("{method}.id: rule not exited")))
}

/// The fields with what they are chosen from. The choices are those of the dictionary list of the
/// field's name; fields of other data types get them too while one of that name is a choice.
async fn with_choices(
    tx: &mut Tx,
    rows: Vec<PluginHandleRow>,
) -> ApiResult<Vec<PluginHandleResponse>> {
    let mut lists: Vec<&str> =
        rows.iter().filter(|row| row.data_type == CHOICE).map(|row| row.field.as_str()).collect();
    lists.sort_unstable();
    lists.dedup();
    let choices = dict::enabled_of_types(tx, &lists).await?;
    let lists: Vec<String> = lists.into_iter().map(str::to_owned).collect();
    Ok(rows
        .into_iter()
        .map(|row| {
            let options = lists.contains(&row.field).then(|| {
                choices.iter().filter(|choice| choice.dict_type == row.field).cloned().collect()
            });
            PluginHandleResponse::new(row, options, tx)
        })
        .collect())
}

fn of_row(row: PluginHandleRow) -> NewPluginHandle {
    let PluginHandleRow { plugin_id, field, label, data_type, handle_type, sort, ext_obj, .. } =
        row;
    NewPluginHandle { plugin_id, field, label, data_type, handle_type, sort, ext_obj }
}

fn text(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or_default()
}
