//! One compiled condition: where its value comes from, and what is asked of it.

use std::borrow::Cow;
use std::sync::Arc;

use http::HeaderName;
use jiff::{Timestamp, civil::DateTime};
use regex::Regex;

use super::time::parse_civil;
use super::{AntPattern, CompileFault, ContextField, PathPattern, RequestView};

/// A compiled condition.
#[derive(Debug, Clone)]
pub(super) struct Predicate {
    pub(super) source: Source,
    pub(super) test: Test,
}

/// Where the value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    Path,
    Header(Box<HeaderName>),
    Query(Box<str>),
    Cookie(Box<str>),
    Method,
    Domain,
    Host,
    Ip,
    Context(ContextField),
    /// A parameter type or name that yields nothing.
    Nothing,
}

/// What is asked of the value. Every test but `IsBlank` is false for a missing or blank value;
/// the two that compare the clock do not look at a value at all.
#[derive(Debug, Clone)]
pub(super) enum Test {
    /// One of these Ant patterns takes the value.
    Ant(Box<[AntPattern]>),
    /// None of them does.
    NotAnt(Box<[AntPattern]>),
    PathPattern(Box<PathPattern>),
    Equals(Box<str>),
    Contains(Box<str>),
    NotContains(Box<str>),
    StartsWith(Box<str>),
    EndsWith(Box<str>),
    Regex(Arc<Regex>),
    IsBlank,
    NowBefore(Timestamp),
    NowAfter(Timestamp),
    ValueBefore(DateTime),
    ValueAfter(DateTime),
    /// The condition cannot be used and never holds.
    Never(Box<CompileFault>),
}

impl Predicate {
    pub(super) fn holds<V: RequestView + ?Sized>(&self, view: &V) -> bool {
        match &self.test {
            Test::Never(_) => false,
            Test::NowBefore(limit) => view.now() < *limit,
            Test::NowAfter(limit) => view.now() > *limit,
            test => test.accepts(self.source.value(view).as_deref()),
        }
    }

    /// Whether it can hold for a request with this path; true where the path does not decide.
    pub(super) fn could_hold(&self, path: &str) -> bool {
        match (&self.source, &self.test) {
            (_, Test::Never(_) | Test::NowBefore(_) | Test::NowAfter(_)) => true,
            (Source::Path, test) => test.accepts(Some(path)),
            _ => true,
        }
    }
}

impl Source {
    pub(crate) fn value<'v, V: RequestView + ?Sized>(&self, view: &'v V) -> Option<Cow<'v, str>> {
        match self {
            Self::Path => Some(Cow::Borrowed(view.effective_path())),
            Self::Header(name) => view.header(name),
            Self::Query(name) => view.query(name),
            Self::Cookie(name) => view.cookie(name),
            Self::Method => Some(Cow::Borrowed(view.method())),
            // Host names have no case; the configured side is in lower case already.
            Self::Domain => Some(lower(view.domain())),
            Self::Host => Some(Cow::Borrowed(view.client_host())),
            Self::Ip => Some(Cow::Borrowed(view.client_ip())),
            Self::Context(field) => view.context_field(*field),
            Self::Nothing => None,
        }
    }
}

impl Test {
    pub(super) fn accepts(&self, value: Option<&str>) -> bool {
        let value = value.filter(|value| !is_blank(value));
        let Some(value) = value else {
            return matches!(self, Self::IsBlank);
        };
        match self {
            Self::Ant(patterns) => patterns.iter().any(|pattern| pattern.matches(value)),
            Self::NotAnt(patterns) => !patterns.iter().any(|pattern| pattern.matches(value)),
            Self::PathPattern(pattern) => pattern.matches(value),
            Self::Equals(wanted) => value == &**wanted,
            Self::Contains(part) => value.contains(&**part),
            Self::NotContains(part) => !value.contains(&**part),
            Self::StartsWith(prefix) => value.starts_with(&**prefix),
            Self::EndsWith(suffix) => value.ends_with(&**suffix),
            Self::Regex(regex) => regex.is_match(value),
            Self::ValueBefore(limit) => parse_civil(value).is_some_and(|time| time < *limit),
            Self::ValueAfter(limit) => parse_civil(value).is_some_and(|time| time > *limit),
            Self::IsBlank | Self::NowBefore(_) | Self::NowAfter(_) | Self::Never(_) => false,
        }
    }
}

/// Whether a value counts as missing: empty or white space only.
fn is_blank(value: &str) -> bool {
    // Nearly every value begins with something visible, which settles it at the first byte.
    !value.bytes().next().is_some_and(|b| b.is_ascii_graphic()) && value.trim().is_empty()
}

fn lower(text: &str) -> Cow<'_, str> {
    if text.bytes().any(|b| b.is_ascii_uppercase()) {
        Cow::Owned(text.to_ascii_lowercase())
    } else {
        Cow::Borrowed(text)
    }
}
