//! Rules: the second level of matching, inside one selector.

use serde::{Deserialize, Serialize};

use super::{Condition, MatchMode, lenient};

/// A rule: which requests of its selector it takes, and what the plugin does with them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// Name of the plugin it belongs to.
    #[serde(default, deserialize_with = "lenient::string")]
    pub plugin_name: String,
    /// Id of the selector it belongs to.
    #[serde(default, deserialize_with = "lenient::string")]
    pub selector_id: String,
    /// 0 = and, 1 = or; see [`Rule::mode`].
    #[serde(default, deserialize_with = "lenient::i32_or_default")]
    pub match_mode: i32,
    /// Whether a match is worth a line in the log. The reference spells it with one g here.
    #[serde(rename = "loged", default, deserialize_with = "lenient::bool_or_default")]
    pub logged: bool,
    /// Rule-level settings as JSON text.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub handle: Option<String>,
    /// The conditions; the reference calls them otherwise than on selectors.
    #[serde(rename = "conditionDataList", default, skip_serializing_if = "Option::is_none")]
    pub condition_list: Option<Vec<Condition>>,
    /// The conditions before an edit. Part of the wire; nothing here depends on it.
    #[serde(rename = "beforeConditionDataList", default, skip_serializing_if = "Option::is_none")]
    pub before_condition_list: Option<Vec<Condition>>,
    /// Asks the reference not to cache matches of this record; no effect on matching.
    #[serde(default, deserialize_with = "lenient::bool_or_default")]
    pub match_restful: bool,
    /// The key of the object within its selector.
    #[serde(default, deserialize_with = "lenient::string")]
    pub id: String,
    /// Name given by a person or a registering client.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub name: Option<String>,
    /// Whether it takes part in matching.
    #[serde(default, deserialize_with = "lenient::bool_or_default")]
    pub enabled: bool,
    /// Precedence, ascending; absent counts as 0.
    #[serde(
        default,
        deserialize_with = "lenient::opt_i32",
        skip_serializing_if = "Option::is_none"
    )]
    pub sort: Option<i32>,
    /// The namespace it belongs to.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub namespace_id: Option<String>,
}

impl Rule {
    /// How the conditions are joined.
    #[must_use]
    pub const fn mode(&self) -> MatchMode {
        MatchMode::from_code(self.match_mode)
    }

    /// The conditions, empty when absent.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        self.condition_list.as_deref().unwrap_or_default()
    }
}
