//! Placeholder.

pub mod config;
