//! Query parameters.

use super::{Bind, Incoming, InputDoc, ParameterDoc};
use crate::error::ApiError;

/// The type of a parameter, by the name that the reference's texts give it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JavaType {
    /// A text.
    String,
    /// A 32-bit integer.
    Integer,
    /// A boolean.
    Boolean,
}

impl JavaType {
    /// The name in error texts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::String => "java.lang.String",
            Self::Integer => "java.lang.Integer",
            Self::Boolean => "java.lang.Boolean",
        }
    }
}

/// Decoded query parameters, in order. Of a repeated one the first counts.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct QueryArgs(Vec<(String, String)>);

/// Names only: values may be secret (the log-in sends its password here).
impl std::fmt::Debug for QueryArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl QueryArgs {
    /// Decodes `application/x-www-form-urlencoded` text. Bytes that are no UTF-8 are replaced.
    #[must_use]
    pub fn parse(text: &[u8]) -> Self {
        Self(super::percent::form_pairs(text))
    }

    pub(super) const fn from_pairs(pairs: Vec<(String, String)>) -> Self {
        Self(pairs)
    }

    /// One parameter, such as one of the path that is to be read like those of the query.
    #[must_use]
    pub fn of(name: &str, value: &str) -> Self {
        Self(vec![(name.to_owned(), value.to_owned())])
    }

    /// These parameters, then those of `other`.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Names and values, in order.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The value of `name` as it was sent.
    #[must_use]
    pub fn raw(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// An optional text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        self.raw(name).map(str::to_owned)
    }

    /// An optional text; blank counts as absent.
    #[must_use]
    pub fn filled(&self, name: &str) -> Option<String> {
        self.raw(name).filter(|value| !value.trim().is_empty()).map(str::to_owned)
    }

    /// A required text.
    ///
    /// # Errors
    /// `<name> parameter is missing` when absent.
    pub fn required(&self, name: &str) -> Result<String, ApiError> {
        self.text(name).ok_or_else(|| ApiError::missing_parameter(name))
    }

    /// An optional integer; an empty value counts as absent.
    ///
    /// # Errors
    /// `<name> should be of type java.lang.Integer` for anything else.
    pub fn integer(&self, name: &str) -> Result<Option<i32>, ApiError> {
        let Some(text) = self.filled(name) else { return Ok(None) };
        let text = text.trim();
        // The reference also decodes `0x10` and `#10`; a plus sign it does not refuse either.
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let parsed = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix('#')) {
            Some(hex) => i64::from_str_radix(hex, 16),
            None => digits.parse::<i64>(),
        };
        parsed
            .ok()
            .filter(|_| digits.starts_with(|first: char| first.is_ascii_digit() || first == '#'))
            .map(|value| if negative { -value } else { value })
            .and_then(|value| i32::try_from(value).ok())
            .map(Some)
            .ok_or_else(|| ApiError::wrong_type(name, JavaType::Integer.name()))
    }

    /// An optional boolean; an empty value counts as absent.
    ///
    /// # Errors
    /// `<name> should be of type java.lang.Boolean` for anything else.
    pub fn boolean(&self, name: &str) -> Result<Option<bool>, ApiError> {
        let Some(text) = self.filled(name) else { return Ok(None) };
        match text.trim().to_ascii_lowercase().as_str() {
            "true" | "on" | "yes" | "1" => Ok(Some(true)),
            "false" | "off" | "no" | "0" => Ok(Some(false)),
            _ => Err(ApiError::wrong_type(name, JavaType::Boolean.name())),
        }
    }
}

/// A set of query parameters of one endpoint.
pub trait FromQuery: Sized + Send {
    /// Names, types, and whether a call without them fails: for the API document.
    const PARAMETERS: &'static [(&'static str, JavaType, bool)];

    /// Reads the parameters. Rules on their values are the handler's: they come after the
    /// permission.
    ///
    /// # Errors
    /// A missing required parameter or one of the wrong type.
    fn from_query(args: &QueryArgs) -> Result<Self, ApiError>;
}

/// The query parameters of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query<T>(pub T);

impl<T: FromQuery> Bind for Query<T> {
    async fn bind(request: &Incoming) -> Result<Self, ApiError> {
        T::from_query(&request.query).map(Self)
    }

    fn describe(doc: &mut InputDoc) {
        doc.query.extend(T::PARAMETERS.iter().map(|&(name, kind, required)| ParameterDoc {
            name: name.into(),
            required,
            kind,
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_as_the_reference_reads_them() {
        for (query, wanted) in [
            ("n=7", Ok(Some(7))),
            ("n=-7", Ok(Some(-7))),
            ("n=", Ok(None)),
            ("m=7", Ok(None)),
            ("n=0x10", Ok(Some(16))),
            ("n=%207%20", Ok(Some(7))),
            ("n=abc", Err("n should be of type java.lang.Integer")),
            ("n=1.5", Err("n should be of type java.lang.Integer")),
            ("n=--5", Err("n should be of type java.lang.Integer")),
            ("n=99999999999", Err("n should be of type java.lang.Integer")),
        ] {
            let read = QueryArgs::parse(query.as_bytes()).integer("n");
            let read = read.map_err(|error| error.client_message().into_owned());
            assert_eq!(read, wanted.map_err(str::to_owned), "{query}");
        }
    }

    #[test]
    fn values_do_not_show_in_debug_output() {
        let args = QueryArgs::parse(b"userName=admin&password=secret");
        assert_eq!(format!("{args:?}"), r#"["userName", "password"]"#);
    }

    #[test]
    fn a_required_parameter_may_be_empty_but_not_absent() {
        let args = QueryArgs::parse(b"id=");
        assert_eq!(args.required("id").unwrap(), "");
        let error = args.required("name").unwrap_err();
        assert_eq!(error.client_message(), "name parameter is missing");
    }
}
