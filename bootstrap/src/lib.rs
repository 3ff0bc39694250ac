//! The Longmen gateway.
//!
//! [`Gateway`] is a whole gateway: a control runtime for sync, snapshot builds and housekeeping, and
//! data workers that only serve. Several can live in one process; nothing is global.
//!
//! **Architecture invariant:** the gateway never opens a database and never links the admin; it knows
//! what the sync told it.

mod client;
pub mod config;
mod connection;
mod descriptors;
pub mod detect;
mod edge;
mod gateway;
mod handover;
mod keep;
mod listener;
pub mod management;
mod operator;
mod sockets;
mod stack;
mod stop;
mod sync;
mod upstreams;
mod worker;

pub use client::SetupError;
pub use descriptors::raise as raise_open_files;
pub use gateway::{Gateway, GatewayBuilder, RunningGateway, StartError};
pub use sockets::inherited_listeners;
