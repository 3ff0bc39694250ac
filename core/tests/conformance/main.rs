//! What every client strategy must do, over scripted upstreams that read and write bytes.
//!
//! Each case is one function that is run for each strategy ([`conformance!`]). A case plays both
//! sides: it sends a request by the client and is the upstream that receives it.

#![expect(clippy::async_yields_async, reason = "upstreams hand back the task that goes on serving")]

#[macro_use]
mod support;

mod dns;
mod faults;
mod flow;
mod http2;
mod limits;
mod messages;
mod proxy;
mod reuse;
mod stale;
mod tls;
