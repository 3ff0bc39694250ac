//! Changing, switching and deleting selectors and rules.

use longmen_core::sync::Event;
use longmen_db::repository::conditioned;
use longmen_db::{Change, Operation, UnitOfWork};

use super::Object;
use crate::api::common::{BatchDelete, absent, distinct, filled, missing};
use crate::api::condition::in_words;
use crate::audit::{self, Differences};
use crate::context::Context;
use crate::error::ApiResult;
use crate::extract::{BatchEnabled, Body, Path};
use crate::reply::{NoData, Reply};

/// Changes one. Answers how many there were: 0 when it is in another namespace.
pub(in crate::api) async fn update<T: Object>(
    context: Context,
    (Path(id), Body(request)): (Path<String>, Body<T::Request>),
) -> ApiResult<Reply<u64>> {
    let mut tx = context.read().await?;
    if conditioned::find::<T>(&mut tx, &id).await?.is_none() {
        return Err(missing(T::PLACES.1, T::MISSING));
    }
    drop(tx);
    Ok(Reply::new("update success", T::change(&context, &id, &request).await?))
}

/// Switches several on or off.
pub(in crate::api) async fn batch_enabled<T: Object>(
    context: Context,
    Body(request): Body<BatchEnabled>,
) -> ApiResult<Reply<NoData>> {
    let ids = distinct(request.ids.unwrap_or_default());
    let enabled = request.enabled.unwrap_or_default();
    let namespace = filled(request.namespace_id.as_deref());
    let mut uow = context.begin().await?;
    let rows = conditioned::find_many_for_update::<T>(&mut uow, &ids).await?;
    let found = rows.iter().map(|row| &row.object);
    let found: Vec<&T> = found.filter(|found| in_namespace(*found, namespace)).collect();
    absent(&ids, |id| found.iter().any(|found| found.parts().id == id), T::MANY)?;
    conditioned::set_enabled::<T>(&mut uow, &ids, enabled).await?;
    // In the order of the request, as the reference pushes them.
    for before in ids.iter().filter_map(|id| found.iter().find(|found| found.parts().id == *id)) {
        let after = before.switched(enabled);
        record_update(&mut uow, *before, &after).await?;
    }
    uow.commit().await?;
    Ok(Reply::text("enable success"))
}

/// Deletes several with what belongs to them. Answers how many there were.
pub(in crate::api) async fn delete<T: Object>(
    context: Context,
    Body(request): Body<BatchDelete>,
) -> ApiResult<Reply<usize>> {
    let namespace = request.namespace_id.as_deref();
    let asked = request.ids();
    let mut uow = context.begin().await?;
    let rows = conditioned::find_many_for_update::<T>(&mut uow, &asked).await?;
    let found = rows.iter().map(|row| &row.object).filter(|found| in_namespace(*found, namespace));
    let ids: Vec<&str> = found.map(|found| found.parts().id).collect();
    let removed = T::remove(&mut uow, &asked, &ids, namespace.unwrap_or_default()).await?;
    let names: Vec<&str> = removed.iter().map(|gone| gone.parts().name).collect();
    audit::deleted(&mut uow, T::KIND, &names).await?;
    uow.commit().await?;
    Ok(Reply::new("delete success", removed.len()))
}

/// Notes a write for the gateways and in the operation log.
///
/// # Errors
/// Failures of the store.
pub(in crate::api) async fn record_update<T: Object>(
    uow: &mut UnitOfWork,
    before: &T,
    after: &T,
) -> ApiResult<()> {
    uow.record(changed(after, Operation::Update).before(before).after(after));
    record_edit(uow, before, after).await
}

/// Notes an edit in the operation log.
///
/// # Errors
/// Failures of the store.
pub(in crate::api) async fn record_edit<T: Object>(
    uow: &mut UnitOfWork,
    before: &T,
    after: &T,
) -> ApiResult<()> {
    // A switch keeps the name, and an edit is told by the new one.
    audit::updated(uow, T::KIND, after.parts().name, &differences(before, after)).await
}

/// Whether it is in `namespace`, if one is given.
pub(in crate::api) fn in_namespace<T: Object>(object: &T, namespace: Option<&str>) -> bool {
    namespace.is_none_or(|wanted| object.parts().namespace_id == wanted)
}

/// The entry of the change log, without the objects: stock gateways get every write as an update.
pub(in crate::api) fn changed<T: Object>(object: &T, operation: Operation) -> Change {
    event(object, operation, Event::Update)
}

/// The entry of the change log, without the objects.
pub(in crate::api) fn event<T: Object>(object: &T, operation: Operation, event: Event) -> Change {
    let parts = object.parts();
    Change::new(parts.namespace_id, T::GROUP, parts.id, operation).stock_event(event)
}

/// The ids of the conditions that are stored of one.
///
/// # Errors
/// Failures of the store.
pub(in crate::api) async fn own_conditions<T: Object>(
    uow: &mut UnitOfWork,
    id: &str,
) -> ApiResult<Vec<String>> {
    let rows = conditioned::conditions::<T>(uow, id).await?;
    Ok(rows.into_iter().map(|row| row.id).collect())
}

/// What the operation log says of an edit.
fn differences<T: Object>(before: &T, after: &T) -> String {
    let (old, new) = (before.parts(), after.parts());
    let told = Differences::default().of("name", old.name, new.name);
    T::own_differences(before, after, told)
        .of("matchMode", old.match_mode, new.match_mode)
        .of("sort", old.sort, new.sort)
        .of("enabled", old.enabled, new.enabled)
        .of("loged", old.logged, new.logged)
        .of("handle", old.handle.unwrap_or_default(), new.handle.unwrap_or_default())
        .of("conditions", in_words(old.conditions), in_words(new.conditions))
        .text()
}
