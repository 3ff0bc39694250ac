//! Readers for handle members: as lenient as the reference, which takes `"3"` for 3 and `""` for
//! "not set".

use serde::{Deserialize, Deserializer};

/// A whole number, plain or quoted; absent, null and `""` are `None`.
pub(crate) fn opt_i64<'de, D: Deserializer<'de>>(d: D) -> Result<Option<i64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a whole number, plain or in quotes")]
    enum Number {
        Whole(i64),
        Float(f64),
        Text(String),
        Null(()),
    }
    let wrong = |found: &str| {
        serde::de::Error::custom(format_args!(
            "{found}, expected a whole number, plain or in quotes"
        ))
    };
    match Number::deserialize(d)? {
        Number::Null(()) => Ok(None),
        Number::Whole(whole) => Ok(Some(whole)),
        Number::Float(float) => whole(float).ok_or_else(|| wrong(&float.to_string())).map(Some),
        Number::Text(text) if text.trim().is_empty() => Ok(None),
        Number::Text(text) => {
            let trimmed = text.trim();
            let parsed = trimmed.parse().ok().or_else(|| trimmed.parse().ok().and_then(whole));
            parsed.ok_or_else(|| wrong(&text)).map(Some)
        }
    }
}

/// The float as a whole number, if it is one.
fn whole(float: f64) -> Option<i64> {
    // 2^53: up to here every whole float is exact.
    (float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0).then_some(float as i64)
}

/// Text; a blank one is `None`.
pub(crate) fn opt_text<'de, D: Deserializer<'de>>(d: D) -> Result<Option<String>, D::Error> {
    Ok(longmen_core::model::opt_string(d)?.filter(|text| !text.trim().is_empty()))
}
