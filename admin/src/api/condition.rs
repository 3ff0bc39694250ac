//! Conditions of selectors and rules, as the API takes and gives them.

use longmen_core::condition::{Compiler, validate};
use longmen_core::model::{Condition, Level};
use longmen_db::Tx;
use longmen_db::repository::{ConditionRow, NewCondition};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::{ApiError, ApiResult};
use crate::extract::lenient;
use crate::state::AppState;

/// One condition in a request.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConditionRequest {
    /// Kept when given, so that an edit does not give the condition a new identity.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub id: Option<String>,
    /// What is looked at: `uri`, `header`, `query`, …
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub param_type: Option<String>,
    /// How it is compared: `=`, `match`, `startsWith`, …
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub operator: Option<String>,
    /// Name of the header, parameter or cookie; `/` for the others.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub param_name: Option<String>,
    /// What the value is compared with; stored trimmed.
    #[serde(default, deserialize_with = "lenient::opt_string")]
    pub param_value: Option<String>,
}

impl ConditionRequest {
    /// The condition as it was sent: nothing trimmed, absent texts empty. Checks run on this form.
    #[must_use]
    pub(crate) fn as_sent(&self) -> Condition {
        Condition {
            param_type: self.param_type.clone().unwrap_or_default(),
            operator: self.operator.clone().unwrap_or_default(),
            param_name: self.param_name.clone(),
            param_value: self.param_value.clone(),
        }
    }

    /// The condition as it is stored and synced: the value trimmed, an absent one empty.
    ///
    /// Source: ShenYu 2.7.1 trims on save, after its checks; a rule condition without a value is
    /// synced with `""`.
    #[must_use]
    pub(crate) fn to_condition(&self) -> Condition {
        Condition {
            param_name: Some(self.param_name.clone().unwrap_or_default()),
            param_value: Some(self.param_value.as_deref().unwrap_or_default().trim().to_owned()),
            ..self.as_sent()
        }
    }
}

/// One condition in an answer.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConditionResponse {
    /// Identity of the condition.
    pub id: String,
    /// The selector it belongs to; absent on rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector_id: Option<String>,
    /// The rule it belongs to; absent on selectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule_id: Option<String>,
    /// What is looked at.
    pub param_type: String,
    /// The same word again; stock consoles read this one.
    pub param_type_name: String,
    /// How it is compared.
    pub operator: String,
    /// The same word again; stock consoles read this one.
    pub operator_name: String,
    /// Name of the header, parameter or cookie.
    pub param_name: Option<String>,
    /// What the value is compared with.
    pub param_value: Option<String>,
    /// When it was stored, `yyyy-MM-dd HH:mm:ss`.
    pub date_created: String,
    /// When it was last changed, `yyyy-MM-dd HH:mm:ss`.
    pub date_updated: String,
}

impl ConditionResponse {
    /// A stored condition of a selector or rule.
    #[must_use]
    pub(crate) fn new(tx: &Tx, level: Level, row: ConditionRow) -> Self {
        let (selector_id, rule_id) = match level {
            Level::Selector => (Some(row.owner_id), None),
            Level::Rule => (None, Some(row.owner_id)),
        };
        Self {
            id: row.id,
            selector_id,
            rule_id,
            param_type_name: row.condition.param_type.clone(),
            param_type: row.condition.param_type,
            operator_name: row.condition.operator.clone(),
            operator: row.condition.operator,
            param_name: row.condition.param_name,
            param_value: row.condition.param_value,
            date_created: tx.date_text(row.created_ms),
            date_updated: tx.date_text(row.updated_ms),
        }
    }
}

/// Refuses conditions that the reference refuses, with its text, and those that no gateway could
/// use, with ours. Looks at the values as they were sent, before they are trimmed.
///
/// # Errors
/// The text of the first fault.
pub(crate) fn check_usable(state: &AppState, conditions: &[ConditionRequest]) -> ApiResult<()> {
    let sent: Vec<Condition> = conditions.iter().map(ConditionRequest::as_sent).collect();
    let mut compiler = Compiler::new(state.store().time_zone().clone());
    let Some(fault) = validate(&mut compiler, &sent).into_iter().next() else { return Ok(()) };
    let ours = fault.to_string();
    Err(ApiError::refused(fault.stock.unwrap_or(ours)))
}

/// The conditions to store: of the ids that were sent only those in `own` are kept, each once.
#[must_use]
pub(crate) fn keep_ids(
    conditions: &[(Option<String>, Condition)],
    own: &[String],
) -> Vec<NewCondition> {
    let mut free: Vec<&String> = own.iter().collect();
    let mut keep = |id: &Option<String>| {
        let at = free.iter().position(|own| Some(*own) == id.as_ref())?;
        Some(free.swap_remove(at).clone())
    };
    conditions
        .iter()
        .map(|(id, condition)| NewCondition { id: keep(id), condition: condition.clone() })
        .collect()
}

/// Conditions on one line, for the operation log.
#[must_use]
pub(crate) fn in_words(conditions: &[Condition]) -> String {
    let one = |condition: &Condition| {
        let (name, value) = (condition.param_name.as_deref(), condition.param_value.as_deref());
        let (kind, operator) = (&condition.param_type, &condition.operator);
        format!("{kind} {} {operator} {}", name.unwrap_or_default(), value.unwrap_or_default())
    };
    conditions.iter().map(one).collect::<Vec<_>>().join(", ")
}
