//! Conditions of selectors and rules, as text.

use serde::{Deserialize, Serialize};

use super::lenient;

/// One condition as a person configured it; compiled once by [`crate::condition`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What is looked at: `uri`, `header`, `query`, `cookie`, `req_method`, `domain`, `host`,
    /// `ip`, `post`; others never match.
    #[serde(default, deserialize_with = "lenient::string")]
    pub param_type: String,
    /// How it is compared: `match`, `=`, `regex`, `contains`, `startsWith`, `endsWith`, `exclude`,
    /// `pathPattern`, `isBlank`, `TimeBefore`, `TimeAfter`; others never match.
    #[serde(default, deserialize_with = "lenient::string")]
    pub operator: String,
    /// Name of the header, parameter, cookie or context field; meaningless for the others.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub param_name: Option<String>,
    /// What the value is compared with; trimmed before use.
    #[serde(
        default,
        deserialize_with = "lenient::opt_string",
        skip_serializing_if = "Option::is_none"
    )]
    pub param_value: Option<String>,
}

/// How the conditions of one selector or rule are joined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum MatchMode {
    /// All conditions must hold; an empty list holds.
    #[default]
    And,
    /// At least one condition must hold; an empty list does not.
    Or,
}

impl MatchMode {
    /// Reads the wire code: 1 is OR, every other number AND.
    ///
    /// Source: executed on ShenYu 2.7.1.
    #[must_use]
    pub const fn from_code(code: i32) -> Self {
        if code == 1 { Self::Or } else { Self::And }
    }

    /// The wire code: 0 for AND, 1 for OR.
    #[must_use]
    pub const fn code(self) -> i32 {
        match self {
            Self::And => 0,
            Self::Or => 1,
        }
    }

    /// The word used by the admin's answers: `and` or `or`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::And => "and",
            Self::Or => "or",
        }
    }
}
