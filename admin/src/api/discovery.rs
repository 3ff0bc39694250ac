//! `/discovery`: where upstreams come from.
//!
//! Source: ShenYu 2.7.1 admin, executed.

use longmen_db::repository;

use crate::api::discovery_upstream::response::DiscoveryResponse;
use crate::context::Context;
use crate::error::ApiResult;
use crate::extract::{FromQuery, JavaType, Query, QueryArgs};
use crate::permission::Permission::Authenticated;
use crate::reply::Reply;
use crate::router::Routes;

/// The types of discovery, as the reference lists them.
pub(crate) const DISCOVERY_TYPES: [&str; 5] = ["local", "zookeeper", "nacos", "etcd", "eureka"];

/// The type whose upstreams are stored rows.
pub(crate) const LOCAL: &str = "local";

/// The routes of discoveries.
#[must_use]
pub(crate) fn routes() -> Routes {
    Routes::new("discovery")
        .get("/discovery/typeEnums", Authenticated, "Lists the types of discovery", type_enums)
        .get("/discovery", Authenticated, "Shows the discovery of a plugin on a level", find)
}

async fn type_enums(_context: Context, (): ()) -> ApiResult<Reply<Vec<&'static str>>> {
    Ok(Reply::new("success", DISCOVERY_TYPES.to_vec()))
}

/// Which discovery to show.
struct FindQuery {
    plugin_name: String,
    level: String,
    namespace_id: String,
}

impl FromQuery for FindQuery {
    const PARAMETERS: &'static [(&'static str, JavaType, bool)] = &[
        ("pluginName", JavaType::String, false),
        ("level", JavaType::String, false),
        ("namespaceId", JavaType::String, false),
    ];

    fn from_query(args: &QueryArgs) -> ApiResult<Self> {
        Ok(Self {
            plugin_name: args.text("pluginName").unwrap_or_default(),
            level: args.text("level").unwrap_or_default(),
            namespace_id: args.text("namespaceId").unwrap_or_default(),
        })
    }
}

/// Shows the first one; null if there is none.
async fn find(
    context: Context,
    Query(query): Query<FindQuery>,
) -> ApiResult<Reply<DiscoveryResponse>> {
    let mut tx = context.read().await?;
    let FindQuery { plugin_name, level, namespace_id } = query;
    let row =
        repository::discovery::find_by_level(&mut tx, &namespace_id, &plugin_name, &level).await?;
    Ok(Reply::maybe("success", row.map(DiscoveryResponse::from)))
}
