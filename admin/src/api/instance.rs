//! `/instance`: who has said that it is alive, gateways and services alike.
//!
//! Source: ShenYu 2.7.1 admin, executed. Ours: one table for all admins, so a list needs no memory of the
//! admin that is asked; what was deleted a week ago is forgotten.

use jiff::{Timestamp, tz::TimeZone};
use longmen_db::Like;
use longmen_db::repository::instance::{self, InstanceCounts, InstanceKey, InstanceRow};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::common::{MAX_KEY_BYTES, filled};
use crate::context::Context;
use crate::error::{ApiError, ApiResult};
use crate::extract::{
    Body, FromQuery, JavaType, Path, Query, QueryArgs, RequestBody, Violations, lenient, too_long,
};
use crate::page::{CURRENT_PAGE, PAGE_SIZE, PageQuery, Pager};
use crate::permission::Permission::{AnyOf, Authenticated};
use crate::reply::{NoData, PlainText, Reply};
use crate::router::Routes;
use crate::state::AppState;

/// Points of the trend, as many as the stock console draws.
const POINTS: usize = 20;

/// The largest report about a machine that is stored.
const MAX_INFO_BYTES: usize = 8_192;

/// The routes of instances.
#[must_use]
pub(crate) fn routes() -> Routes {
    Routes::new("instance")
        .get("/instance", Authenticated, "Lists the instances of a namespace", list)
        .get("/instance/{id}", AnyOf(&["system:instance:edit"]), "Shows nothing, as it does", find)
        .get(
            "/instance/analysis/{namespaceId}",
            Authenticated,
            "Counts the instances by state, now and over the last minutes",
            analyse,
        )
        .post("/instance/beat", Authenticated, "Says that an instance is alive", beat)
}

/// Which instances to list.
struct ListQuery {
    namespace_id: String,
    kind: Option<String>,
    ip: Option<String>,
    port: Option<String>,
    page: PageQuery,
}

impl FromQuery for ListQuery {
    const PARAMETERS: &'static [(&'static str, JavaType, bool)] = &[
        ("namespaceId", JavaType::String, true),
        ("instanceType", JavaType::String, false),
        ("instanceIp", JavaType::String, false),
        ("instancePort", JavaType::String, false),
        CURRENT_PAGE,
        PAGE_SIZE,
    ];

    fn from_query(args: &QueryArgs) -> ApiResult<Self> {
        Ok(Self {
            namespace_id: args.required("namespaceId")?,
            kind: args.filled("instanceType"),
            ip: args.filled("instanceIp"),
            port: args.filled("instancePort"),
            page: PageQuery::required(args)?,
        })
    }
}

/// An instance.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct InstanceResponse {
    instance_ip: String,
    instance_port: String,
    /// `bootstrap`, `client` or what it calls itself.
    instance_type: String,
    /// What it said of its machine at its first word, JSON text.
    instance_info: String,
    namespace_id: String,
    /// 0 deleted, 1 online, 2 offline.
    instance_state: i32,
    /// When it was first heard, `2024-06-22T20:25:14.359+08:00`.
    date_created: String,
    /// Always null, as the reference has it.
    date_updated: Option<String>,
    /// When it was last heard, in milliseconds since 1970-01-01 UTC.
    last_heart_beat_time: i64,
}

impl InstanceResponse {
    fn new(row: InstanceRow, zone: &TimeZone) -> Self {
        let at = Timestamp::from_millisecond(row.created_ms).unwrap_or(Timestamp::UNIX_EPOCH);
        let created = at.to_zoned_datetime(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%.3f%:z");
        Self {
            instance_ip: row.instance_ip,
            instance_port: row.instance_port,
            instance_type: row.instance_type,
            instance_info: row.instance_info,
            namespace_id: row.namespace_id,
            instance_state: row.instance_state,
            date_created: created.to_string(),
            date_updated: None,
            last_heart_beat_time: row.beat_ms,
        }
    }
}

async fn list(
    context: Context,
    Query(query): Query<ListQuery>,
) -> ApiResult<Reply<Pager<InstanceResponse>>> {
    show_own(&context).await;
    let ip = query.ip.as_deref().and_then(Like::contains);
    let (kind, port) = (query.kind.as_deref(), query.port.as_deref());
    let mut tx = context.read().await?;
    let rows = instance::list(&mut tx, &query.namespace_id, kind, ip.as_ref(), port).await?;
    let zone = context.state().store().time_zone();
    let rows = rows.into_iter().map(|row| InstanceResponse::new(row, zone)).collect();
    Ok(Reply::new("query success", Pager::whole(query.page, rows)))
}

/// What this admin has heard shows at once.
async fn show_own(context: &Context) {
    if let Err(error) = context.state().publisher().write_reports().await {
        tracing::debug!("the list of instances may be a moment old: {error:#}");
    }
}

/// Source: ShenYu 2.7.1, as executed: whatever the id.
async fn find(_context: Context, Path(_id): Path<String>) -> ApiResult<Reply<NoData>> {
    Ok(Reply::maybe("detail success", None))
}

/// Instances by state.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AnalysisResponse {
    /// The states that occur in the namespace, with how many instances are in each.
    #[schema(inline)]
    pie_data: Vec<PieSlice>,
    /// All three states over all namespaces, twenty points each, the newest last.
    #[schema(inline)]
    line_data: Vec<Line>,
}

/// One state now.
#[derive(Debug, Serialize, ToSchema)]
struct PieSlice {
    /// `DELETED`, `ONLINE` or `OFFLINE`.
    name: &'static str,
    value: i64,
}

/// One state over time.
#[derive(Debug, Serialize, ToSchema)]
struct Line {
    /// As in the other list.
    name: &'static str,
    data: Vec<i64>,
}

/// A state by its name, and how many are in it.
type NamedState = (&'static str, fn(&InstanceCounts) -> i64);

const STATES: [NamedState; 3] = [
    ("DELETED", |counts| counts.deleted),
    ("ONLINE", |counts| counts.online),
    ("OFFLINE", |counts| counts.offline),
];

async fn analyse(
    context: Context,
    Path(namespace_id): Path<String>,
) -> ApiResult<Reply<AnalysisResponse>> {
    show_own(&context).await;
    let mut tx = context.read().await?;
    let now = instance::count(&mut tx, Some(&namespace_id)).await?;
    let trend = instance::trend(&mut tx).await?;
    let slices = STATES.map(|(name, of)| PieSlice { name, value: of(&now) });
    let line = |(name, of): NamedState| {
        let mut data = vec![0; POINTS.saturating_sub(trend.len())];
        data.extend(trend.iter().map(of));
        Line { name, data }
    };
    let analysis = AnalysisResponse {
        pie_data: slices.into_iter().filter(|slice| slice.value > 0).collect(),
        line_data: STATES.map(line).into(),
    };
    Ok(Reply::data(analysis))
}

/// The word of an instance.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
struct BeatRequest {
    /// Its address.
    #[serde(deserialize_with = "lenient::opt_string")]
    instance_ip: Option<String>,
    /// Its port.
    #[serde(deserialize_with = "lenient::opt_string")]
    instance_port: Option<String>,
    /// What it is.
    #[serde(deserialize_with = "lenient::opt_string")]
    instance_type: Option<String>,
    /// Its machine, JSON text.
    #[serde(deserialize_with = "lenient::opt_string")]
    instance_info: Option<String>,
    /// The namespace.
    #[serde(deserialize_with = "lenient::opt_string")]
    namespace_id: Option<String>,
}

impl RequestBody for BeatRequest {
    async fn check(&self, _state: &AppState, _rules: &mut Violations) -> ApiResult<()> {
        Ok(())
    }
}

async fn beat(context: Context, Body(request): Body<BeatRequest>) -> ApiResult<PlainText> {
    let member = |name: &str, value: Option<&str>| -> ApiResult<String> {
        let Some(text) = filled(value) else {
            return Err(ApiError::refused(format!("{name}: is blank, expected a text")));
        };
        if text.len() > MAX_KEY_BYTES {
            let told = too_long(text, MAX_KEY_BYTES);
            return Err(ApiError::refused(format!("{name}: {told}")));
        }
        Ok(text.to_owned())
    };
    let key = InstanceKey {
        namespace_id: member("namespaceId", request.namespace_id.as_deref())?,
        ip: member("instanceIp", request.instance_ip.as_deref())?,
        port: member("instancePort", request.instance_port.as_deref())?,
        kind: member("instanceType", request.instance_type.as_deref())?,
    };
    let info = request.instance_info.unwrap_or_default();
    if info.len() > MAX_INFO_BYTES {
        let told = too_long(&info, MAX_INFO_BYTES);
        return Err(ApiError::refused(format!("instanceInfo: {told}")));
    }
    context.state().publisher().instances().beat(key, info);
    Ok(PlainText("success"))
}
