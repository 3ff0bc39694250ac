//! Reading JSON bodies, and saying what of one cannot be read.

use serde::de::DeserializeOwned;
use serde_json::error::Category;

use crate::error::{ApiError, ApiResult};

/// Reads a JSON body.
///
/// # Errors
/// [`ApiError::Unreadable`] where there is no body at all, which is the reference's answer; else a
/// refusal that names line and column, the field, and what was expected: of a text that is no JSON,
/// of a member of a kind that cannot stand in, and of U+0000 in a text.
pub(crate) fn read_json<T: DeserializeOwned>(body: &[u8]) -> ApiResult<T> {
    if body.is_empty() {
        return Err(ApiError::Unreadable);
    }
    super::nul::refuse_in_json(body)?;
    let mut reader = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        refusal(Some(&path), error.inner())
    })?;
    reader.end().map_err(|error| refusal(None, &error))?;
    Ok(value)
}

/// The answer to a body that cannot be read; `path` is how far reading had come.
fn refusal(path: Option<&str>, error: &serde_json::Error) -> ApiError {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let text = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
    let mut place = Vec::new();
    // A reader that looked at several forms no longer knows where it was.
    if line > 0 {
        place.push(format!("line {line} column {column}"));
    }
    // The root is written as a dot, and a place that is not known as a question mark.
    if let Some(path) = path.filter(|path| !matches!(*path, "." | "?")) {
        place.push(format!("field {}", path.escape_debug()));
    }
    let what = match error.classify() {
        Category::Data | Category::Io => in_our_words(text),
        Category::Syntax | Category::Eof => format!("no JSON ({text})"),
    };
    tracing::debug!(line, column, "a request body could not be read");
    let colon = if place.is_empty() { "" } else { ": " };
    ApiError::refused(format!("request body: {}{colon}{what}", place.join(", ")))
}

/// A reader's text, in the words of JSON instead of those of this program.
fn in_our_words(text: &str) -> String {
    let Some((found, wanted)) = text.strip_prefix("invalid type: ").and_then(split_expected) else {
        return text.to_owned();
    };
    let found = match found.split_once(' ') {
        None if found == "map" => "an object".to_owned(),
        None if found == "sequence" => "a list".to_owned(),
        Some(("string", value)) => format!("the text {value}"),
        Some(("integer" | "floating", value)) => {
            format!("the number {}", value.trim_start_matches("point ").trim_matches('`'))
        }
        Some(("boolean", value)) => value.trim_matches('`').to_owned(),
        _ => found.to_owned(),
    };
    let wanted = match wanted {
        "a sequence" => "a list",
        "a string" => "a text",
        "a map" => "an object",
        wanted if wanted.starts_with("struct ") => "an object",
        wanted => wanted,
    };
    format!("{found}, expected {wanted}")
}

/// The last `, expected ` is the reader's: what stands before may be a text of the caller.
fn split_expected(text: &str) -> Option<(&str, &str)> {
    text.rsplit_once(", expected ")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::extract::{BatchIds, lenient};

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(rename_all = "camelCase", default)]
    struct Sample {
        #[serde(deserialize_with = "lenient::opt_i32")]
        sort: Option<i32>,
        #[serde(deserialize_with = "lenient::opt_bool")]
        match_restful: Option<bool>,
        conditions: Option<Vec<Condition>>,
    }

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(rename_all = "camelCase", default)]
    struct Condition {
        #[serde(deserialize_with = "lenient::opt_string")]
        param_name: Option<String>,
    }

    fn told<T: DeserializeOwned + std::fmt::Debug>(body: &str) -> String {
        read_json::<T>(body.as_bytes()).unwrap_err().client_message().into_owned()
    }

    #[test]
    fn what_cannot_be_read_is_told_with_its_place() {
        let cases = [
            (
                "{\"sort\": 1,\n \"conditions\": [{\"paramName\": \"a\"},\n {\"paramName\": [1]}]}",
                "line 3 column 19, field conditions[1].paramName: a list where a text belongs",
            ),
            (
                r#"{"sort": "first"}"#,
                "line 1 column 17, field sort: the text \"first\" where an integer belongs",
            ),
            (
                r#"{"matchRestful": "maybe"}"#,
                "line 1 column 25, field matchRestful: the text \"maybe\" where a boolean belongs",
            ),
            (
                r#"{"conditions": "none, expected x"}"#,
                "line 1 column 33, field conditions: the text \"none, expected x\", expected a list",
            ),
            (
                r#"{"conditions": 1.5}"#,
                "line 1 column 18, field conditions: the number 1.5, expected a list",
            ),
            (
                r#"{"conditions": true}"#,
                "line 1 column 19, field conditions: true, expected a list",
            ),
            ("null", "line 1 column 4: null, expected an object"),
            ("7", "line 1 column 1: the number 7, expected an object"),
            (r#"{"sort": 1,}"#, "line 1 column 12: no JSON (trailing comma)"),
            (r#"{"sort": 1 "x": 2}"#, "line 1 column 12: no JSON (expected `,` or `}`)"),
            (r#"{"sort": 1"#, "line 1 column 10: no JSON (EOF while parsing an object)"),
            (" ", "line 1 column 1: no JSON (EOF while parsing a value)"),
            ("{} {}", "line 1 column 4: no JSON (trailing characters)"),
            ("sort=1", "line 1 column 1: no JSON (expected value)"),
        ];
        let wanted = cases.map(|(_, rest)| format!("request body: {rest}"));
        assert_eq!(cases.map(|(body, _)| told::<Sample>(body)), wanted);
        assert_eq!(
            told::<BatchIds>(r#""5""#),
            "request body: expected a list of ids, or an object with ids and namespaceId"
        );
    }

    #[test]
    fn no_body_at_all_is_answered_as_the_reference_does() {
        assert_eq!(told::<Sample>(""), crate::error::BUSY);
    }
}
