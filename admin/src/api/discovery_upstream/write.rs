//! Writing upstreams.

use std::collections::BTreeMap;

use longmen_core::model::{Upstream, UpstreamList};
use longmen_core::sync::Group;
use longmen_db::repository::{binding, upstream};
use longmen_db::{Binding, Change, Operation, Tx, UnitOfWork};

use super::request::{UpstreamRequest, UpstreamRequests};
use crate::api::common::{distinct, missing};
use crate::audit::{self, Differences, Kind};
use crate::context::Context;
use crate::error::{ApiError, ApiResult};
use crate::extract::{Body, Ids, Path, Violations};
use crate::reply::{NoData, Reply};

/// Adds an upstream, or changes the one that the body names.
pub(super) async fn save(
    context: Context,
    Body(request): Body<UpstreamRequest>,
) -> ApiResult<Reply<NoData>> {
    let text = if request.id().is_some() { "update success" } else { "create success" };
    store(&context, std::slice::from_ref(&request)).await?;
    Ok(Reply::text(text))
}

/// Adds or changes each upstream of a list; all or none.
pub(super) async fn save_all(context: Context, list: UpstreamRequests) -> ApiResult<Reply<NoData>> {
    let mut rules = Violations::new();
    let mut tx = context.read().await?;
    list.check(&mut tx, "discoveryUpstreamDTOList", &mut rules).await?;
    rules.into_parameter_result("createDiscoveryUpstreamList")?;
    drop(tx);
    store(&context, &list.0).await?;
    Ok(Reply::text(""))
}

/// Replaces all upstreams of a handler; they get new ids.
pub(super) async fn replace(
    context: Context,
    (Path(handler_id), list): (Path<String>, UpstreamRequests),
) -> ApiResult<Reply<i32>> {
    let mut rules = Violations::new();
    let mut tx = context.read().await?;
    let found = binding::find(&mut tx, &handler_id).await?.is_some();
    rules.exists("discoveryHandlerId", found, "discovery upstream is not existed");
    list.check(&mut tx, "discoveryUpstreamDTO", &mut rules).await?;
    rules.into_parameter_result("updateDiscoveryUpstream")?;
    drop(tx);
    for request in &list.0 {
        request.usable().map_err(ApiError::refused)?;
    }
    let mut uow = context.begin().await?;
    let before = hold(&mut uow, &handler_id).await?;
    for request in &list.0 {
        same_namespace(&before, request)?;
    }
    let new: Vec<_> = list.0.iter().map(UpstreamRequest::to_new).collect();
    upstream::replace(&mut uow, &handler_id, &new).await?;
    record(&mut uow, &handler_id, &before.upstreams).await?;
    uow.commit().await?;
    Ok(Reply::data(0))
}

/// Deletes upstreams; unknown ids are passed over.
pub(super) async fn delete(context: Context, ids: Ids) -> ApiResult<Reply<NoData>> {
    let ids = distinct(ids.checked("deleteDiscoveryUpstream")?);
    let mut uow = context.begin().await?;
    let rows = upstream::find_many(&mut uow, &ids).await?;
    let mut by_handler: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in rows {
        by_handler.entry(row.discovery_handler_id).or_default().push(row.id);
    }
    for (handler_id, ids) in &by_handler {
        let before = hold(&mut uow, handler_id).await?.upstreams;
        upstream::delete(&mut uow, ids).await?;
        let Some(after) = binding::load(&mut uow, handler_id).await? else { continue };
        // Without an event: stock admins push nothing here, our gateways get the new list.
        uow.record(change(&after).before(&before).after(&after.upstreams));
        let what = in_words(&before, &after.upstreams);
        audit::updated(&mut uow, Kind::Upstream, &after.announcement.name, &what).await?;
    }
    uow.commit().await?;
    Ok(Reply::text("delete success"))
}

/// Adds or changes upstreams in one transaction; each handler's list is told once.
async fn store(context: &Context, requests: &[UpstreamRequest]) -> ApiResult<()> {
    for request in requests {
        request.usable().map_err(ApiError::refused)?;
    }
    let mut uow = context.begin().await?;
    let mut by_handler: BTreeMap<String, Vec<&UpstreamRequest>> = BTreeMap::new();
    for request in requests {
        let handler_id = handler_of(&mut uow, request).await?;
        by_handler.entry(handler_id).or_default().push(request);
    }
    for (handler_id, requests) in by_handler {
        let before = hold(&mut uow, &handler_id).await?;
        for request in requests {
            same_namespace(&before, request)?;
            match request.id() {
                Some(id) => {
                    upstream::update(&mut uow, id, &request.to_new()).await?;
                }
                None => upstream::insert(&mut uow, &handler_id, &[request.to_new()]).await?,
            }
        }
        record(&mut uow, &handler_id, &before.upstreams).await?;
    }
    uow.commit().await?;
    Ok(())
}

/// The handler of an upstream that is changed stays; a new one goes where the request says.
async fn handler_of(tx: &mut Tx, request: &UpstreamRequest) -> ApiResult<String> {
    if let Some(id) = request.id() {
        let row = upstream::find(tx, id).await?;
        return row
            .map(|row| row.discovery_handler_id)
            .ok_or_else(|| missing("id", "discovery upstream not exited"));
    }
    Ok(request.discovery_handler_id.clone().unwrap_or_default())
}

/// What gateways have of a handler, held until the end of the transaction.
async fn hold(uow: &mut UnitOfWork, handler_id: &str) -> ApiResult<Binding> {
    binding::load_for_update(uow, handler_id).await?.ok_or_else(|| {
        ApiError::refused(format!(
            "discoveryHandlerId: {handler_id} is not there, expected the id of a discovery handler"
        ))
    })
}

fn same_namespace(binding: &Binding, request: &UpstreamRequest) -> ApiResult<()> {
    let expected = binding.announcement.namespace_id.as_deref().unwrap_or_default();
    let sent = request.namespace_id.as_deref().unwrap_or_default();
    if sent == expected {
        return Ok(());
    }
    Err(ApiError::refused(format!(
        "namespaceId: {sent} is not the namespace of {}, expected {expected}",
        binding.announcement.name,
    )))
}

async fn record(uow: &mut UnitOfWork, handler_id: &str, before: &UpstreamList) -> ApiResult<()> {
    let Some(after) = binding::load(uow, handler_id).await? else { return Ok(()) };
    after.record_upstreams(uow, before);
    let what = in_words(before, &after.upstreams);
    audit::updated(uow, Kind::Upstream, &after.announcement.name, &what).await
}

fn change(binding: &Binding) -> Change {
    let namespace = binding.announcement.namespace_id.clone().unwrap_or_default();
    let selector_id = &*binding.announcement.id;
    Change::new(namespace, Group::DiscoverUpstream, selector_id, Operation::Update)
}

/// What the operation log says of a changed list.
fn in_words(before: &UpstreamList, after: &UpstreamList) -> String {
    let list = |list: &UpstreamList| {
        let one = |upstream: &Upstream| {
            let Upstream { url, status, weight, .. } = upstream;
            format!("{url} status {status} weight {weight}")
        };
        list.upstreams().iter().map(one).collect::<Vec<_>>().join(", ")
    };
    Differences::default().of("upstreams", list(before), list(after)).text()
}
