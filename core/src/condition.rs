//! Conditions: from the text a person configured to predicates that are cheap to ask.
//!
//! [`Compiler::compile`] turns the conditions of one selector or rule into [`CompiledConditions`],
//! once, when a snapshot is built. A request is then asked through [`RequestView`], which says what
//! a condition may read. Compiling never fails as a whole: a condition that cannot be used becomes
//! one that does not match, and is reported as a [`CompileFault`] with field, value and
//! expectation. [`validate`] is the stricter check before a condition is stored.
//!
//! Everything here is pure and synchronous: no clock, no configuration, no global state.
//!
//! Source: ShenYu 2.7.1, executed: parameter types, operators, path patterns.

mod ant;
mod compile;
mod compiled;
mod explain;
mod fault;
mod glob;
mod literals;
pub mod path;
mod path_pattern;
mod predicate;
mod regexes;
mod step;
mod text;
mod time;
mod validate;
mod view;

pub use ant::AntPattern;
pub use compile::{Compiled, Compiler};
pub(crate) use compiled::Hint;
pub use compiled::{CompiledConditions, Inputs, PathTest};
pub use explain::{ConditionOutcome, Got};
pub use fault::{CompileFault, ConditionField};
pub(crate) use literals::Literals;
pub use path::{PathFault, canonical, check_path};
pub use path_pattern::PathPattern;
pub(crate) use predicate::Source;
pub(crate) use step::Step;
pub(crate) use text::escape_at;
pub use text::{cookie_value, header_text, headers_cookie, query_value};
pub use validate::validate;
pub use view::{ContextField, RequestView};

#[cfg(test)]
pub(crate) mod tests;
