//! Typed settings of plugins, compiled from JSON text at sync time.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;

/// What is wrong with a handle, a condition or a config: field, value, expectation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {value} is not {expected}")]
pub struct HandleFault {
    /// Path of the member, such as `retry` or `[2].weight`; empty for the whole text.
    pub field: String,
    /// The value found, shortened.
    pub value: String,
    /// What was expected.
    pub expected: String,
}

impl HandleFault {
    /// The longest value quoted, in characters.
    const MAX_VALUE: usize = 120;

    /// Builds a fault; long values are shortened.
    #[must_use]
    pub fn new(
        field: impl Into<String>,
        value: impl fmt::Display,
        expected: impl Into<String>,
    ) -> Self {
        let mut value = value.to_string();
        if let Some((cut, _)) = value.char_indices().nth(Self::MAX_VALUE) {
            value.truncate(cut);
            value.push('…');
        }
        Self { field: field.into(), value, expected: expected.into() }
    }
}

/// A handle type: how one plugin reads one scope of its settings.
pub trait HandleType: Sized + Send + Sync + 'static {
    /// Reads the JSON text as leniently as the reference and checks what is wrong for the type.
    ///
    /// # Errors
    /// Every fault found, at least one.
    fn read(text: &str) -> Result<Self, Vec<HandleFault>>;
}

/// A compiled handle of any type; cheap to clone.
#[derive(Clone, Default)]
pub struct Handle(Option<Arc<dyn Any + Send + Sync>>);

impl Handle {
    /// No settings.
    #[must_use]
    pub const fn none() -> Self {
        Self(None)
    }

    /// Wraps a typed handle.
    pub fn new<T: Send + Sync + 'static>(value: T) -> Self {
        Self(Some(Arc::new(value)))
    }

    /// The typed handle; `None` when there is none or it is of another type.
    #[must_use]
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.0.as_deref().and_then(<dyn Any + Send + Sync>::downcast_ref)
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Handle(..)" } else { "Handle(none)" })
    }
}

/// Reads the text of a JSON object into `T`: absent text (empty, blank, `null`) is `T`'s default, unknown members
/// are ignored; what a member accepts is up to `T`'s readers (see [`crate::model`]).
///
/// # Errors
/// One fault that names the member, the value and what was expected.
pub fn read_handle<T: DeserializeOwned + Default>(text: &str) -> Result<T, Vec<HandleFault>> {
    let trimmed = text.trim();
    if trimmed.is_empty() || trimmed == "null" {
        return Ok(T::default());
    }
    if !trimmed.starts_with('{') {
        return Err(vec![HandleFault::new("", trimmed, "a JSON object")]);
    }
    let mut reader = serde_json::Deserializer::from_str(trimmed);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        let field = if path == "." { String::new() } else { path };
        let value = serde_json::from_str::<serde_json::Value>(trimmed)
            .ok()
            .and_then(|json| json.pointer(&pointer(&field)).map(ToString::to_string))
            .unwrap_or_else(|| trimmed.to_owned());
        vec![HandleFault::new(field, value, expectation(error.inner()))]
    })?;
    reader.end().map_err(|_| {
        vec![HandleFault::new("", trimmed, "one JSON object with nothing behind it")]
    })?;
    Ok(value)
}

fn pointer(path: &str) -> String {
    let mut pointer = String::new();
    for part in path.split(['.', '[', ']']).filter(|part| !part.is_empty()) {
        pointer.push('/');
        pointer.push_str(part);
    }
    pointer
}

/// What serde says it expected, without the place (ours is the path).
fn expectation(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    match text.split_once("expected ") {
        Some((_, expected)) => expected.to_owned(),
        None => format!("readable: {text}"),
    }
}
