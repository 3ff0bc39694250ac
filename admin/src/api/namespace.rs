//! Namespaces.

mod request;

use longmen_core::model::MAX_ID_BYTES;
use longmen_db::{
    Change, Like, Operation, UnitOfWork,
    repository::namespace::{self, Contents, NamespaceFilter, NamespaceRow},
};
use serde::Serialize;
use utoipa::ToSchema;

use self::request::{NameQuery, NamespaceQuery, NamespaceRequest};
use crate::{
    audit,
    context::Context,
    error::{ApiError, ApiResult},
    extract::{Body, Ids, Path, Query, Violations},
    page::Pager,
    permission::{Permission::AnyOf, SUPER_USER},
    reply::Reply,
    router::Routes,
};

/// Kind of the change rows; gateways never see them.
const KIND: &str = "NAMESPACE";

/// Id of the row of the default namespace, which cannot be deleted.
const DEFAULT_ROW: &str = "1";

pub(super) fn routes() -> Routes {
    const LIST: &[&str] = &["system:namespace:list"];
    // The reference asks for no permission on the two writes, though its roles have them.
    const SAVE: &[&str] = &["system:namespace:add", "system:namespace:edit"];
    const DELETE: &[&str] = &["system:namespace:delete"];
    const SHOW: &[&str] = &["system:namespace:edit"];
    Routes::new("namespace")
        .get("/namespace/findPageByQuery", AnyOf(LIST), "Searches namespaces", page)
        .get("/namespace/list", AnyOf(LIST), "Lists the caller's namespaces", list)
        .get("/namespace/{namespaceId}", AnyOf(SHOW), "Shows a namespace", detail)
        .post("/namespace/insertOrUpdate", AnyOf(SAVE), "Creates or changes a namespace", save)
        .delete("/namespace/batch", AnyOf(DELETE), "Deletes empty namespaces", delete)
}

/// A namespace.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct NamespaceResponse {
    /// Id of the row; null in the answer to a change.
    id: Option<String>,
    /// The id that everything else uses.
    namespace_id: String,
    name: String,
    description: String,
}

impl From<NamespaceRow> for NamespaceResponse {
    fn from(row: NamespaceRow) -> Self {
        let NamespaceRow { id, namespace_id, name, description, .. } = row;
        Self { id: Some(id), namespace_id, name, description }
    }
}

/// Users see the namespaces they work in, the super user all.
fn membership(context: &Context) -> ApiResult<Option<String>> {
    let caller = context.caller()?;
    Ok((caller.name != SUPER_USER).then(|| caller.user_id.clone()))
}

async fn page(
    context: Context,
    Query(query): Query<NamespaceQuery>,
) -> ApiResult<Reply<Pager<NamespaceResponse>>> {
    let member = membership(&context)?;
    let mut tx = context.read().await?;
    if member.is_some() {
        let mine = NamespaceFilter { member: member.clone(), ..NamespaceFilter::default() };
        if namespace::list(&mut tx, &mine).await?.is_empty() {
            return Ok(Reply::new("query success", Pager::nothing()));
        }
    }
    let filter = NamespaceFilter {
        namespace_id: query.namespace_id,
        name: query.name.as_deref().and_then(Like::contains),
        member,
    };
    let page = namespace::page(&mut tx, &filter, query.page.request()).await?;
    let rows = page.rows.into_iter().map(NamespaceResponse::from).collect();
    Ok(Reply::new("query success", Pager::with_neighbours(query.page, page.total, rows)))
}

async fn list(
    context: Context,
    Query(query): Query<NameQuery>,
) -> ApiResult<Reply<Vec<NamespaceResponse>>> {
    let member = membership(&context)?;
    // The name narrows only what a user other than the super user sees.
    let name = query.name.as_deref().filter(|_| member.is_some()).and_then(Like::contains);
    let filter = NamespaceFilter { namespace_id: None, name, member };
    let rows = namespace::list(&mut *context.read().await?, &filter).await?;
    Ok(Reply::new("query success", rows.into_iter().map(NamespaceResponse::from).collect()))
}

async fn detail(
    context: Context,
    Path(namespace_id): Path<String>,
) -> ApiResult<Reply<NamespaceResponse>> {
    let found = namespace::find(&mut *context.read().await?, &namespace_id).await?;
    let mut rules = Violations::new();
    rules.exists("namespaceId", found.is_some(), "namespaceId is not existed");
    rules.into_parameter_result("detailPlugin")?;
    Ok(Reply::maybe("detail success", found.map(NamespaceResponse::from)))
}

async fn save(
    context: Context,
    Body(request): Body<NamespaceRequest>,
) -> ApiResult<Reply<NamespaceResponse>> {
    let saved = match request.id.as_deref() {
        Some(id) if !id.trim().is_empty() => update(&context, request).await?,
        _ => Some(create(&context, request).await?),
    };
    Ok(Reply::maybe("success", saved))
}

async fn create(context: &Context, request: NamespaceRequest) -> ApiResult<NamespaceResponse> {
    let namespace_id = match request.namespace_id.filter(|id| !id.trim().is_empty()) {
        Some(id) if id.len() > MAX_ID_BYTES => {
            return Err(ApiError::refused(format!(
                "namespaceId has {} bytes, expected at most {MAX_ID_BYTES}",
                id.len()
            )));
        }
        Some(id) => id,
        None => random_uuid(),
    };
    let name = request.name.unwrap_or_default();
    let description = request.description.unwrap_or_default();
    let mut uow = context.begin().await?;
    let row = namespace::insert(&mut uow, &namespace_id, &name, &description).await?;
    namespace::add_member(&mut uow, &namespace_id, &context.caller()?.user_id).await?;
    let response = NamespaceResponse::from(row);
    uow.record(change(&namespace_id, Operation::Create).after(&response));
    audit::created(&mut uow, audit::Kind::Namespace, &name).await?;
    uow.commit().await?;
    Ok(response)
}

/// Changes by `namespaceId`; nothing there is no error, as in the reference.
async fn update(
    context: &Context,
    request: NamespaceRequest,
) -> ApiResult<Option<NamespaceResponse>> {
    let namespace_id =
        request.namespace_id.ok_or_else(|| ApiError::refused("namespace is not exist"))?;
    let name = request.name.unwrap_or_default();
    let description = request.description.unwrap_or_default();
    let mut uow = context.begin().await?;
    let Some(before) = namespace::find_for_update(&mut uow, &namespace_id).await? else {
        return Ok(None);
    };
    let what = audit::Differences::default()
        .of("name", before.name.as_str(), &name)
        .of("description", before.description.as_str(), &description)
        .text();
    namespace::update(&mut uow, &namespace_id, &name, &description).await?;
    let after = NamespaceResponse { id: None, namespace_id, name, description };
    let before = NamespaceResponse::from(before);
    uow.record(change(&after.namespace_id, Operation::Update).before(&before).after(&after));
    audit::updated(&mut uow, audit::Kind::Namespace, &after.name, &what).await?;
    uow.commit().await?;
    Ok(Some(after))
}

async fn delete(context: Context, ids: Ids) -> ApiResult<Reply<&'static str>> {
    let ids = ids.0;
    if ids.iter().any(|id| id == DEFAULT_ROW) {
        return Err(ApiError::refused("The default namespace cannot delete！"));
    }
    let mut uow = context.begin().await?;
    let rows = namespace::find_many_by_row_id_for_update(&mut uow, &ids).await?;
    let unknown = ids.iter().any(|id| rows.iter().all(|row| row.id != *id));
    if rows.is_empty() || unknown {
        return Err(ApiError::refused("The namespace(s) does not exist！"));
    }
    for row in &rows {
        refuse_contents(&namespace::contents(&mut uow, &row.namespace_id).await?)?;
    }
    namespace::delete(&mut uow, &ids).await?;
    record_deleted(&mut uow, rows).await?;
    uow.commit().await?;
    Ok(Reply::new("success", "delete success"))
}

async fn record_deleted(uow: &mut UnitOfWork, rows: Vec<NamespaceRow>) -> ApiResult<()> {
    let names: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
    for row in rows {
        let namespace_id = row.namespace_id.clone();
        let before = NamespaceResponse::from(row);
        uow.record(change(&namespace_id, Operation::Delete).before(&before));
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    audit::deleted(uow, audit::Kind::Namespace, &names).await
}

/// What is left in a namespace keeps it; told in the reference's order, then what it does not look
/// at.
fn refuse_contents(contents: &Contents) -> ApiResult<()> {
    let Contents { rules, selectors, plugins, meta_data, discoveries, proxy_selectors } = *contents;
    for (count, text) in [
        (rules, "rule exist under those namespace!"),
        (selectors, "selector exist under those namespace!"),
        (plugins, "Plugins exist under those namespace!"),
        (meta_data, "metaData exist under those namespace!"),
        (discoveries, "discovery exist under those namespace!"),
        (proxy_selectors, "proxySelector exist under those namespace!"),
    ] {
        if count > 0 {
            return Err(ApiError::refused(text));
        }
    }
    Ok(())
}

fn change(namespace_id: &str, operation: Operation) -> Change {
    Change::internal(namespace_id, KIND, namespace_id, operation)
}

/// A random UUID, version 4.
fn random_uuid() -> String {
    let bits = rand::random::<u128>();
    let bits = bits & !(0xf_u128 << 76) | (0x4_u128 << 76);
    let bits = bits & !(0x3_u128 << 62) | (0x2_u128 << 62);
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::random_uuid;

    #[test]
    fn uuids_are_of_version_four() {
        let (one, other) = (random_uuid(), random_uuid());
        assert_ne!(one, other);
        assert_eq!(one.len(), 36);
        assert_eq!(&one[14..15], "4");
        assert!("89ab".contains(&one[19..20]), "{one}");
    }
}
