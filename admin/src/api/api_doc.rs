//! `/api`: descriptions of APIs for people, as services registered them.
//!
//! Source: ShenYu 2.7.1 admin, as read.

use longmen_db::repository::api_doc::{self, ApiDocRow};
use longmen_db::{Like, Tx, date_text};
use serde::Serialize;
use utoipa::ToSchema;

use crate::context::Context;
use crate::error::{ApiError, ApiResult};
use crate::extract::{FromQuery, JavaType, Path, Query, QueryArgs};
use crate::page::{CURRENT_PAGE, PAGE_SIZE, PageQuery, Pager};
use crate::permission::Permission::Authenticated;
use crate::reply::Reply;
use crate::router::Routes;
use crate::state::AppState;

/// The routes of descriptions.
#[must_use]
pub(crate) fn routes() -> Routes {
    Routes::new("api").get("/api", Authenticated, "Lists descriptions of APIs", list).get(
        "/api/{id}",
        Authenticated,
        "Shows the description of an API",
        detail,
    )
}

/// Which to list.
struct ListQuery {
    path: Option<String>,
    state: Option<i32>,
    tag_id: Option<String>,
    page: PageQuery,
}

impl FromQuery for ListQuery {
    const PARAMETERS: &'static [(&'static str, JavaType, bool)] = &[
        ("apiPath", JavaType::String, false),
        ("state", JavaType::Integer, false),
        ("tagId", JavaType::String, false),
        CURRENT_PAGE,
        PAGE_SIZE,
    ];

    fn from_query(args: &QueryArgs) -> ApiResult<Self> {
        Ok(Self {
            path: args.filled("apiPath"),
            state: args.integer("state")?,
            tag_id: args.filled("tagId"),
            page: PageQuery::required(args)?,
        })
    }
}

/// A description in an answer.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApiDocResponse {
    /// Its id.
    pub id: String,
    /// The path that all APIs of its application are below.
    pub context_path: String,
    /// The path.
    pub api_path: String,
    /// 0 get, 1 head, 2 post, 3 put, 4 patch, 5 delete, 6 options, 7 trace, 8 none.
    pub http_method: i32,
    /// Media types that it takes.
    pub consume: String,
    /// Media types that it answers.
    pub produce: String,
    /// Version of the API.
    pub version: String,
    /// Protocol.
    pub rpc_type: String,
    /// 0 unpublished, 1 published, 2 offline.
    pub state: i32,
    /// Further facts, JSON text.
    pub ext: String,
    /// Who answers for it.
    pub api_owner: String,
    /// Free text.
    pub api_desc: String,
    /// 0 swagger, 1 annotation, 2 a person, 3 imported swagger, 4 imported yapi.
    pub api_source: i32,
    /// The description proper, JSON text.
    pub document: String,
    /// The digest of `document`.
    pub document_md5: String,
    /// Names of its tags; lists leave them out.
    pub tags: Option<Vec<String>>,
    /// When it was created.
    pub date_created: String,
    /// When it was last written.
    pub date_updated: String,
}

impl ApiDocResponse {
    fn new(state: &AppState, row: ApiDocRow, tags: Option<Vec<String>>) -> Self {
        let ApiDocRow { id, doc, created_ms, updated_ms } = row;
        let zone = state.store().time_zone();
        Self {
            id,
            context_path: doc.context_path,
            api_path: doc.api_path,
            http_method: doc.http_method,
            consume: doc.consume,
            produce: doc.produce,
            version: doc.version,
            rpc_type: doc.rpc_type,
            state: doc.state,
            ext: doc.ext,
            api_owner: doc.api_owner,
            api_desc: doc.api_desc,
            api_source: doc.api_source,
            document: doc.document,
            document_md5: doc.document_md5,
            tags,
            date_created: date_text(created_ms, zone),
            date_updated: date_text(updated_ms, zone),
        }
    }
}

/// All of them, whatever page is asked for, as the reference answers it.
async fn list(
    context: Context,
    Query(query): Query<ListQuery>,
) -> ApiResult<Reply<Pager<ApiDocResponse>>> {
    let mut tx = context.read().await?;
    let path = query.path.as_deref().and_then(Like::contains);
    let rows = api_doc::list(&mut tx, path.as_ref(), query.state, query.tag_id.as_deref()).await?;
    let state = context.state();
    let rows = rows.into_iter().map(|row| ApiDocResponse::new(state, row, None)).collect();
    Ok(Reply::new("query success", Pager::whole(query.page, rows)))
}

async fn detail(context: Context, Path(id): Path<String>) -> ApiResult<Reply<ApiDocResponse>> {
    let mut tx = context.read().await?;
    let row = find(&mut tx, &id).await?;
    let tags = api_doc::tags(&mut tx, &row.id).await?;
    Ok(Reply::new("detail success", ApiDocResponse::new(context.state(), row, Some(tags))))
}

async fn find(tx: &mut Tx, id: &str) -> ApiResult<ApiDocRow> {
    let row = api_doc::find(tx, id).await?;
    row.ok_or_else(|| ApiError::refused("api is not existed"))
}
