//! A moving average of the time to the response head that also fades with time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long it takes an average without news to fade to about a third, in milliseconds. An upstream
/// that was slow once is asked again after a while instead of never.
const FADE_MS: f64 = 10_000.0;

/// The least weight of a sample: at high rates the average follows the last dozen.
const LEAST_WEIGHT: f64 = 0.125;

/// Average and the moment of its last sample, in one word: two workers that write at once may lose
/// a sample, never more.
#[derive(Debug, Default)]
pub(super) struct Latency(AtomicU64);

impl Latency {
    /// The average as of `now`, in microseconds; 0 before the first sample.
    pub(super) fn at(&self, now: u64) -> f64 {
        let (stamp, micros) = self.load();
        f64::from(micros) * fading(stamp, now)
    }

    /// Takes a sample in.
    pub(super) fn record(&self, sample: Duration, now: u64) {
        let sample = u32::try_from(sample.as_micros()).unwrap_or(u32::MAX).max(1);
        let (stamp, before) = self.load();
        let after = if before == 0 {
            f64::from(sample)
        } else {
            let weight = (1.0 - fading(stamp, now)).max(LEAST_WEIGHT);
            let before = f64::from(before);
            weight.mul_add(f64::from(sample) - before, before)
        };
        // Never 0: that stands for "no sample". Out of range saturates.
        self.store(now, (after.round() as u32).max(1));
    }

    /// Takes a failure in: no better than twice the average, whatever time it took. An upstream that
    /// fails at once must not look fast.
    pub(super) fn penalise(&self, took: Duration, now: u64) {
        const LEAST: Duration = Duration::from_millis(10);
        let twice = Duration::from_micros((2.0 * self.at(now)) as u64);
        self.record(took.max(twice).max(LEAST), now);
    }

    fn load(&self) -> (u32, u32) {
        let word = self.0.load(Ordering::Relaxed);
        ((word >> 32) as u32, word as u32)
    }

    fn store(&self, now: u64, micros: u32) {
        self.0.store((now & 0xFFFF_FFFF) << 32 | u64::from(micros), Ordering::Relaxed);
    }
}

fn fading(stamp: u32, now: u64) -> f64 {
    // Both modulo 2^32 ms, 49 days; a stamp of the future is another worker's, just now.
    let age = (now as u32).wrapping_sub(stamp);
    if age > u32::MAX / 2 { 1.0 } else { (-f64::from(age) / FADE_MS).exp() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Latency;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn it_follows_the_samples_and_fades_without() {
        let latency = Latency::default();
        assert_eq!(latency.at(5), 0.0);
        latency.record(MS * 8, 1000);
        assert_eq!(latency.at(1000), 8000.0);
        latency.record(MS * 16, 1000);
        assert_eq!(latency.at(1000), 9000.0, "an eighth of the way");
        for _ in 0..100 {
            latency.record(MS * 2, 1000);
        }
        assert!((1999.0..2100.0).contains(&latency.at(1000)), "{}", latency.at(1000));
        let faded = latency.at(11_000);
        assert!((700.0..800.0).contains(&faded), "{faded}");
        // After a long silence the next sample is nearly all there is.
        latency.record(MS * 20, 61_000);
        assert!(latency.at(61_000) > 19_000.0);
    }

    #[test]
    fn a_failure_never_looks_fast() {
        let latency = Latency::default();
        latency.record(MS * 40, 1);
        for _ in 0..50 {
            latency.penalise(Duration::ZERO, 1);
        }
        assert!(latency.at(1) > 40_000.0);
        let fresh = Latency::default();
        fresh.penalise(Duration::ZERO, 1);
        assert_eq!(fresh.at(1), 10_000.0);
    }

    #[test]
    fn a_stamp_of_the_future_is_now() {
        let latency = Latency::default();
        latency.record(MS, 2000);
        assert_eq!(latency.at(1999), 1000.0);
    }
}
