//! Changing the catalogue. Namespaces keep their settings, and stock gateways hear of nothing; ours
//! are told what their namespaces' plugins get from the catalogue: name, role and jar.

use longmen_core::{model::Plugin, sync::Group};
use longmen_db::{
    Change, GLOBAL, Operation, UnitOfWork,
    repository::{
        namespace_plugin::{self, NamespacePluginRow},
        permission,
        plugin::{self, NewPlugin, PluginRow},
    },
};

use super::{
    PluginDataResponse, menu,
    request::{MenuRequest, PluginForm},
};
use crate::{
    api::handle::validate_config,
    audit,
    context::Context,
    error::{ApiError, ApiResult},
    extract::{BatchEnabled, Body, Form, Ids, Path, Violations},
    reply::{NoData, Reply},
};

/// Kind of the change rows; gateways never see them.
const KIND: &str = "PLUGIN_TEMPLATE";

const TAKEN: &str = "The plugin name already exists and can't be added repeatedly!";
const UNKNOWN: &str = "The plugin(s) does not exist！";
const LINKED: &str = "The plugin that exists under a certain namespace cannot be deleted.";

/// `POST /plugin-template`.
pub(super) async fn create(
    context: Context,
    Form(form): Form<PluginForm>,
) -> ApiResult<Reply<NoData>> {
    let new = form.into_new()?;
    validate_config(context.state(), &new.name, new.config.as_deref())?;
    let mut uow = context.begin().await?;
    if plugin::find_by_name(&mut uow, &new.name).await?.is_some() {
        // The name of the operation stands glued in front, as clients know it.
        return Err(ApiError::refused(format!("create{TAKEN}{}", new.name)));
    }
    let row = plugin::insert(&mut uow, &new).await?;
    menu::create(&mut uow, &new.name).await?;
    uow.record(Change::internal(GLOBAL, KIND, &*row.id, Operation::Create).after(&logged(row)));
    audit::created(&mut uow, audit::Kind::Plugin, &new.name).await?;
    uow.commit().await?;
    Ok(Reply::text("create success"))
}

/// `PUT /plugin-template/{id}`.
pub(super) async fn update(
    context: Context,
    (Path(id), Form(form)): (Path<String>, Form<PluginForm>),
) -> ApiResult<Reply<NoData>> {
    let new = form.into_new()?;
    validate_config(context.state(), &new.name, new.config.as_deref())?;
    let mut uow = context.begin().await?;
    let before = existing(&mut uow, &id, "updatePlugin").await?;
    let links = namespace_plugin::of_plugin_for_update(&mut uow, &id).await?;
    if before.name != new.name && plugin::find_by_name(&mut uow, &new.name).await?.is_some() {
        return Err(ApiError::refused(format!("{TAKEN}{}", new.name)));
    }
    plugin::update(&mut uow, &id, &new).await?;
    let what = audit::Differences::default()
        .of("name", before.name.as_str(), new.name.as_str())
        .of("config", text(&before.config), text(&new.config))
        .of("role", before.role.as_str(), new.role.as_str())
        .of("sort", before.sort.unwrap_or_default(), new.sort)
        .of("enabled", before.enabled, new.enabled)
        .text();
    audit::updated(&mut uow, audit::Kind::Plugin, &new.name, &what).await?;
    let after = changed(before.clone(), new);
    for link in links {
        record_in_namespace(&mut uow, link, &after);
    }
    uow.record(
        Change::internal(GLOBAL, KIND, &*id, Operation::Update)
            .before(&logged(before))
            .after(&logged(after)),
    );
    uow.commit().await?;
    Ok(Reply::text("update success"))
}

/// `PUT /plugin-template/createPluginResource/{id}`.
pub(super) async fn create_menu(
    context: Context,
    (Path(id), Body(request)): (Path<String>, Body<MenuRequest>),
) -> ApiResult<Reply<NoData>> {
    let name = request.name.unwrap_or_default();
    let mut uow = context.begin().await?;
    existing(&mut uow, &id, "createPluginResource").await?;
    menu::create(&mut uow, &name).await?;
    uow.record(Change::internal(GLOBAL, "RESOURCE", &*name, Operation::Create));
    audit::created(&mut uow, audit::Kind::Resource, &name).await?;
    uow.commit().await?;
    Ok(Reply::text("create success"))
}

/// `DELETE /plugin-template/batch`.
pub(super) async fn delete(context: Context, ids: Ids) -> ApiResult<Reply<NoData>> {
    let ids = ids.checked("deletePlugins")?;
    let mut uow = context.begin().await?;
    let rows = plugin::find_many_for_update(&mut uow, &ids).await?;
    if rows.is_empty() {
        return Err(ApiError::refused(UNKNOWN));
    }
    for row in &rows {
        if namespace_plugin::links_of_plugin(&mut uow, &row.id).await? > 0 {
            return Err(ApiError::refused(LINKED));
        }
    }
    plugin::delete(&mut uow, &ids).await.map_err(|error| match error {
        // Linked meanwhile, or left with selectors.
        longmen_db::Error::Reference { .. } => ApiError::refused(LINKED),
        error => error.into(),
    })?;
    let names: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
    permission::delete_menus(&mut uow, &names).await?;
    for row in rows {
        let id = row.id.clone();
        let before = logged(row);
        uow.record(Change::internal(GLOBAL, KIND, id, Operation::Delete).before(&before));
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    audit::deleted(&mut uow, audit::Kind::Plugin, &names).await?;
    uow.commit().await?;
    Ok(Reply::text("delete success"))
}

/// `POST /plugin-template/enabled`.
pub(super) async fn enabled(
    context: Context,
    Body(request): Body<BatchEnabled>,
) -> ApiResult<Reply<NoData>> {
    let ids = request.ids.unwrap_or_default();
    let enabled = request.enabled.unwrap_or_default();
    let mut uow = context.begin().await?;
    let rows = plugin::find_many_for_update(&mut uow, &ids).await?;
    if rows.is_empty() {
        return Err(ApiError::refused(UNKNOWN));
    }
    plugin::set_enabled(&mut uow, &ids, enabled).await?;
    for before in rows {
        let what = audit::Differences::default().of("enabled", before.enabled, enabled).text();
        audit::updated(&mut uow, audit::Kind::Plugin, &before.name, &what).await?;
        let after = PluginRow { enabled, ..before.clone() };
        uow.record(
            Change::internal(GLOBAL, KIND, &*before.id, Operation::Update)
                .before(&logged(before))
                .after(&logged(after)),
        );
    }
    uow.commit().await?;
    Ok(Reply::text("enable success"))
}

/// Tells our gateways of one namespace what is now different there, so that at one version they all
/// know the same, whether they were told of the change or got everything anew.
fn record_in_namespace(uow: &mut UnitOfWork, before: NamespacePluginRow, template: &PluginRow) {
    let after = NamespacePluginRow {
        name: template.name.clone(),
        role: template.role.clone(),
        plugin_jar: template.plugin_jar.clone(),
        ..before.clone()
    };
    if after == before {
        return;
    }
    let operation = if after.name == before.name { Operation::Update } else { Operation::Refresh };
    let change = Change::new(&*after.namespace_id, Group::Plugin, &*after.plugin_id, operation);
    uow.record(match operation {
        Operation::Update => {
            // No change carries jars: they can be megabytes.
            let known = |row: &NamespacePluginRow| Plugin { plugin_jar: None, ..row.to_model() };
            change.before(&known(&before)).after(&known(&after))
        }
        // Selectors and rules name their plugin too.
        _ => change,
    });
}

/// The plugin that a path names, held until the end of the transaction.
async fn existing(uow: &mut UnitOfWork, id: &str, method: &str) -> ApiResult<PluginRow> {
    let found = plugin::find_many_for_update(uow, &[id]).await?.pop();
    let mut rules = Violations::new();
    rules.exists("id", found.is_some(), "plugin is not existed");
    rules.into_parameter_result(method)?;
    found.ok_or(ApiError::Unreadable)
}

/// What the change log says of a plugin: all but its jar, which can be megabytes.
fn logged(row: PluginRow) -> PluginDataResponse {
    PluginRow { plugin_jar: None, ..row }.into()
}

fn changed(before: PluginRow, new: NewPlugin) -> PluginRow {
    let NewPlugin { name, config, role, sort, enabled, plugin_jar } = new;
    let plugin_jar = plugin_jar.or(before.plugin_jar);
    PluginRow { name, config, role, sort: Some(sort), enabled, plugin_jar, ..before }
}

fn text(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or_default()
}
