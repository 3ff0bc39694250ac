//! How many retries an upstream is sent: a share of its requests, and a reserve.
//!
//! Only a retry looks at it: requests are counted anyway, so the path of a request that goes well
//! pays nothing. (`tower::retry::budget` takes a lock and the clock for every request.)

use std::sync::{Mutex, PoisonError};

/// Retries per request.
const SHARE: f64 = 0.2;

/// Retries per second that need no requests, and how many of them can be saved up.
const RESERVE: f64 = 10.0;

/// Requests count for so long, in milliseconds.
const WINDOW_MS: f64 = 10_000.0;

/// The retries that one upstream may still be sent.
#[derive(Debug)]
pub(super) struct RetryBudget(Mutex<Bucket>);

#[derive(Debug)]
struct Bucket {
    share: f64,
    reserve: f64,
    /// The count of requests when it was last looked at; wraps.
    seen: u32,
    at_ms: u64,
}

impl RetryBudget {
    pub(super) fn new(now: u64) -> Self {
        Self(Mutex::new(Bucket { share: 0.0, reserve: RESERVE, seen: 0, at_ms: now }))
    }

    /// Takes one retry; false when there is none left. `requests` counts all that was sent so far,
    /// retries included, and may wrap.
    pub(super) fn withdraw(&self, requests: u32, now: u64) -> bool {
        let mut bucket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed = now.saturating_sub(bucket.at_ms) as f64;
        let fresh = f64::from(requests.wrapping_sub(bucket.seen));
        // Of requests that came over a longer time than the window only its part counts.
        let counted = if elapsed > WINDOW_MS { fresh * WINDOW_MS / elapsed } else { fresh };
        let left = (1.0 - elapsed / WINDOW_MS).max(0.0);
        bucket.share = bucket.share.mul_add(left, SHARE * counted);
        bucket.reserve = (bucket.reserve + RESERVE * elapsed / 1000.0).min(RESERVE);
        bucket.seen = requests;
        bucket.at_ms = now;
        if bucket.share >= 1.0 {
            bucket.share -= 1.0;
        } else if bucket.share + bucket.reserve >= 1.0 {
            bucket.reserve -= 1.0 - bucket.share;
            bucket.share = 0.0;
        } else {
            return false;
        }
        // The retry itself earns no further one.
        bucket.seen = bucket.seen.wrapping_add(1);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::RetryBudget;

    fn granted(budget: &RetryBudget, requests: u32, now: u64) -> u32 {
        let mut retries = 0;
        while budget.withdraw(requests.wrapping_add(retries), now) {
            retries += 1;
        }
        retries
    }

    #[test]
    fn a_fifth_of_the_requests_and_ten_a_second() {
        let budget = RetryBudget::new(1);
        assert_eq!(granted(&budget, 0, 1), 10, "the reserve");
        assert_eq!(granted(&budget, 10, 1), 0, "ten retries are no requests");
        assert_eq!(granted(&budget, 10 + 1000, 1), 200);
        assert_eq!(granted(&budget, 1210, 501), 5, "half a second of the reserve");
        assert_eq!(granted(&budget, 1215, 100_000), 10, "saved up for a second, no longer");
    }

    #[test]
    fn old_requests_count_no_more() {
        let budget = RetryBudget::new(1);
        // 100,000 requests in 1,000 seconds: those of the last ten count.
        let first = granted(&budget, 100_000, 1_000_001);
        assert!((205..=210).contains(&first), "{first}");
        let unused = RetryBudget::new(1);
        assert!(unused.withdraw(1000, 1001));
        let later = granted(&unused, 1001, 12_000);
        assert_eq!(later, 10, "the share has run out, the reserve is there");
    }

    #[test]
    fn the_count_may_wrap() {
        let budget = RetryBudget::new(1);
        budget.0.lock().unwrap().seen = u32::MAX - 4;
        // A hundred since, of which the last ones begin at 0 again.
        let after = granted(&budget, 95, 1);
        assert_eq!(after, 30);
    }
}
