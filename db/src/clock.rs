//! Time and chance, as parameters.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Tells the time.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Milliseconds since 1970-01-01 UTC.
    fn now_ms(&self) -> i64;
}

/// The system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}

/// A source of random bits.
#[derive(Clone)]
pub struct Entropy(Arc<dyn Fn() -> u64 + Send + Sync>);

impl Entropy {
    /// Bits from the given function; fixed ones in tests.
    pub fn new(next: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(next))
    }

    /// The next 64 bits.
    #[must_use]
    pub fn next(&self) -> u64 {
        (self.0)()
    }

    /// 128 bits as 32 hexadecimal digits.
    #[must_use]
    pub fn token(&self) -> String {
        format!("{:016x}{:016x}", self.next(), self.next())
    }
}

impl Default for Entropy {
    fn default() -> Self {
        Self::new(rand::random::<u64>)
    }
}

impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entropy")
    }
}

/// The date text of the reference, `yyyy-MM-dd HH:mm:ss` in the given zone.
///
/// A time outside of the years that a calendar can show comes out as the start of 1970.
#[must_use]
pub fn date_text(at_ms: i64, zone: &TimeZone) -> String {
    let at = Timestamp::from_millisecond(at_ms).unwrap_or(Timestamp::UNIX_EPOCH);
    at.to_zoned_datetime(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}
