//! Conditions that choose requests by their path.

use serde_json::{Value, json};

/// A condition on the path of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathCondition {
    /// The operator, such as `=` or `pathPattern`.
    pub operator: &'static str,
    /// The path or pattern.
    pub value: String,
}

impl PathCondition {
    /// Exactly this path.
    #[must_use]
    pub fn equal(path: impl Into<String>) -> Self {
        Self { operator: "=", value: path.into() }
    }

    /// All paths that begin with this text.
    #[must_use]
    pub fn starts_with(prefix: impl Into<String>) -> Self {
        Self { operator: "startsWith", value: prefix.into() }
    }

    /// All paths of a pattern such as `/orders/**`.
    #[must_use]
    pub fn pattern(pattern: impl Into<String>) -> Self {
        Self { operator: "pathPattern", value: pattern.into() }
    }

    /// The condition as the admin takes it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "paramType": "uri", "operator": self.operator, "paramName": "/",
            "paramValue": self.value,
        })
    }
}
