//! Checks of handles before they are stored.

use longmen_core::chain::HandleFault;
use longmen_core::model::Level;

use crate::error::{ApiError, ApiResult};
use crate::state::AppState;

/// How much of a refused handle an error text repeats, in characters.
const SHOWN: usize = 64;

/// Refuses a handle that gateways could not read.
///
/// Absent and blank handles mean "nothing set" and always pass; any other must be JSON text, and for
/// a plugin of this build what the plugin itself reads: the very code a gateway compiles it with.
///
/// # Errors
/// A refusal that names the field, the value and what was expected. It is ours: the reference
/// stores any text, and its gateways then fail on the requests that match.
pub(crate) fn validate_handle(
    state: &AppState,
    plugin_name: &str,
    level: Level,
    handle: Option<&str>,
) -> ApiResult<()> {
    let Some(text) = handle.filter(|text| !text.trim().is_empty()) else { return Ok(()) };
    well_formed(plugin_name, level, text).map_err(ApiError::refused)?;
    let Some(plugin) = state.plugins().get(plugin_name) else { return Ok(()) };
    let read = match level {
        Level::Selector => plugin.compile_selector(text).map(|_| ()),
        Level::Rule => plugin.compile_rule(text).map(|_| ()),
    };
    read.map_err(|faults| {
        let texts: Vec<String> = faults.iter().map(|fault| told("handle", fault)).collect();
        ApiError::refused(texts.join("| "))
    })
}

/// Refuses settings of a plugin that gateways could not read. Blank ones always pass.
///
/// # Errors
/// A refusal that names the field, the value and what was expected; ours, as for handles.
pub(crate) fn validate_config(
    state: &AppState,
    plugin_name: &str,
    config: Option<&str>,
) -> ApiResult<()> {
    let Some(text) = config.filter(|text| !text.trim().is_empty()) else { return Ok(()) };
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
        let shown: String = text.chars().take(SHOWN).collect();
        return Err(ApiError::refused(format!(
            "config: `{shown}` is no JSON text ({error}); the plugin {plugin_name} expects an \
             object, or nothing"
        )));
    }
    let Some(plugin) = state.plugins().get(plugin_name) else { return Ok(()) };
    plugin.compile_config(text).map(|_| ()).map_err(|faults| {
        let texts: Vec<String> = faults.iter().map(|fault| told("config", fault)).collect();
        ApiError::refused(texts.join("| "))
    })
}

/// A fault as a field of the request.
fn told(member: &str, fault: &HandleFault) -> String {
    let dot = if fault.field.is_empty() || fault.field.starts_with('[') { "" } else { "." };
    format!("{member}{dot}{fault}")
}

fn well_formed(plugin_name: &str, level: Level, text: &str) -> Result<(), String> {
    let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) else { return Ok(()) };
    let shown: String = text.chars().take(SHOWN).collect();
    let cut = if shown.len() < text.len() { "…" } else { "" };
    let example = match level {
        Level::Selector => "a list or object, or nothing",
        Level::Rule => "an object such as {\"timeout\":3000}, or nothing",
    };
    Err(format!(
        "handle: `{shown}{cut}` is no JSON text ({error}); the plugin {plugin_name} expects {example}"
    ))
}

#[cfg(test)]
mod tests {
    use super::{Level, well_formed};

    #[test]
    fn what_is_no_json_is_refused_with_field_value_and_expectation() {
        assert_eq!(
            well_formed("divide", Level::Rule, "not json").unwrap_err(),
            "handle: `not json` is no JSON text (expected ident at line 1 column 2); \
             the plugin divide expects an object such as {\"timeout\":3000}, or nothing"
        );
        let long = format!("{{{}", "你".repeat(100));
        let text = well_formed("divide", Level::Selector, &long).unwrap_err();
        assert!(text.contains(&format!("`{{{}…`", "你".repeat(63))), "{text}");
    }

    #[test]
    fn any_json_passes() {
        for text in ["{}", "[]", "null", "\"x\"", r#"{"retry":"3","unknown":null}"#, " {} "] {
            assert_eq!(well_formed("divide", Level::Rule, text), Ok(()), "{text}");
        }
    }
}
