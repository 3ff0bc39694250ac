//! Collecting every rule that a request violates before answering.

use std::borrow::Cow;

use crate::error::ApiError;

/// The violated rules of one request, in the order they were found.
///
/// Clients treat the order as undefined, ours is stable: fields in declaration order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Violations {
    found: Vec<(Cow<'static, str>, Cow<'static, str>)>,
    prefix: String,
}

impl Violations {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether no rule is violated.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Notes that `field` breaks a rule whose text is `text`.
    pub fn add(&mut self, field: impl Into<Cow<'static, str>>, text: impl Into<Cow<'static, str>>) {
        let field = field.into();
        let field =
            if self.prefix.is_empty() { field } else { format!("{}{field}", self.prefix).into() };
        self.found.push((field, text.into()));
    }

    /// Runs `check` with every field name prefixed, for elements of lists (`conditions[0].`).
    pub fn within(&mut self, prefix: &str, check: impl FnOnce(&mut Self)) {
        let before = self.prefix.len();
        self.prefix.push_str(prefix);
        check(self);
        self.prefix.truncate(before);
    }

    /// The value must be present and hold more than white space.
    pub fn not_blank(&mut self, field: &'static str, value: Option<&str>) {
        self.not_blank_text(field, value, "must not be blank");
    }

    /// As [`Self::not_blank`], with a text of the field's own.
    pub fn not_blank_text(&mut self, field: &'static str, value: Option<&str>, text: &'static str) {
        if value.is_none_or(|value| value.trim().is_empty()) {
            self.add(field, text);
        }
    }

    /// The value must be present.
    pub fn not_null<T>(&mut self, field: &'static str, value: Option<&T>) {
        if value.is_none() {
            self.add(field, "must not be null");
        }
    }

    /// As [`Self::not_null`], with a text of the field's own.
    pub fn not_null_text<T>(&mut self, field: &'static str, value: Option<&T>, text: &'static str) {
        if value.is_none() {
            self.add(field, text);
        }
    }

    /// The list must be present and hold something.
    pub fn not_empty<T>(&mut self, field: &'static str, value: Option<&[T]>) {
        if value.is_none_or(<[T]>::is_empty) {
            self.add(field, "must not be empty");
        }
    }

    /// The number, when present, must not be below `least`.
    pub fn min(&mut self, field: &'static str, value: Option<i32>, least: i32) {
        if value.is_some_and(|value| value < least) {
            self.add(field, format!("must be greater than or equal to {least}"));
        }
    }

    /// The number, when present, must lie within `least..=most`.
    pub fn range(&mut self, field: &'static str, value: Option<i32>, least: i32, most: i32) {
        if value.is_some_and(|value| !(least..=most).contains(&value)) {
            self.add(field, format!("must be between {least} and {most}"));
        }
    }

    /// The text, when present, must not be longer than `most` characters.
    pub fn max_length(
        &mut self,
        field: &'static str,
        value: Option<&str>,
        most: usize,
        text: &'static str,
    ) {
        if value.is_some_and(|value| value.chars().count() > most) {
            self.add(field, text);
        }
    }

    /// The text, when present, must not be longer than `most` bytes. Ours: texts that rows are found
    /// by must fit into an index.
    pub fn max_bytes(&mut self, field: &'static str, value: Option<&str>, most: usize) {
        if let Some(value) = value.filter(|value| value.len() > most) {
            self.add(field, too_long(value, most));
        }
    }

    /// The list, when present, must not hold more than `most` ids.
    pub fn max_ids(&mut self, field: &'static str, ids: Option<&[String]>, most: usize) {
        if let Some(count) = ids.map(<[String]>::len).filter(|count| *count > most) {
            self.add(field, format!("{count} ids, expected at most {most}"));
        }
    }

    /// The object that `field` names must exist.
    pub fn exists(&mut self, field: &'static str, found: bool, text: &'static str) {
        if !found {
            self.add(field, text);
        }
    }

    /// The answer for rules on the fields of a body.
    ///
    /// # Errors
    /// `Request error! invalid argument [field: text| field: text]` when any rule is violated.
    pub fn into_body_result(self) -> Result<(), ApiError> {
        if self.is_empty() {
            return Ok(());
        }
        Err(ApiError::refused(format!("Request error! invalid argument [{}]", self.join("", "| "))))
    }

    /// The answer for rules on parameters and on the elements of list bodies. `method` is the name
    /// of the reference's handler, which its texts begin with.
    ///
    /// # Errors
    /// `method.field: text, method.field: text` when any rule is violated.
    pub fn into_parameter_result(self, method: &str) -> Result<(), ApiError> {
        self.into_joined_result(method, ", ")
    }

    /// As [`Self::into_parameter_result`] with the separator that few endpoints have of their own.
    ///
    /// # Errors
    /// The joined texts when any rule is violated.
    pub fn into_joined_result(self, method: &str, separator: &str) -> Result<(), ApiError> {
        if self.is_empty() {
            return Ok(());
        }
        Err(ApiError::refused(self.join(&format!("{method}."), separator)))
    }

    fn join(&self, prefix: &str, separator: &str) -> String {
        let parts: Vec<_> =
            self.found.iter().map(|(field, text)| format!("{prefix}{field}: {text}")).collect();
        parts.join(separator)
    }
}

/// What is told of a text that is longer than `most` bytes.
#[must_use]
pub(crate) fn too_long(value: &str, most: usize) -> String {
    /// How much of it is repeated, in characters.
    const SHOWN: usize = 32;
    let shown: String = value.chars().take(SHOWN).collect();
    format!("{shown:?}… has {} bytes, expected at most {most}", value.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(result: Result<(), ApiError>) -> String {
        result.unwrap_err().client_message().into_owned()
    }

    #[test]
    fn body_rules_are_all_named_in_one_text() {
        let mut rules = Violations::new();
        rules.not_blank("name", Some(" "));
        rules.not_null::<i32>("sort", None);
        rules.range("sort", Some(1001), 1, 1000);
        rules.min("size", Some(-1), 0);
        assert_eq!(
            text(rules.into_body_result()),
            "Request error! invalid argument [name: must not be blank| sort: must not be null| \
             sort: must be between 1 and 1000| size: must be greater than or equal to 0]"
        );
    }

    #[test]
    fn parameter_rules_name_the_handler_and_list_elements() {
        let mut rules = Violations::new();
        rules.exists("discoveryHandlerId", false, "discovery upstream is not existed");
        rules.within("discoveryUpstreamDTO[0].", |rules| {
            rules.not_blank_text("discoveryHandlerId", None, "discoveryHandlerId can't be null");
        });
        assert_eq!(
            text(rules.into_parameter_result("updateDiscoveryUpstream")),
            "updateDiscoveryUpstream.discoveryHandlerId: discovery upstream is not existed, \
             updateDiscoveryUpstream.discoveryUpstreamDTO[0].discoveryHandlerId: \
             discoveryHandlerId can't be null"
        );
    }

    #[test]
    fn nothing_violated_is_no_error() {
        assert!(Violations::new().into_body_result().is_ok());
        assert!(Violations::new().into_parameter_result("list").is_ok());
    }
}
