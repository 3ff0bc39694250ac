//! The clock of upstream states: whole milliseconds since the process first asked.
//!
//! States take the time as an argument, so that their tests need no clock; only the request path and
//! the checker ask here.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Never 0, which stands for "never" in the states.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Monotonic milliseconds; at least 1.
#[must_use]
pub fn now_ms() -> u64 {
    millis(START.elapsed()).saturating_add(1)
}

/// A duration in whole milliseconds.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
