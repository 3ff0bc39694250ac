//! `/v1/gateways`: every gateway of every admin, and the version in force on it.
//!
//! Any admin answers for all of them: each writes what it hears of its own gateways into one table.

mod response;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use longmen_db::repository::gateway::{self, GatewayFilter};
use longmen_db::repository::namespace_plugin;
use longmen_db::{Heads, Like, Tx, heads};

use self::response::{GatewayResponse, GatewaysResponse, NamespaceResponse};
use crate::context::Context;
use crate::error::{ApiError, ApiResult};
use crate::extract::{FromQuery, JavaType, Query, QueryArgs};
use crate::permission::Permission::Authenticated;
use crate::publish::add_faults;
use crate::reply::Plain;
use crate::router::Routes;

/// Most rows of one answer; also how many there are where nothing else is asked for.
const MAX_LIMIT: i64 = 500;

/// The routes of gateways.
#[must_use]
pub(crate) fn routes() -> Routes {
    Routes::new("gateway").get(
        "/v1/gateways",
        Authenticated,
        "Lists the gateways of all admins, the version in force on each, and who lags",
        list,
    )
}

/// Which gateways to list.
struct ListQuery {
    filter: GatewayFilter,
    offset: i64,
    limit: i64,
}

impl FromQuery for ListQuery {
    const PARAMETERS: &'static [(&'static str, JavaType, bool)] = &[
        ("namespace", JavaType::String, false),
        ("connected", JavaType::Boolean, false),
        ("q", JavaType::String, false),
        ("offset", JavaType::Integer, false),
        ("limit", JavaType::Integer, false),
    ];

    fn from_query(args: &QueryArgs) -> ApiResult<Self> {
        let number = |name: &'static str, otherwise: i64, least: i64, most: i64| {
            let Some(text) = args.filled(name) else { return Ok(otherwise) };
            let value = text.trim().parse().ok().filter(|value| (least..=most).contains(value));
            value.ok_or_else(|| {
                ApiError::refused(format!(
                    "{name}: {:?} is out of range, expected {least} to {most}",
                    text.chars().take(32).collect::<String>()
                ))
            })
        };
        let connected = match args.filled("connected").as_deref().map(str::trim) {
            None => None,
            Some("true") => Some(true),
            Some("false") => Some(false),
            Some(other) => {
                return Err(ApiError::refused(format!(
                    "connected: {:?} is neither, expected true or false",
                    other.chars().take(32).collect::<String>()
                )));
            }
        };
        Ok(Self {
            filter: GatewayFilter {
                namespace_id: args.filled("namespace"),
                connected,
                text: args.filled("q").as_deref().and_then(Like::contains),
            },
            offset: number("offset", 0, 0, i64::from(i32::MAX))?,
            limit: number("limit", MAX_LIMIT, 1, MAX_LIMIT)?,
        })
    }
}

async fn list(
    context: Context,
    Query(query): Query<ListQuery>,
) -> ApiResult<Plain<GatewaysResponse>> {
    // What this admin has heard shows at once; of the others what they wrote, a second ago at most.
    if let Err(error) = context.state().publisher().write_reports().await {
        tracing::debug!("the list of gateways may be a moment old: {error:#}");
    }
    let mut tx = context.read().await?;
    let heads = heads(&mut tx).await?;
    let ListQuery { filter, offset, limit } = query;
    let in_force = gateway::in_force(&mut tx, filter.namespace_id.as_deref()).await?;
    let (found, total) = gateway::list(&mut tx, &filter, offset, limit).await?;
    let mut enabled: HashMap<String, Vec<String>> = HashMap::new();
    let mut rows = Vec::with_capacity(found.len());
    for row in found {
        let mut response = GatewayResponse::new(row, &heads);
        if response.is_ours_and_connected() {
            let on = switched_on(&mut tx, &mut enabled, &response.namespace).await?;
            add_faults(context.state().plugins(), &mut response.faults, on);
        }
        if let Some(next) = response.first_missing() {
            let at_ms = gateway::committed_ms(&mut tx, &response.namespace, next).await?;
            response.lags_since(at_ms, context.state().now_ms());
        }
        rows.push(response.judged());
    }
    let namespaces = NamespaceResponse::of(&in_force, &heads);
    Ok(Plain(GatewaysResponse { total, namespaces, rows }))
}

/// The plugins that are switched on in a namespace.
async fn switched_on<'a>(
    tx: &mut Tx,
    known: &'a mut HashMap<String, Vec<String>>,
    namespace: &str,
) -> ApiResult<&'a [String]> {
    Ok(match known.entry(namespace.to_owned()) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(new) => {
            let rows = namespace_plugin::of_namespace(tx, namespace).await?;
            new.insert(rows.into_iter().filter(|row| row.enabled).map(|row| row.name).collect())
        }
    })
}

/// The version that a namespace stands at.
fn head(heads: &Heads, namespace: &str) -> u64 {
    let found = heads.versions.iter().find(|(name, _)| name == namespace);
    found.map_or(0, |(_, version)| *version)
}
