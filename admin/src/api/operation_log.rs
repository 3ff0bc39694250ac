//! The operation log.

use jiff::{Timestamp, tz::TimeZone};
use longmen_db::{
    PageRequest,
    repository::operation_log::{self, OperationFilter, OperationRow},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    context::Context,
    error::ApiResult,
    permission::{Permission::Authenticated, SUPER_USER},
    reply::Reply,
    router::Routes,
};

pub(super) fn routes() -> Routes {
    Routes::new("operation-log").get(
        "/operation-record/log/list",
        Authenticated,
        "Lists the newest entries of the operation log",
        list,
    )
}

/// An entry of the operation log.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct OperationResponse {
    id: String,
    color: String,
    context: String,
    operator: String,
    /// `MM-dd HH:mm:ss`.
    operation_time: String,
    operation_type: String,
}

async fn list(context: Context, (): ()) -> ApiResult<Reply<Vec<OperationResponse>>> {
    let caller = context.caller()?;
    let filter = OperationFilter {
        operator: (caller.name != SUPER_USER).then(|| caller.name.clone()),
        ..OperationFilter::default()
    };
    let limit = context.state().config().security.dashboard.record_log_limit;
    let newest = PageRequest::new(1, i64::from(limit));
    let page = operation_log::page(&mut *context.read().await?, &filter, newest).await?;
    let zone = context.state().store().time_zone();
    let rows = page.rows.into_iter().map(|row| OperationResponse::new(row, zone)).collect();
    Ok(Reply::new("ok", rows))
}

impl OperationResponse {
    fn new(row: OperationRow, zone: &TimeZone) -> Self {
        let at = Timestamp::from_millisecond(row.at_ms).unwrap_or(Timestamp::UNIX_EPOCH);
        let operation_time =
            at.to_zoned_datetime(zone.clone()).strftime("%m-%d %H:%M:%S").to_string();
        Self {
            id: row.id,
            color: row.color,
            context: row.context,
            operator: row.operator,
            operation_time,
            operation_type: row.operation_type,
        }
    }
}
