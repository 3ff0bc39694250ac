//! What tests share, behind the feature `test-util`. Never in a shipped binary.

pub mod postgres;
