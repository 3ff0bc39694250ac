//! HTTP/1.1 as bytes: an upstream that keeps what it read, and a client that sends what it is told.
//!
//! Neither corrects anything: what a proxy makes of an odd request is seen as it is.

mod client;
mod message;
mod upstream;

pub use client::{Answer, RawClient};
pub use message::{Framing, decode_chunked, head_lines, header_values};
pub use upstream::{RawUpstream, Received, Reply, Then};
