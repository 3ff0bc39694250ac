//! Readers that accept what the reference's JSON reader accepts.

use std::fmt;

use serde::de::{self, Deserializer, Visitor};

/// What a member was expected to hold; names the expectation in error texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonKind {
    /// Text, or a number or boolean that is taken as text.
    Text,
    /// A whole number that fits 32 bits, also written `7.0` or `"7"`.
    Integer,
    /// `true`, `false`, or the same in quotes.
    Boolean,
}

struct TextVisitor;

impl Visitor<'_> for TextVisitor {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string (a number or boolean is taken as text)")
    }

    fn visit_str<E: de::Error>(self, v: &str) -> Result<Self::Value, E> {
        Ok(Some(v.to_owned()))
    }

    fn visit_string<E: de::Error>(self, v: String) -> Result<Self::Value, E> {
        Ok(Some(v))
    }

    fn visit_bool<E: de::Error>(self, v: bool) -> Result<Self::Value, E> {
        Ok(Some(v.to_string()))
    }

    fn visit_i64<E: de::Error>(self, v: i64) -> Result<Self::Value, E> {
        Ok(Some(v.to_string()))
    }

    fn visit_u64<E: de::Error>(self, v: u64) -> Result<Self::Value, E> {
        Ok(Some(v.to_string()))
    }

    fn visit_f64<E: de::Error>(self, v: f64) -> Result<Self::Value, E> {
        Ok(Some(v.to_string()))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

struct IntegerVisitor;

impl IntegerVisitor {
    fn narrow<E: de::Error>(v: i64) -> Result<Option<i32>, E> {
        i32::try_from(v).map(Some).map_err(|_| E::custom(format_args!("{v} does not fit 32 bits")))
    }
}

impl Visitor<'_> for IntegerVisitor {
    type Value = Option<i32>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer such as 7, 7.0 or \"7\"")
    }

    fn visit_i64<E: de::Error>(self, v: i64) -> Result<Self::Value, E> {
        Self::narrow(v)
    }

    fn visit_u64<E: de::Error>(self, v: u64) -> Result<Self::Value, E> {
        Self::narrow(i64::try_from(v).unwrap_or(i64::MAX))
    }

    fn visit_f64<E: de::Error>(self, v: f64) -> Result<Self::Value, E> {
        if v.fract() == 0.0 && v.abs() <= f64::from(i32::MAX) {
            // In range and whole: the conversion is exact.
            Self::narrow(v as i64)
        } else {
            Err(E::invalid_value(de::Unexpected::Float(v), &self))
        }
    }

    fn visit_str<E: de::Error>(self, v: &str) -> Result<Self::Value, E> {
        let text = v.trim();
        if text.is_empty() {
            return Ok(None);
        }
        if let Ok(whole) = text.parse::<i64>() {
            return Self::narrow(whole);
        }
        match text.parse::<f64>() {
            Ok(float) => self.visit_f64(float),
            Err(_) => Err(E::invalid_value(de::Unexpected::Str(v), &self)),
        }
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

struct BooleanVisitor;

impl Visitor<'_> for BooleanVisitor {
    type Value = Option<bool>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a boolean, true or \"true\"")
    }

    fn visit_bool<E: de::Error>(self, v: bool) -> Result<Self::Value, E> {
        Ok(Some(v))
    }

    fn visit_str<E: de::Error>(self, v: &str) -> Result<Self::Value, E> {
        match v.trim() {
            "" => Ok(None),
            text if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
            text if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
            _ => Err(E::invalid_value(de::Unexpected::Str(v), &self)),
        }
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

/// Reads text; null becomes the empty string.
///
/// # Errors
/// An object or array where text is expected.
pub fn string<'de, D: Deserializer<'de>>(d: D) -> Result<String, D::Error> {
    Ok(d.deserialize_any(TextVisitor)?.unwrap_or_default())
}

/// Reads text; null stays `None`.
///
/// # Errors
/// An object or array where text is expected.
pub fn opt_string<'de, D: Deserializer<'de>>(d: D) -> Result<Option<String>, D::Error> {
    d.deserialize_any(TextVisitor)
}

/// Reads a 32-bit integer; null and `""` become 0.
///
/// # Errors
/// A fraction, a number out of range, or text that is no number.
pub fn i32_or_default<'de, D: Deserializer<'de>>(d: D) -> Result<i32, D::Error> {
    Ok(d.deserialize_any(IntegerVisitor)?.unwrap_or_default())
}

/// Reads an optional 32-bit integer.
pub(super) fn opt_i32<'de, D: Deserializer<'de>>(d: D) -> Result<Option<i32>, D::Error> {
    d.deserialize_any(IntegerVisitor)
}

/// Reads a boolean; null and `""` become `false`.
///
/// # Errors
/// A number, or text other than `true` and `false`.
pub fn bool_or_default<'de, D: Deserializer<'de>>(d: D) -> Result<bool, D::Error> {
    Ok(d.deserialize_any(BooleanVisitor)?.unwrap_or_default())
}

/// Reads a boolean; null and `""` become `true`.
pub(super) fn bool_or_true<'de, D: Deserializer<'de>>(d: D) -> Result<bool, D::Error> {
    Ok(d.deserialize_any(BooleanVisitor)?.unwrap_or(true))
}

/// The default of members that are on when absent.
pub(super) const fn yes() -> bool {
    true
}
