//! Refusing U+0000, which PostgreSQL does not store in a text and SQLite does.
//!
//! Once for everything that a call brings along, so that no handler has to think of it and both
//! stores answer alike.

use serde_json::Value;

use crate::error::{ApiError, ApiResult};

/// How much of a refused value the answer repeats, in characters.
const SHOWN: usize = 64;

/// Looks at names and values of parameters, which are decoded.
///
/// # Errors
/// A refusal that names the field, the value and what was expected.
pub(crate) fn refuse_in_pairs<'a>(
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> ApiResult<()> {
    let found = pairs.into_iter().find(|(name, value)| name.contains('\0') || value.contains('\0'));
    match found {
        Some((name, value)) => Err(refusal(name, value)),
        None => Ok(()),
    }
}

/// Looks at all texts of a JSON body, names of members included.
///
/// # Errors
/// As [`refuse_in_pairs`]; a body that is no JSON passes, whoever reads it says so.
pub(crate) fn refuse_in_json(body: &[u8]) -> ApiResult<()> {
    // JSON holds it in no other spelling, and few bodies in this one.
    const ESCAPED: &[u8] = br"\u0000";
    if !body.windows(ESCAPED.len()).any(|window| window == ESCAPED) {
        return Ok(());
    }
    let Ok(value) = serde_json::from_slice::<Value>(body) else { return Ok(()) };
    match find(&value, "") {
        Some((field, text)) => Err(refusal(&field, text)),
        None => Ok(()),
    }
}

/// The first text with the character, and its place, such as `ruleConditions[0].paramValue`.
fn find<'a>(value: &'a Value, place: &str) -> Option<(String, &'a str)> {
    match value {
        Value::String(text) => text.contains('\0').then(|| (place.to_owned(), text.as_str())),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .find_map(|(index, element)| find(element, &format!("{place}[{index}]"))),
        Value::Object(members) => members.iter().find_map(|(name, member)| {
            let dot = if place.is_empty() { "" } else { "." };
            let place = format!("{place}{dot}{name}");
            if name.contains('\0') {
                return Some((place, name.as_str()));
            }
            find(member, &place)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn refusal(field: &str, value: &str) -> ApiError {
    let lower = field.to_ascii_lowercase();
    let secret = ["password", "secret", "token"].iter().any(|word| lower.contains(word));
    let shown: String = value.chars().take(SHOWN).collect();
    let cut = if shown.len() < value.len() { "…" } else { "" };
    let what =
        if secret { "the value".to_owned() } else { format!("\"{}{cut}\"", shown.escape_debug()) };
    ApiError::refused(format!(
        "{}: {what} holds the character U+0000, expected a text without it",
        field.escape_debug()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(body: &str) -> Result<(), String> {
        refuse_in_json(body.as_bytes()).map_err(|error| error.client_message().into_owned())
    }

    #[test]
    fn texts_in_json_are_found_wherever_they_are() {
        for (body, field) in [
            (r#"{"name":"a\u0000b"}"#, "name: \"a\\0b\""),
            (r#"{"list":[{"x":1},{"value":"\u0000"}]}"#, "list[1].value: \"\\0\""),
            (r#"["ok","a\u0000"]"#, "[1]: \"a\\0\""),
            (r#"{"a\u0000":1}"#, "a\\0: \"a\\0\""),
            (r#"{"oldPassword":"x\u0000"}"#, "oldPassword: the value"),
        ] {
            let told = json(body).unwrap_err();
            let rest = " holds the character U+0000, expected a text without it";
            assert_eq!(told, format!("{field}{rest}"), "{body}");
        }
    }

    #[test]
    fn what_only_looks_like_it_passes() {
        // A backslash and digits; JSON text inside a text; no JSON at all.
        for body in [r#"{"name":"a\\u0000"}"#, r#"{"handle":"{\"a\":\"\\u0000\"}"}"#, r"\u0000"] {
            assert_eq!(json(body), Ok(()), "{body}");
        }
    }

    #[test]
    fn long_values_are_cut() {
        let value = format!("{}\0", "x".repeat(100));
        let told = refuse_in_pairs([("a", "b"), ("name", value.as_str())]).unwrap_err();
        let shown = format!("name: \"{}…\" holds", "x".repeat(SHOWN));
        assert!(told.client_message().starts_with(&shown), "{told}");
        assert!(refuse_in_pairs([("a\0", "b")]).is_err());
        assert!(refuse_in_pairs([("a", "b")]).is_ok());
    }
}
