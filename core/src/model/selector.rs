//! Selectors: the first level of matching inside one plugin.

use serde::{Deserialize, Serialize};

use super::{Condition, MatchMode, lenient};

/// A selector: which requests a plugin looks at, and with which selector-level handle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Selector {
    /// Id of the plugin template it belongs to.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub plugin_id: Option<String>,
    /// Name of the plugin it belongs to.
    #[serde(default, deserialize_with = "lenient::string")]
    pub plugin_name: String,
    /// 0 = and, 1 = or; see [`Selector::mode`].
    #[serde(default, deserialize_with = "lenient::i32_or_default")]
    pub match_mode: i32,
    /// 0 = every request, 1 = by conditions; see [`Selector::kind`].
    #[serde(rename = "type", default, deserialize_with = "lenient::i32_or_default")]
    pub selector_type: i32,
    /// Whether a match is worth a line in the log.
    #[serde(default, deserialize_with = "lenient::bool_or_default")]
    pub logged: bool,
    /// Whether rules are matched after the selector; otherwise the selector alone decides.
    #[serde(default = "lenient::yes", deserialize_with = "lenient::bool_or_true")]
    pub continued: bool,
    /// Selector-level settings as JSON text.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub handle: Option<String>,
    /// The conditions; absent in delete events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition_list: Option<Vec<Condition>>,
    /// The conditions before an edit. Part of the wire; nothing here depends on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_condition_list: Option<Vec<Condition>>,
    /// Asks the reference not to cache matches of this record; no effect on matching.
    #[serde(default, deserialize_with = "lenient::bool_or_default")]
    pub match_restful: bool,
    /// The key of the object within its plugin.
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

impl Default for Selector {
    fn default() -> Self {
        Self {
            plugin_id: None,
            plugin_name: String::new(),
            match_mode: 0,
            selector_type: 0,
            logged: false,
            continued: true,
            handle: None,
            condition_list: None,
            before_condition_list: None,
            match_restful: false,
            id: String::new(),
            name: None,
            enabled: false,
            sort: None,
            namespace_id: None,
        }
    }
}

impl Selector {
    /// How the conditions are joined.
    #[must_use]
    pub const fn mode(&self) -> MatchMode {
        MatchMode::from_code(self.match_mode)
    }

    /// Whether the conditions are looked at.
    #[must_use]
    pub const fn kind(&self) -> SelectorType {
        SelectorType::from_code(self.selector_type)
    }

    /// The conditions, empty when absent.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        self.condition_list.as_deref().unwrap_or_default()
    }
}

/// Whether a selector takes every request or goes by its conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SelectorType {
    /// Every request; the last of its rules is used, whatever that rule's conditions say.
    Full,
    /// By conditions; without any it never matches.
    Custom,
    /// A type the reference does not name: every request, but rules are matched as for custom ones.
    Other,
}

impl SelectorType {
    /// Reads the wire code.
    #[must_use]
    pub const fn from_code(code: i32) -> Self {
        match code {
            0 => Self::Full,
            1 => Self::Custom,
            _ => Self::Other,
        }
    }
}
