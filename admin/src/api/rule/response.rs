//! Rules in answers.

use longmen_core::model::{Level, Rule};
use longmen_db::Tx;
use longmen_db::repository::conditioned::{self, Stored};
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::condition::ConditionResponse;
use crate::error::ApiResult;

/// A rule in an answer; lists leave the conditions null. It does not tell its namespace.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RuleResponse {
    /// Its id.
    pub id: String,
    /// The selector it belongs to.
    pub selector_id: String,
    /// 0 = all conditions, 1 = any.
    pub match_mode: i32,
    /// `and` or `or`.
    pub match_mode_name: &'static str,
    /// Its name.
    pub name: String,
    /// Whether it takes part in matching.
    pub enabled: bool,
    /// Whether a match is logged; the reference spells it so.
    #[serde(rename = "loged")]
    pub logged: bool,
    /// Precedence, ascending.
    pub sort: i32,
    /// Settings of the plugin, JSON text.
    pub handle: Option<String>,
    /// Asks stock gateways not to cache its matches.
    pub match_restful: bool,
    /// The conditions.
    pub rule_conditions: Option<Vec<ConditionResponse>>,
    /// When it was stored, `yyyy-MM-dd HH:mm:ss`.
    pub date_created: String,
    /// When it was last changed, `yyyy-MM-dd HH:mm:ss`.
    pub date_updated: String,
}

impl RuleResponse {
    /// A row of a list.
    #[must_use]
    pub(crate) fn listed(tx: &Tx, row: Stored<Rule>) -> Self {
        let Stored { object: rule, created_ms, updated_ms } = row;
        Self {
            match_mode_name: rule.mode().name(),
            id: rule.id,
            selector_id: rule.selector_id,
            match_mode: rule.match_mode,
            name: rule.name.unwrap_or_default(),
            enabled: rule.enabled,
            logged: rule.logged,
            sort: rule.sort.unwrap_or_default(),
            handle: rule.handle,
            match_restful: rule.match_restful,
            rule_conditions: None,
            date_created: tx.date_text(created_ms),
            date_updated: tx.date_text(updated_ms),
        }
    }

    /// One rule with its conditions.
    ///
    /// # Errors
    /// Failures of the store.
    pub(crate) async fn detailed(tx: &mut Tx, row: Stored<Rule>) -> ApiResult<Self> {
        let conditions = conditioned::conditions::<Rule>(tx, &row.object.id).await?;
        let mut answer = Self::listed(tx, row);
        answer.rule_conditions = Some(
            conditions
                .into_iter()
                .map(|row| ConditionResponse::new(tx, Level::Rule, row))
                .collect(),
        );
        Ok(answer)
    }
}
