//! Placeholder.

pub mod publish;
