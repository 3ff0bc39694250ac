//! Rules in answers.

use serde::Serialize;
use utoipa::ToSchema;

use crate::api::condition::ConditionResponse;

/// A rule in an answer; lists leave the conditions null. It does not tell its namespace.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleResponse {
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
