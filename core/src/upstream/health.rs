//! Whether an upstream may be chosen: what probes say, and what requests met.
//!
//! *Probes* (active checks) take an upstream out and in again; one that is out is never chosen.
//! *Requests* eject it for a time after several failures in a row; an ejected one is chosen only
//! when nothing else is left, and by one request on trial when its time is over. The states:
//!
//! ```text
//!            n failures in a row              time over
//!   in  ───────────────────────────▶ ejected ───────────▶ on trial (one request)
//!    ▲                                 │  ▲                   │        │
//!    │  a success, or a probe that     │  │   it fails: again,│        │ it succeeds
//!    └──connects where connecting was──┘  └───twice as long───┘        │
//!    └─────────────────────────────────────────────────────────────────┘
//! ```
//!
//! The path of a request that goes well reads two atomics and writes none.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::Rng;

use super::clock::millis;

/// How upstreams are ejected after failures of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EjectionPolicy {
    /// Failures in a row after which an upstream is ejected; 0 never ejects.
    pub after: u32,
    /// How long the first time; doubled each time it happens again soon.
    pub base: Duration,
    /// The longest time.
    pub max: Duration,
}

impl Default for EjectionPolicy {
    fn default() -> Self {
        Self { after: 5, base: Duration::from_secs(5), max: Duration::from_secs(60) }
    }
}

/// What went wrong with a request, as far as its upstream is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// No connection: refused, unreachable, not in time, no such name.
    Connect,
    /// The connection ended without an answer, or the answer was no HTTP.
    Reset,
    /// No response head in time.
    Timeout,
}

/// How probes are judged.
///
/// Source: ShenYu 2.7.1, upstream check: thresholds are times, not counts; with the defaults one
/// result decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProbeRule {
    /// The pause between two probes.
    pub(super) interval: Duration,
    /// Intervals without a failure after which an upstream is taken in again.
    pub(super) healthy: u32,
    /// Intervals without a success after which an upstream is taken out.
    pub(super) unhealthy: u32,
}

/// What an observation changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Probes took it out.
    ProbedOut,
    /// Probes took it in again.
    ProbedIn,
    /// Requests ejected it, for so long.
    Ejected(Duration),
    /// It is no longer ejected.
    Returned,
}

/// Whether an upstream may be chosen now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Yes.
    In,
    /// By one request, on trial: its time of ejection is over.
    Trial,
    /// Only when nothing else is left.
    Ejected,
    /// No.
    Out,
}

/// The state of one upstream.
#[derive(Debug, Default)]
pub(super) struct Health {
    /// 0: in. Else [`OUT`], and below it until when it is ejected.
    out: AtomicU64,
    /// Failures in a row.
    failures: AtomicU32,
    /// What only failures and probes touch.
    record: Mutex<Record>,
}

/// Taken out by probes.
const OUT: u64 = 1 << 63;

#[derive(Debug, Default)]
struct Record {
    /// How often it was ejected in close succession, less one.
    level: u32,
    /// When the last ejection was to end; 0 before the first.
    last_until: u64,
    cause: Option<Failure>,
    /// A request is on its way to see whether it is back.
    trial: bool,
    last_success: u64,
    last_failure: u64,
}

impl Health {
    /// In, without any reservation.
    pub(super) fn is_plain(&self) -> bool {
        self.out.load(Ordering::Relaxed) == 0
    }

    /// Taken out by probes.
    pub(super) fn is_out(&self) -> bool {
        self.out.load(Ordering::Relaxed) & OUT != 0
    }

    pub(super) fn standing(&self, now: u64) -> Standing {
        match self.out.load(Ordering::Relaxed) {
            0 => Standing::In,
            out if out & OUT != 0 => Standing::Out,
            until if until <= now => Standing::Trial,
            _ => Standing::Ejected,
        }
    }

    /// Failures in a row.
    pub(super) fn failures(&self) -> u32 {
        self.failures.load(Ordering::Relaxed)
    }

    /// For how long it is still ejected.
    pub(super) fn ejected_for(&self, now: u64) -> Option<Duration> {
        let until = self.out.load(Ordering::Relaxed) & !OUT;
        (until != 0).then(|| Duration::from_millis(until.saturating_sub(now)))
    }

    /// Takes the one place on trial; false when another request was quicker. Until it is told how
    /// that went, or for the base time, nobody else gets one.
    pub(super) fn claim(&self, now: u64, policy: &EjectionPolicy) -> bool {
        let until = self.out.load(Ordering::Relaxed);
        if until == 0 || until & OUT != 0 || until > now {
            return false;
        }
        let mut record = self.record();
        let lease = now.saturating_add(millis(policy.base).max(1));
        let taken =
            self.out.compare_exchange(until, lease, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        record.trial |= taken;
        taken
    }

    /// A request got its response head. Writes nothing while all is well.
    pub(super) fn succeeded(&self) -> Option<Change> {
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
        if self.out.load(Ordering::Relaxed) & !OUT == 0 {
            return None;
        }
        self.back()
    }

    /// A request failed.
    pub(super) fn failed(
        &self,
        failure: Failure,
        now: u64,
        policy: &EjectionPolicy,
    ) -> Option<Change> {
        let in_a_row = self.failures.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if policy.after == 0 {
            return None;
        }
        let ejected = self.out.load(Ordering::Relaxed) & !OUT != 0;
        if !ejected && in_a_row < policy.after {
            return None;
        }
        let mut record = self.record();
        // What was under way when it was ejected says nothing new; only the one on trial does.
        if ejected && !record.trial {
            return None;
        }
        let recent =
            record.last_until != 0 && now < record.last_until.saturating_add(millis(policy.max));
        record.level = if recent { (record.level + 1).min(20) } else { 0 };
        record.trial = false;
        record.cause = Some(failure);
        let time = backed_off(policy, record.level);
        let until = now.saturating_add(millis(time).max(1)) & !OUT;
        record.last_until = until;
        self.failures.store(0, Ordering::Relaxed);
        self.out.store(until | self.out.load(Ordering::Relaxed) & OUT, Ordering::Relaxed);
        Some(Change::Ejected(time))
    }

    /// Whether a probe could tell that it is back: ejected since nobody could connect.
    pub(super) fn awaits_probe(&self) -> bool {
        self.out.load(Ordering::Relaxed) & !OUT != 0
            && self.record().cause == Some(Failure::Connect)
    }

    /// A probe ended.
    pub(super) fn probed(&self, connected: bool, now: u64, rule: &ProbeRule) -> Option<Change> {
        let mut record = self.record();
        let out = self.is_out();
        let interval = millis(rule.interval);
        if !connected {
            record.last_failure = now;
            let since = now.saturating_sub(record.last_success);
            let never = record.last_success == 0;
            if out || !(never || since >= interval.saturating_mul(rule.unhealthy.into())) {
                return None;
            }
            self.out.fetch_or(OUT, Ordering::Relaxed);
            return Some(Change::ProbedOut);
        }
        record.last_success = now;
        let since = now.saturating_sub(record.last_failure);
        if !out || since < interval.saturating_mul(rule.healthy.into()) {
            return None;
        }
        // What requests met before counts no more: it was gone, and is back.
        self.failures.store(0, Ordering::Relaxed);
        self.out.store(0, Ordering::Relaxed);
        record.trial = false;
        Some(Change::ProbedIn)
    }

    /// A probe of an ejected one ended: it returns, or stays where it is a little longer, so that no
    /// request has to try.
    pub(super) fn probed_ejected(
        &self,
        connected: bool,
        now: u64,
        policy: &EjectionPolicy,
    ) -> Option<Change> {
        if !self.awaits_probe() {
            return None;
        }
        if connected {
            self.failures.store(0, Ordering::Relaxed);
            return self.back();
        }
        let mut record = self.record();
        let until = now.saturating_add(millis(policy.base).max(1)) & !OUT;
        record.last_until = record.last_until.max(until);
        let _ = self.out.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |out| {
            (out & !OUT != 0).then(|| (out & OUT) | (out & !OUT).max(until))
        });
        None
    }

    /// Probes do not look at it any more: what they said is forgotten.
    pub(super) fn unwatched(&self) -> Option<Change> {
        if !self.is_out() {
            return None;
        }
        let mut record = self.record();
        (record.last_success, record.last_failure) = (0, 0);
        self.out.fetch_and(!OUT, Ordering::Relaxed);
        Some(Change::ProbedIn)
    }

    fn back(&self) -> Option<Change> {
        let mut record = self.record();
        record.trial = false;
        let before = self.out.fetch_and(OUT, Ordering::Relaxed);
        (before & !OUT != 0).then_some(Change::Returned)
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Base time, doubled per level, up to the limit, and up to a tenth less, so that the gateways of a
/// fleet do not try in the same moment.
fn backed_off(policy: &EjectionPolicy, level: u32) -> Duration {
    let doubled = policy.base.saturating_mul(1_u32.checked_shl(level).unwrap_or(u32::MAX));
    doubled.min(policy.max.max(policy.base)).mul_f64(1.0 - rand::rng().random_range(0.0..0.1))
}

#[cfg(test)]
mod tests;
