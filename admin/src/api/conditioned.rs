//! What the endpoints of selectors and rules have in common: lists and searches, the look at one,
//! the switch and the deletion of several.
//!
//! Say which of the two by its type: `conditioned::list::<Rule>`. What differs is in
//! [`selector`](super::selector) and [`rule`](super::rule).

pub(super) mod request;
pub(super) mod response;
pub(super) mod write;

use std::future::Future;
use std::marker::PhantomData;

use longmen_core::model::{Condition, MatchMode};
use longmen_core::sync::Group;
use longmen_db::repository::conditioned::{self, Conditioned, ObjectFilter, Stored};
use longmen_db::{Keyword, Page, Tx, UnitOfWork, repository};
use serde::Serialize;
use serde::de::DeserializeOwned;
use utoipa::ToSchema;

use self::request::{Narrow, ObjectRequest};
use crate::api::common::{MISSING_NAMESPACE, granted_to, missing};
use crate::api::search::{SearchPage, SearchRequest};
use crate::audit::{Differences, Kind};
use crate::context::Context;
use crate::error::ApiResult;
use crate::extract::{Body, FromQuery, JavaType, Path, Query, QueryArgs, RequestBody, Violations};
use crate::page::{CURRENT_PAGE, PAGE_SIZE, PageQuery, Pager};
use crate::reply::Reply;

/// A selector or a rule, as the API deals with it.
pub(super) trait Object: Conditioned + Clone + Serialize + Send + Sync + 'static {
    /// The body of its writes.
    type Request: ObjectRequest + 'static;
    /// What a search of it is narrowed by.
    type Narrow: Narrow + DeserializeOwned + ToSchema + Default + Send + Sync + 'static;
    /// It in an answer.
    type Response: Serialize + ToSchema + Send + 'static;

    /// Its group in the sync.
    const GROUP: Group;
    /// Its kind in the operation log.
    const KIND: Kind;
    /// Several of it, in words.
    const MANY: &'static str;
    /// The query parameter of a list that names what it belongs to.
    const OWNER: &'static str;
    /// The reference's list handler, where it refuses an unknown namespace.
    const LIST_IN_NAMESPACE: Option<&'static str>;
    /// The place of the id in the refusals of the detail and of an update.
    const PLACES: (&'static str, &'static str);
    /// The text of one that is not there.
    const MISSING: &'static str;

    /// What both have.
    fn parts(&self) -> Parts<'_>;

    /// The same, switched on or off.
    fn switched(&self, enabled: bool) -> Self;

    /// A row of a list.
    fn listed(tx: &Tx, row: Stored<Self>) -> Self::Response;

    /// One with its conditions and what else belongs to it.
    fn detailed(
        tx: &mut Tx,
        row: Stored<Self>,
    ) -> impl Future<Output = ApiResult<Self::Response>> + Send;

    /// Replaces it. Out: 0, and nothing is changed, when it is in another namespace than the request
    /// says.
    fn change(
        context: &Context,
        id: &str,
        request: &Self::Request,
    ) -> impl Future<Output = ApiResult<u64>> + Send;

    /// Deletes them and what belongs to them, and notes it for the gateways. `asked` are the ids of
    /// the request, `ids` those of them that are in its namespace. Out: the deleted ones.
    fn remove(
        uow: &mut UnitOfWork,
        asked: &[String],
        ids: &[&str],
        namespace: &str,
    ) -> impl Future<Output = ApiResult<Vec<Self>>> + Send;

    /// What of an edit the operation log tells besides what both have.
    fn own_differences(before: &Self, after: &Self, told: Differences) -> Differences;
}

/// What selectors and rules both have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts<'a> {
    /// Its id.
    pub(super) id: &'a str,
    /// Its name.
    pub(super) name: &'a str,
    /// The namespace it is in.
    pub(super) namespace_id: &'a str,
    /// 0 = all conditions, 1 = any.
    pub(super) match_mode: i32,
    /// The same, resolved.
    pub(super) mode: MatchMode,
    /// Precedence, ascending.
    pub(super) sort: i32,
    /// Whether it takes part in matching.
    pub(super) enabled: bool,
    /// Whether a match is logged.
    pub(super) logged: bool,
    /// Asks stock gateways not to cache its matches.
    pub(super) match_restful: bool,
    /// Settings of the plugin, JSON text.
    pub(super) handle: Option<&'a str>,
    /// The conditions.
    pub(super) conditions: &'a [Condition],
}

/// Implements [`Object::parts`] and [`Object::switched`], whose texts are the same for both.
macro_rules! parts {
    () => {
        fn parts(&self) -> $crate::api::conditioned::Parts<'_> {
            $crate::api::conditioned::Parts {
                id: &self.id,
                name: self.name.as_deref().unwrap_or_default(),
                namespace_id: self.namespace_id.as_deref().unwrap_or_default(),
                match_mode: self.match_mode,
                mode: self.mode(),
                sort: self.sort.unwrap_or_default(),
                enabled: self.enabled,
                logged: self.logged,
                match_restful: self.match_restful,
                handle: self.handle.as_deref(),
                conditions: self.conditions(),
            }
        }

        fn switched(&self, enabled: bool) -> Self {
            Self { enabled, ..self.clone() }
        }
    };
}

pub(super) use parts;

/// Which to list.
pub(super) struct ListQuery<T> {
    owner_id: Option<String>,
    name: Option<String>,
    namespace_id: Option<String>,
    page: PageQuery,
    of: PhantomData<fn() -> T>,
}

impl<T: Object> FromQuery for ListQuery<T> {
    const PARAMETERS: &'static [(&'static str, JavaType, bool)] = &[
        (T::OWNER, JavaType::String, false),
        ("name", JavaType::String, false),
        ("namespaceId", JavaType::String, T::LIST_IN_NAMESPACE.is_some()),
        CURRENT_PAGE,
        PAGE_SIZE,
    ];

    fn from_query(args: &QueryArgs) -> ApiResult<Self> {
        Ok(Self {
            owner_id: args.filled(T::OWNER),
            name: args.filled("name"),
            namespace_id: args.filled("namespaceId"),
            page: PageQuery::required(args)?,
            of: PhantomData,
        })
    }
}

/// One page, by parameters of the query.
pub(super) async fn list<T: Object>(
    context: Context,
    Query(query): Query<ListQuery<T>>,
) -> ApiResult<Reply<Pager<T::Response>>> {
    if let Some(handler) = T::LIST_IN_NAMESPACE {
        let namespace = query.namespace_id.as_deref().unwrap_or_default();
        let mut tx = context.read().await?;
        let found = repository::namespace::find(&mut tx, namespace).await?;
        let mut rules = Violations::new();
        rules.exists("namespaceId", found.is_some(), MISSING_NAMESPACE);
        rules.into_parameter_result(handler)?;
    }
    let filter = ObjectFilter {
        namespace_id: query.namespace_id,
        owner_ids: query.owner_id.into_iter().collect(),
        keyword: Keyword::parse(query.name.as_deref().unwrap_or_default()),
        enabled: None,
        granted_to: granted_to(&context)?,
    };
    let page = find_page::<T>(&context, &filter, query.page).await?;
    Ok(Reply::new("query success", Pager::with_neighbours(query.page, page.total, page.rows)))
}

/// One page, by a body, with all that a navigation bar needs.
pub(super) async fn search<T: Object>(
    context: Context,
    Body(request): Body<SearchRequest<T::Narrow>>,
) -> ApiResult<Reply<SearchPage<T::Response>>>
where
    SearchRequest<T::Narrow>: RequestBody,
{
    let page = searched::<T>(&context, request).await?.1;
    Ok(Reply::new("query success", page.into()))
}

/// The same, answered as a list.
pub(super) async fn search_adaptor<T: Object>(
    context: Context,
    Body(request): Body<SearchRequest<T::Narrow>>,
) -> ApiResult<Reply<Pager<T::Response>>>
where
    SearchRequest<T::Narrow>: RequestBody,
{
    let (query, page) = searched::<T>(&context, request).await?;
    Ok(Reply::new("query success", Pager::with_neighbours(query, page.total, page.rows)))
}

/// One with all that belongs to it.
pub(super) async fn detail<T: Object>(
    context: Context,
    Path(id): Path<String>,
) -> ApiResult<Reply<T::Response>> {
    let mut tx = context.read().await?;
    let Some(row) = conditioned::find::<T>(&mut tx, &id).await? else {
        return Err(missing(T::PLACES.0, T::MISSING));
    };
    Ok(Reply::new("detail success", T::detailed(&mut tx, row).await?))
}

async fn searched<T: Object>(
    context: &Context,
    request: SearchRequest<T::Narrow>,
) -> ApiResult<(PageQuery, Page<T::Response>)> {
    let query = request.page();
    let filter = request.condition.unwrap_or_default().filter(granted_to(context)?);
    Ok((query, find_page::<T>(context, &filter, query).await?))
}

async fn find_page<T: Object>(
    context: &Context,
    filter: &ObjectFilter,
    query: PageQuery,
) -> ApiResult<Page<T::Response>> {
    let mut tx = context.read().await?;
    let page = conditioned::page::<T>(&mut tx, filter, query.request()).await?;
    Ok(page.map(|row| T::listed(&tx, row)))
}
