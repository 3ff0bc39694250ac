//! Readers for members of request bodies, as lenient as the reference's.
//!
//! A number or boolean may come as text, a text as number or boolean; `""` means "not set" for
//! numbers and booleans; numbers with a fraction are cut for integers, and `0`/`1` are booleans.
//! An object or list where a scalar belongs makes the whole body unreadable.
//!
//! Use with `#[serde(default, deserialize_with = "lenient::opt_bool")]` on `Option` members.
//!
//! Source: ShenYu 2.7.1 admin, JSON binding (strings for booleans and numbers as executed; the rest
//! by the defaults of its reader).

use serde::{Deserialize, Deserializer, de::Error};
use serde_json::Value;

/// Reads a text; numbers and booleans are written out.
///
/// # Errors
/// An object or a list.
pub fn opt_string<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        Value::Bool(value) => Ok(Some(value.to_string())),
        Value::Number(value) => Ok(Some(value.to_string())),
        other @ (Value::Array(_) | Value::Object(_)) => Err(unexpected(&other, "a text")),
    }
}

/// Reads a boolean.
///
/// # Errors
/// A text other than `true`, `false` or blank, an object or a list.
pub fn opt_bool<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    match &value {
        Value::Null => Ok(None),
        Value::Bool(value) => Ok(Some(*value)),
        Value::Number(number) => Ok(Some(number.as_f64().is_none_or(|number| number != 0.0))),
        Value::String(text) => match text.trim() {
            "" | "null" => Ok(None),
            "true" | "True" | "TRUE" => Ok(Some(true)),
            "false" | "False" | "FALSE" => Ok(Some(false)),
            _ => Err(unexpected(&value, "a boolean")),
        },
        Value::Array(_) | Value::Object(_) => Err(unexpected(&value, "a boolean")),
    }
}

/// Reads a 32-bit integer.
///
/// # Errors
/// What is no number, or one out of range.
pub fn opt_i32<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i32>, D::Error> {
    let Some(wide) = opt_i64(deserializer)? else { return Ok(None) };
    i32::try_from(wide)
        .map(Some)
        .map_err(|_| D::Error::custom(format!("{wide} is out of the range of a 32-bit integer")))
}

/// Reads a 64-bit integer.
///
/// # Errors
/// What is no number, or one out of range.
pub fn opt_i64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    match &value {
        Value::Null => Ok(None),
        Value::Number(number) => number
            .as_i64()
            .or_else(|| number.as_f64().and_then(whole))
            .map(Some)
            .ok_or_else(|| unexpected(&value, "an integer")),
        Value::String(text) => match text.trim() {
            "" | "null" => Ok(None),
            text => text.parse().map(Some).map_err(|_| unexpected(&value, "an integer")),
        },
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            Err(unexpected(&value, "an integer"))
        }
    }
}

/// The whole part of `number`, if 64 bits can hold it.
fn whole(number: f64) -> Option<i64> {
    // 2^53: beyond it a double no longer holds every integer, so the cut would be a guess.
    const LIMIT: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "checked against the limit")]
    (number.abs() <= LIMIT).then(|| number.trunc() as i64)
}

/// How much of a refused text an error repeats, in characters.
const SHOWN: usize = 64;

fn unexpected<E: Error>(value: &Value, wanted: &str) -> E {
    let found = match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => format!("the number {value}"),
        // Only members that are numbers or booleans refuse a text, and none of those is secret.
        Value::String(text) => {
            let shown: String = text.chars().take(SHOWN).collect();
            let cut = if shown.len() < text.len() { "…" } else { "" };
            format!("the text \"{}{cut}\"", shown.escape_debug())
        }
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    };
    E::custom(format!("{found} where {wanted} belongs"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Sample {
        #[serde(default, deserialize_with = "opt_bool")]
        flag: Option<bool>,
        #[serde(default, deserialize_with = "opt_i32")]
        number: Option<i32>,
        #[serde(default, deserialize_with = "opt_string")]
        text: Option<String>,
    }

    #[test]
    fn scalars_stand_in_for_each_other() {
        for (input, flag, number, text) in [
            (json!({"flag": true, "number": 7, "text": "x"}), Some(true), Some(7), Some("x")),
            (json!({"flag": "true", "number": "200", "text": 5}), Some(true), Some(200), Some("5")),
            (json!({"flag": 0, "number": 7.9, "text": false}), Some(false), Some(7), Some("false")),
            (json!({"flag": "", "number": "", "text": ""}), None, None, Some("")),
            (json!({"flag": null, "number": null, "text": null}), None, None, None),
            (json!({"unknown": {"a": []}}), None, None, None),
        ] {
            let read: Sample = serde_json::from_value(input.clone()).unwrap();
            let wanted = Sample { flag, number, text: text.map(str::to_owned) };
            assert_eq!(read, wanted, "{input}");
        }
    }

    #[test]
    fn what_cannot_stand_in_makes_the_body_unreadable() {
        for input in [
            json!({"flag": "yes"}),
            json!({"flag": {}}),
            json!({"number": "seven"}),
            json!({"number": true}),
            json!({"number": 4_294_967_296_i64}),
            json!({"text": []}),
        ] {
            assert!(serde_json::from_value::<Sample>(input.clone()).is_err(), "{input}");
        }
    }
}
