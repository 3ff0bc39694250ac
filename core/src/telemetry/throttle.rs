//! Lines of the log that clients or upstreams can provoke, at a bounded rate.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::upstream::now_ms;

/// Between two lines of one kind, as a rule.
pub const PAUSE: Duration = Duration::from_secs(10);

/// Lets the first line of a kind through at once, then at most one in each pause, and counts the
/// others.
///
/// For every line at `warn` or above that something outside can bring about: each kind of line, and
/// where it names one each upstream or worker, has a throttle of its own. Takes no lock; costs one
/// load and an addition for a line that is left out.
#[derive(Debug)]
pub struct Throttle {
    pause_ms: u64,
    /// When the next line may be written, on the clock of [`now_ms`].
    next: AtomicU64,
    left_out: AtomicU64,
}

/// How many lines were left out before one that is written; shown behind it, or as nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut(pub u64);

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            1 => f.write_str("; 1 more of this kind was left out before"),
            n => write!(f, "; {n} more of this kind were left out before"),
        }
    }
}

impl Default for Throttle {
    fn default() -> Self {
        Self::new(PAUSE)
    }
}

impl Throttle {
    /// A throttle with this pause, in whole milliseconds.
    #[must_use]
    pub const fn new(pause: Duration) -> Self {
        Self {
            // A pause is some seconds: nothing is lost.
            pause_ms: pause.as_millis() as u64,
            next: AtomicU64::new(0),
            left_out: AtomicU64::new(0),
        }
    }

    /// Whether a line may be written now, and how many were left out since the last one.
    #[must_use]
    pub fn pass(&self) -> Option<LeftOut> {
        self.pass_at(now_ms())
    }

    /// The same at a moment of the clock of [`now_ms`].
    #[must_use]
    pub fn pass_at(&self, now: u64) -> Option<LeftOut> {
        let next = self.next.load(Ordering::Relaxed);
        let after = now.saturating_add(self.pause_ms);
        // Of several at the same moment, one gets through.
        let passes = now >= next
            && self
                .next
                .compare_exchange(next, after, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if !passes {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(LeftOut(self.left_out.swap(0, Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::{LeftOut, Throttle};

    #[test]
    fn the_first_one_at_once_then_one_in_each_pause_with_the_number_of_the_others() {
        let throttle = Throttle::new(Duration::from_secs(10));
        assert_eq!(throttle.pass_at(5), Some(LeftOut(0)));
        for now in [5, 6, 4_000, 10_004] {
            assert_eq!(throttle.pass_at(now), None, "at {now}");
        }
        assert_eq!(throttle.pass_at(10_005), Some(LeftOut(4)));
        assert_eq!(throttle.pass_at(20_004), None);
        assert_eq!(throttle.pass_at(500_000), Some(LeftOut(1)));
    }

    #[test]
    fn many_threads_write_one_line_and_none_is_forgotten() {
        let throttle = Arc::new(Throttle::default());
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let throttle = Arc::clone(&throttle);
                std::thread::spawn(move || (0..1000).filter_map(|_| throttle.pass_at(7)).count())
            })
            .collect();
        let passed: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(passed, 1);
        // The one that got through may have found some left out by others already, and shown them.
        let LeftOut(rest) = throttle.pass_at(1_000_000).unwrap();
        assert!((7000..=7999).contains(&rest), "{rest}");
    }

    #[test]
    fn what_was_left_out_stands_behind_the_line() {
        for (count, text) in [
            (0, "x"),
            (1, "x; 1 more of this kind was left out before"),
            (9, "x; 9 more of this kind were left out before"),
        ] {
            assert_eq!(format!("x{}", LeftOut(count)), text);
        }
    }
}
