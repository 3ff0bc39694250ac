//! Rules in answers.

use longmen_core::model::Rule;
use longmen_db::Tx;
use longmen_db::repository::conditioned::Stored;
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::condition::ConditionResponse;
use crate::api::conditioned::response::{CommonResponse, conditions};
use crate::error::ApiResult;

/// A rule in an answer; lists leave the conditions null. It does not tell its namespace.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RuleResponse {
    #[serde(flatten)]
    common: CommonResponse,
    /// The selector it belongs to.
    selector_id: String,
    /// The conditions.
    rule_conditions: Option<Vec<ConditionResponse>>,
}

impl RuleResponse {
    /// A row of a list.
    #[must_use]
    pub(crate) fn listed(tx: &Tx, row: Stored<Rule>) -> Self {
        Self {
            common: CommonResponse::new(tx, &row),
            selector_id: row.object.selector_id,
            rule_conditions: None,
        }
    }

    /// One rule with its conditions.
    ///
    /// # Errors
    /// Failures of the store.
    pub(crate) async fn detailed(tx: &mut Tx, row: Stored<Rule>) -> ApiResult<Self> {
        let conditions = conditions::<Rule>(tx, &row.object.id).await?;
        Ok(Self { rule_conditions: Some(conditions), ..Self::listed(tx, row) })
    }
}
