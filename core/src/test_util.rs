//! What tests share, behind the feature `test-util`. Never in a shipped binary.

mod log_lines;
pub mod postgres;

pub use log_lines::LogLines;
