//! The Longmen admin: owns plugins, selectors and rules, and syncs them to gateways.
//!
//! [`Admin`] starts one in this process; the binary is a thin shell around it. Endpoints are in
//! [`api`], one module per resource, and are registered with their permission through [`router`].

pub mod api;
pub mod auth;
pub mod config;
pub mod context;
pub mod error;
pub mod extract;
pub mod openapi;
pub mod page;
pub mod permission;
pub mod publish;
pub mod reply;
pub mod router;
pub mod state;

mod app;
mod audit;
mod first_start;
mod instances;
mod jobs;
mod middleware;
mod registration;
mod restore_mark;
mod serve;
mod v1;

pub use app::{Admin, RunningAdmin};
pub use restore_mark::restore_mark;
pub use serve::Peer;
