//! The plugins of Longmen: one folder per plugin, and the registry that lists them.
//!
//! A folder holds the plugin's handle types with their validation, its catalogue entry (name,
//! order, role, class, form fields) and its run-time part. Gateway and admin link the same code:
//! what the admin accepts is what the gateway runs.
//!
//! **Architecture invariant:** a plugin imports no other plugin, and this crate depends on `core`
//! alone.

pub mod context_path;
pub mod divide;
mod handle;
pub mod registry;
pub mod rewrite;
mod upstreams;
pub mod websocket;

pub use registry::registry;
