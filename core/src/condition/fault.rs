//! Why a condition cannot be used.

use std::fmt;

/// A member of a condition, by its wire name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConditionField {
    /// `paramType`
    ParamType,
    /// `operator`
    Operator,
    /// `paramName`
    ParamName,
    /// `paramValue`
    ParamValue,
}

impl ConditionField {
    /// The wire name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ParamType => "paramType",
            Self::Operator => "operator",
            Self::ParamName => "paramName",
            Self::ParamValue => "paramValue",
        }
    }
}

/// A condition that cannot be used: which one, which member, what it held, what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileFault {
    /// Position in the list of conditions, from 0.
    pub index: usize,
    /// The member at fault.
    pub field: ConditionField,
    /// What it holds; `None` when absent.
    pub value: Option<String>,
    /// What was expected instead.
    pub expected: String,
    /// The text the reference's admin refuses this with, where it does refuse it.
    pub stock: Option<String>,
}

impl CompileFault {
    pub(super) fn new(field: ConditionField, value: Option<&str>, expected: String) -> Self {
        Self { index: 0, field, value: value.map(str::to_owned), expected, stock: None }
    }

    pub(super) fn with_stock(mut self, text: Option<String>) -> Self {
        self.stock = text;
        self
    }

    pub(super) const fn at(mut self, index: usize) -> Self {
        self.index = index;
        self
    }
}

impl fmt::Display for CompileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "condition {}: {} is ", self.index, self.field.name())?;
        match &self.value {
            Some(value) => write!(f, "{value:?}")?,
            None => f.write_str("missing")?,
        }
        write!(f, ", expected {}", self.expected)
    }
}

impl std::error::Error for CompileFault {}
