//! What selectors and rules show alike.

use longmen_db::Tx;
use longmen_db::repository::conditioned::{self, Conditioned, Stored};
use serde::Serialize;
use utoipa::ToSchema;

use super::Object;
use crate::api::condition::ConditionResponse;
use crate::error::ApiResult;

/// The members that both have in an answer.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::api) struct CommonResponse {
    /// Its id.
    id: String,
    /// Its name.
    name: String,
    /// 0 = all conditions, 1 = any.
    match_mode: i32,
    /// `and` or `or`.
    match_mode_name: &'static str,
    /// Precedence, ascending.
    sort: i32,
    /// Whether it takes part in matching.
    enabled: bool,
    /// Whether a match is logged; the reference spells it so.
    #[serde(rename = "loged")]
    logged: bool,
    /// Asks stock gateways not to cache its matches.
    match_restful: bool,
    /// Settings of the plugin, JSON text.
    handle: Option<String>,
    /// When it was stored, `yyyy-MM-dd HH:mm:ss`.
    date_created: String,
    /// When it was last changed, `yyyy-MM-dd HH:mm:ss`.
    date_updated: String,
}

impl CommonResponse {
    /// Those of a row.
    pub(in crate::api) fn new<T: Object>(tx: &Tx, row: &Stored<T>) -> Self {
        let parts = row.object.parts();
        Self {
            id: parts.id.to_owned(),
            name: parts.name.to_owned(),
            match_mode: parts.match_mode,
            match_mode_name: parts.mode.name(),
            sort: parts.sort,
            enabled: parts.enabled,
            logged: parts.logged,
            match_restful: parts.match_restful,
            handle: parts.handle.map(str::to_owned),
            date_created: tx.date_text(row.created_ms),
            date_updated: tx.date_text(row.updated_ms),
        }
    }
}

/// The stored conditions of one.
///
/// # Errors
/// Failures of the store.
pub(in crate::api) async fn conditions<T: Conditioned>(
    tx: &mut Tx,
    id: &str,
) -> ApiResult<Vec<ConditionResponse>> {
    let rows = conditioned::conditions::<T>(tx, id).await?;
    Ok(rows.into_iter().map(|row| ConditionResponse::new(tx, T::LEVEL, row)).collect())
}
