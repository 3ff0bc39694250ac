//! The examples of the API document.
//!
//! They are one session: each call is accepted after those before it. A test makes it with a running
//! admin and compares the answers, so no example is made up; `UPDATE_EXAMPLES=1` writes them anew.
//! Lists are cut to their first element, and ids and times stand for what differs from run to run.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use crate::extract::{QueryArgs, path_segment};

/// The file they are in.
const FILE: &str = include_str!("examples.json");

/// A call and its answer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Example {
    /// Method and path of the operation, as in the table of routes.
    pub operation: String,
    /// Path and query of the call, where they are not those of the operation.
    #[serde(default)]
    pub call: Option<String>,
    /// The body; an object also where the call sends a form.
    #[serde(default)]
    pub body: Option<Value>,
    /// Places in the whole answer (JSON pointers), and the values of later calls that stand for what
    /// is found there.
    #[serde(default)]
    pub bind: HashMap<String, String>,
    /// The answer.
    #[serde(default)]
    pub answer: Value,
}

/// All of them, in the order in which they are accepted.
///
/// # Panics
/// Never: the file is part of the program, and a test reads it.
#[must_use]
pub fn examples() -> Vec<Example> {
    serde_json::from_str(FILE).expect("examples.json is read in a test")
}

impl Example {
    /// Path and query of the call.
    #[must_use]
    pub fn target(&self) -> &str {
        let path = self.operation.split_once(' ').map_or("", |(_, path)| path);
        self.call.as_deref().unwrap_or(path)
    }

    /// What the call sends for the path parameter at this place of `pattern`.
    pub(super) fn path_value(&self, pattern: &str, name: &str) -> Option<Value> {
        let path = self.target().split('?').next().unwrap_or_default();
        let found = pattern.split('/').zip(path.split('/')).find(|(pattern, _)| {
            pattern.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) == Some(name)
        });
        found.map(|(_, segment)| path_segment(segment).into())
    }

    /// What the call sends for a query parameter.
    pub(super) fn query_value(&self, name: &str) -> Option<Value> {
        let (_, query) = self.target().split_once('?')?;
        let query = QueryArgs::parse(query.as_bytes());
        let text = query.raw(name)?;
        Some(text.parse::<i32>().map_or_else(|_| text.into(), Value::from))
    }
}
