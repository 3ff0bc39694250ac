//! Listing raw ports.

use std::collections::HashMap;

use longmen_db::repository::binding::{self, Bound};
use longmen_db::repository::upstream::{self, UpstreamRow};
use longmen_db::repository::{self, proxy_selector};
use longmen_db::{Like, Tx};

use super::response::ProxySelectorResponse;
use crate::context::Context;
use crate::error::ApiResult;
use crate::extract::{FromQuery, JavaType, Query, QueryArgs, Violations};
use crate::page::{CURRENT_PAGE, PAGE_SIZE, PageQuery, Pager};
use crate::reply::Reply;

/// Which raw ports to list.
pub(super) struct ListQuery {
    name: Option<String>,
    namespace_id: String,
    page: PageQuery,
}

impl FromQuery for ListQuery {
    const PARAMETERS: &'static [(&'static str, JavaType, bool)] = &[
        ("name", JavaType::String, false),
        ("namespaceId", JavaType::String, true),
        CURRENT_PAGE,
        PAGE_SIZE,
    ];

    fn from_query(args: &QueryArgs) -> ApiResult<Self> {
        Ok(Self {
            name: args.filled("name"),
            namespace_id: args.text("namespaceId").unwrap_or_default(),
            page: PageQuery::read(args)?,
        })
    }
}

/// Lists raw ports, the last written first.
pub(super) async fn list(
    context: Context,
    Query(query): Query<ListQuery>,
) -> ApiResult<Reply<Pager<ProxySelectorResponse>>> {
    let mut tx = context.read().await?;
    let mut rules = Violations::new();
    query.page.check(&mut rules);
    let namespace = repository::namespace::find(&mut tx, &query.namespace_id).await?;
    rules.exists("namespaceId", namespace.is_some(), "namespace is not existed");
    rules.into_parameter_result("queryProxySelector")?;
    let name = query.name.as_deref().and_then(Like::contains);
    let request = query.page.request();
    let page = proxy_selector::page(&mut tx, &query.namespace_id, name.as_ref(), request).await?;
    let rows = with_upstreams(&mut tx, page.rows, &context).await?;
    Ok(Reply::new("query success", Pager::plain(query.page, page.total, rows)))
}

async fn with_upstreams(
    tx: &mut Tx,
    rows: Vec<proxy_selector::ProxySelectorRow>,
    context: &Context,
) -> ApiResult<Vec<ProxySelectorResponse>> {
    let mut bindings = Vec::with_capacity(rows.len());
    for row in &rows {
        bindings.push(binding::find_of(tx, Bound::ProxySelector(&row.id)).await?);
    }
    let handler_ids: Vec<&str> =
        bindings.iter().flatten().map(|binding| binding.handler.id.as_str()).collect();
    let mut upstreams: HashMap<String, Vec<UpstreamRow>> = HashMap::new();
    for row in upstream::of_handlers(tx, &handler_ids).await? {
        upstreams.entry(row.discovery_handler_id.clone()).or_default().push(row);
    }
    let zone = context.state().store().time_zone();
    Ok(rows
        .into_iter()
        .zip(bindings)
        .map(|(row, binding)| {
            let bound = binding.map(|binding| {
                let list = upstreams.remove(&binding.handler.id).unwrap_or_default();
                (binding, list)
            });
            ProxySelectorResponse::new(zone, row, bound)
        })
        .collect())
}
