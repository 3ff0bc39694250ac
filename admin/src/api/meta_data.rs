//! `/meta-data`: registered descriptions of APIs.
//!
//! Source: ShenYu 2.7.1 admin, executed. Ours: paths are unique per namespace on every write; the
//! namespace is told in answers and events; rows whose protocol settings change along with another
//! of their service are pushed too.

mod write;

pub(crate) mod request;
pub(crate) mod response;

use std::collections::BTreeMap;

use longmen_db::{Like, repository};

use self::response::MetaDataResponse;
use crate::api::common::MISSING_NAMESPACE;
use crate::context::Context;
use crate::error::ApiResult;
use crate::extract::{FromQuery, JavaType, Path, Query, QueryArgs, Violations};
use crate::page::{CURRENT_PAGE, PAGE_SIZE, PageQuery, Pager};
use crate::permission::Permission::{self, AnyOf};
use crate::reply::Reply;
use crate::router::Routes;

const LIST: Permission = AnyOf(&["system:meta:list"]);

/// The routes of metadata.
#[must_use]
pub(crate) fn routes() -> Routes {
    Routes::new("meta-data")
        .get("/meta-data/queryList", LIST, "Lists metadata of a namespace", list)
        .get("/meta-data/findAll", LIST, "Lists metadata of all namespaces", find_all)
        .get("/meta-data/findAllGroup", LIST, "Lists all metadata by application", find_all_group)
        .get("/meta-data/{id}", AnyOf(&["system:meta:edit"]), "Shows metadata", detail)
        .post(
            "/meta-data/createOrUpdate",
            AnyOf(&["system:meta:add", "system:meta:edit"]),
            "Creates or changes metadata",
            write::create_or_update,
        )
        .delete(
            "/meta-data/batchDeleted",
            AnyOf(&["system:meta:delete"]),
            "Deletes metadata of a namespace",
            write::delete,
        )
        .post(
            "/meta-data/batchEnabled",
            AnyOf(&["system:meta:disable"]),
            "Switches metadata on or off",
            write::batch_enabled,
        )
        .post(
            "/meta-data/syncData",
            AnyOf(&["system:meta:modify"]),
            "Sends all metadata to gateways again",
            write::sync,
        )
}

/// Which metadata to list.
struct ListQuery {
    path: Option<String>,
    namespace_id: Option<String>,
    page: PageQuery,
}

impl FromQuery for ListQuery {
    const PARAMETERS: &'static [(&'static str, JavaType, bool)] = &[
        ("path", JavaType::String, false),
        ("namespaceId", JavaType::String, true),
        CURRENT_PAGE,
        PAGE_SIZE,
    ];

    fn from_query(args: &QueryArgs) -> ApiResult<Self> {
        Ok(Self {
            path: args.filled("path"),
            namespace_id: args.filled("namespaceId"),
            page: PageQuery::required(args)?,
        })
    }
}

async fn list(
    context: Context,
    Query(query): Query<ListQuery>,
) -> ApiResult<Reply<Pager<MetaDataResponse>>> {
    let mut tx = context.read().await?;
    let mut rules = Violations::new();
    let namespace = query.namespace_id.unwrap_or_default();
    let found = repository::namespace::find(&mut tx, &namespace).await?;
    rules.exists("namespaceId", found.is_some(), MISSING_NAMESPACE);
    rules.into_parameter_result("queryList")?;
    let path = query.path.as_deref().and_then(Like::contains);
    let request = query.page.request();
    let page = repository::meta_data::page(&mut tx, &namespace, path.as_ref(), request).await?;
    let rows = page.rows.into_iter().map(|row| MetaDataResponse::new(&tx, row)).collect();
    Ok(Reply::new("query success", Pager::plain(query.page, page.total, rows)))
}

async fn find_all(context: Context, (): ()) -> ApiResult<Reply<Vec<MetaDataResponse>>> {
    Ok(Reply::new("query success", all(&context).await?))
}

async fn find_all_group(
    context: Context,
    (): (),
) -> ApiResult<Reply<BTreeMap<String, Vec<MetaDataResponse>>>> {
    let mut groups: BTreeMap<String, Vec<MetaDataResponse>> = BTreeMap::new();
    for row in all(&context).await? {
        groups.entry(row.app_name.clone().unwrap_or_default()).or_default().push(row);
    }
    Ok(Reply::new("query success", groups))
}

async fn all(context: &Context) -> ApiResult<Vec<MetaDataResponse>> {
    let mut tx = context.read().await?;
    let rows = repository::meta_data::all(&mut tx).await?;
    Ok(rows.into_iter().map(|row| MetaDataResponse::new(&tx, row)).collect())
}

/// Shows one; of an unknown id all members are null, as the reference answers it.
async fn detail(context: Context, Path(id): Path<String>) -> ApiResult<Reply<MetaDataResponse>> {
    let mut tx = context.read().await?;
    let row = repository::meta_data::find(&mut tx, &id).await?;
    let answer = row.map(|row| MetaDataResponse::new(&tx, row)).unwrap_or_default();
    Ok(Reply::new("detail success", answer))
}
