//! The heart of Longmen: what both binaries share.
//!
//! `core` holds the domain model, the wire types of the sync protocol, compiled conditions and
//! matching, the immutable snapshot a gateway serves from, the contract of plugins, and the
//! process kit (configuration, life cycle, telemetry).
//!
//! **Architecture invariant:** this crate depends on nothing else in the workspace. It names no
//! plugin, no database, no admin endpoint.

pub mod body;
pub mod chain;
pub mod condition;
pub mod config;
pub mod error;
pub mod explain;
pub mod io;
pub mod layer;
pub mod lifecycle;
pub mod mask;
pub mod matcher;
pub mod model;
pub mod snapshot;
pub mod sync;
pub mod telemetry;
#[cfg(any(test, feature = "test-util"))]
pub mod test_util;
pub mod upstream;
