//! The mock upstream and the measuring tools of Longmen.
//!
//! [`origin`] is an HTTP server made to stand behind a gateway: tests run it in their own process,
//! `make run` and the benchmarks as `longmen-bench origin`. The other modules are the parts that
//! the measuring commands are put together from.
//!
//! **Architecture invariant:** nothing here looks inside the gateway or the admin. The tools see
//! what a user sees: the public REST API, the proxied answers, and what the kernel says of a
//! process.

pub mod admin_api;
pub mod admins;
pub mod chaos;
pub mod client;
pub mod command;
pub mod compare;
pub mod easegress;
pub mod edits;
pub mod failing;
pub mod idle_close;
pub mod interop;
pub mod load;
pub mod odd;
pub mod origin;
pub mod process;
pub mod raw;
pub mod report;
pub mod restarts;
pub mod route_set;
pub mod rule_table;
pub mod rules;
pub mod series;
pub mod soak;
pub mod stage;
pub mod stats;
pub mod steady;
pub mod wrk;
