//! Byte streams with limits, for the listeners of both binaries.

mod write_stall;

pub use write_stall::{StallTimer, WriteStall};
