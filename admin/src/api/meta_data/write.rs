//! Creating, changing, switching and deleting metadata.

use std::collections::BTreeSet;

use longmen_core::model::MetaData;
use longmen_core::sync::{Event, Group};
use longmen_db::repository::meta_data;
use longmen_db::{Change, Operation, UnitOfWork};

use super::request::MetaDataRequest;
use crate::api::common::{BatchDelete, distinct};
use crate::audit::{self, Differences, Kind};
use crate::context::Context;
use crate::error::{ApiError, ApiResult};
use crate::extract::{BatchEnabled, Body};
use crate::reply::{NoData, Reply};

/// The text of a path that is taken.
const PATH_TAKEN: &str = "The path already exists and can't be added repeatedly!";

/// Stores new metadata, or changes what the body names.
pub(super) async fn create_or_update(
    context: Context,
    Body(request): Body<MetaDataRequest>,
) -> ApiResult<Reply<NoData>> {
    let mut uow = context.begin().await?;
    let namespace = request.namespace_id.as_deref().unwrap_or_default();
    let path = request.path.as_deref().unwrap_or_default();
    let holder = meta_data::find_by_path(&mut uow, namespace, path).await?;
    let id = request.id();
    if holder.is_some_and(|holder| Some(holder.meta_data.id.as_str()) != id) {
        return Err(ApiError::refused(PATH_TAKEN));
    }
    let text = match id {
        Some(id) => {
            update(&mut uow, id, &request).await?;
            "update success"
        }
        None => {
            let id = uow.next_id()?;
            let enabled = request.enabled.unwrap_or_default();
            let stored = request.to_meta_data(&id, enabled);
            let description = Some(request.description());
            meta_data::insert(&mut uow, &stored, description).await.map_err(path_taken)?;
            uow.record(change(&stored, Operation::Create, Event::Create).after(&stored));
            audit::created(&mut uow, Kind::MetaData, &stored.path).await?;
            "create success"
        }
    };
    uow.commit().await?;
    Ok(Reply::text(text))
}

/// Deletes metadata of a namespace. Answers how many there were.
pub(super) async fn delete(
    context: Context,
    Body(request): Body<BatchDelete>,
) -> ApiResult<Reply<usize>> {
    let namespace = request.namespace_id.as_deref().unwrap_or_default();
    let mut uow = context.begin().await?;
    let removed = meta_data::delete(&mut uow, namespace, &request.ids()).await?;
    for gone in &removed {
        uow.record(change(gone, Operation::Delete, Event::Delete).before(gone));
    }
    let paths: Vec<&str> = removed.iter().map(|gone| gone.path.as_str()).collect();
    audit::deleted(&mut uow, Kind::MetaData, &paths).await?;
    uow.commit().await?;
    Ok(Reply::new("delete success", removed.len()))
}

/// Switches those of the metadata on or off that are in the namespace.
pub(super) async fn batch_enabled(
    context: Context,
    Body(request): Body<BatchEnabled>,
) -> ApiResult<Reply<NoData>> {
    let ids = distinct(request.ids.unwrap_or_default());
    let enabled = request.enabled.unwrap_or_default();
    let namespace = request.namespace_id.unwrap_or_default();
    let mut uow = context.begin().await?;
    let rows = meta_data::find_many_for_update(&mut uow, &namespace, &ids).await?;
    if rows.is_empty() {
        return Err(ApiError::refused("ID NOT EXIST!"));
    }
    let found: Vec<&str> = rows.iter().map(|row| row.meta_data.id.as_str()).collect();
    meta_data::set_enabled(&mut uow, &found, enabled).await?;
    for row in &rows {
        let before = &row.meta_data;
        let after = MetaData { enabled, ..before.clone() };
        uow.record(change(&after, Operation::Update, Event::Update).before(before).after(&after));
        let what = differences(before, &after);
        audit::updated(&mut uow, Kind::MetaData, &before.path, &what).await?;
    }
    uow.commit().await?;
    Ok(Reply::text("enable success"))
}

/// Has the metadata of each namespace sent again.
pub(super) async fn sync(context: Context, (): ()) -> ApiResult<Reply<NoData>> {
    let mut uow = context.begin().await?;
    let rows = meta_data::all(&mut uow).await?;
    let namespaces: BTreeSet<String> =
        rows.into_iter().filter_map(|row| row.meta_data.namespace_id).collect();
    for namespace in namespaces {
        let refresh = Change::new(namespace, Group::MetaData, "", Operation::Refresh);
        uow.record(refresh.stock_event(Event::Refresh));
    }
    uow.commit().await?;
    Ok(Reply::text(""))
}

/// Replaces one; its switch stays. The protocol settings go to all of its service.
async fn update(uow: &mut UnitOfWork, id: &str, request: &MetaDataRequest) -> ApiResult<()> {
    let namespace = request.namespace_id.as_deref().unwrap_or_default();
    let service = request.service_name.as_deref().unwrap_or_default();
    let held = meta_data::find_services_for_update(uow, namespace, id, service).await?;
    let mut held: Vec<MetaData> = held.into_iter().map(|row| row.meta_data).collect();
    let Some(at) = held.iter().position(|row| row.id == id) else {
        return Err(ApiError::refused(format!(
            "namespaceId: {namespace} has no metadata {id}, expected its namespace"
        )));
    };
    let before = held.remove(at);
    let after = request.to_meta_data(id, before.enabled);
    let description = Some(request.description());
    meta_data::update(uow, &after, description).await.map_err(path_taken)?;
    // The context path travels with an edit, though it is not stored.
    let told = MetaData { context_path: request.context_path.clone(), ..after.clone() };
    uow.record(change(&told, Operation::Update, Event::Update).before(&before).after(&told));
    let what = differences(&before, &after);
    audit::updated(uow, Kind::MetaData, &after.path, &what).await?;

    held.retain(|row| row.service_name.as_deref() == Some(service) && row.rpc_ext != after.rpc_ext);
    let behind = held;
    let ids: Vec<&str> = behind.iter().map(|row| row.id.as_str()).collect();
    meta_data::set_rpc_ext(uow, &ids, after.rpc_ext.as_deref()).await?;
    for before in &behind {
        let after = MetaData { rpc_ext: after.rpc_ext.clone(), ..before.clone() };
        uow.record(change(&after, Operation::Update, Event::Update).before(before).after(&after));
    }
    Ok(())
}

fn change(meta_data: &MetaData, operation: Operation, event: Event) -> Change {
    let namespace = meta_data.namespace_id.clone().unwrap_or_default();
    Change::new(namespace, Group::MetaData, &*meta_data.id, operation).stock_event(event)
}

/// Two writers of one path at once: the store refuses the second.
fn path_taken(error: longmen_db::Error) -> ApiError {
    if error.is_unique_violation() { ApiError::refused(PATH_TAKEN) } else { error.into() }
}

/// What the operation log says of an edit.
fn differences(before: &MetaData, after: &MetaData) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    Differences::default()
        .of("appName", text(&before.app_name), text(&after.app_name))
        .of("path", before.path.clone(), after.path.clone())
        .of("rpcType", before.rpc_type.clone(), after.rpc_type.clone())
        .of("serviceName", text(&before.service_name), text(&after.service_name))
        .of("methodName", text(&before.method_name), text(&after.method_name))
        .of("parameterTypes", text(&before.parameter_types), text(&after.parameter_types))
        .of("rpcExt", text(&before.rpc_ext), text(&after.rpc_ext))
        .of("enabled", before.enabled, after.enabled)
        .text()
}
