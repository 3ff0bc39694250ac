//! Checks of handles before they are stored.

use crate::error::{ApiError, ApiResult};
use crate::state::AppState;

/// Whose handle it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandleScope {
    /// Of a selector.
    Selector,
    /// Of a rule.
    Rule,
}

/// How much of a refused handle an error text repeats, in characters.
const SHOWN: usize = 64;

/// Refuses a handle that gateways could not read.
///
/// Absent and blank handles mean "nothing set" and always pass; any other must be JSON text, for
/// plugins known here and unknown ones alike. What the members must be is the plugin's to say.
///
/// # Errors
/// A refusal that names the field, the value and what was expected. It is ours: the reference
/// stores any text, and its gateways then fail on the requests that match.
pub(crate) fn validate_handle(
    _state: &AppState,
    plugin_name: &str,
    scope: HandleScope,
    handle: Option<&str>,
) -> ApiResult<()> {
    let Some(text) = handle.filter(|text| !text.trim().is_empty()) else { return Ok(()) };
    well_formed(plugin_name, scope, text).map_err(ApiError::refused)
}

fn well_formed(plugin_name: &str, scope: HandleScope, text: &str) -> Result<(), String> {
    let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) else { return Ok(()) };
    let shown: String = text.chars().take(SHOWN).collect();
    let cut = if shown.len() < text.len() { "…" } else { "" };
    let example = match scope {
        HandleScope::Selector => "a list or object, or nothing",
        HandleScope::Rule => "an object such as {\"timeout\":3000}, or nothing",
    };
    Err(format!(
        "handle: `{shown}{cut}` is no JSON text ({error}); the plugin {plugin_name} expects {example}"
    ))
}

#[cfg(test)]
mod tests {
    use super::{HandleScope, well_formed};

    #[test]
    fn what_is_no_json_is_refused_with_field_value_and_expectation() {
        assert_eq!(
            well_formed("divide", HandleScope::Rule, "not json").unwrap_err(),
            "handle: `not json` is no JSON text (expected ident at line 1 column 2); \
             the plugin divide expects an object such as {\"timeout\":3000}, or nothing"
        );
        let long = format!("{{{}", "你".repeat(100));
        let text = well_formed("divide", HandleScope::Selector, &long).unwrap_err();
        assert!(text.contains(&format!("`{{{}…`", "你".repeat(63))), "{text}");
    }

    #[test]
    fn any_json_passes() {
        for text in ["{}", "[]", "null", "\"x\"", r#"{"retry":"3","unknown":null}"#, " {} "] {
            assert_eq!(well_formed("divide", HandleScope::Rule, text), Ok(()), "{text}");
        }
    }
}
