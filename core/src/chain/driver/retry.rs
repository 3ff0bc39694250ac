//! What follows a failed attempt.
//!
//! Source: ShenYu 2.7.1, retry strategies: `current` repeats time-outs on the same upstream, anything
//! else goes to another one after any error; the texts and statuses are the reference's. Ours: only
//! what is safe is repeated, and within a budget.

use std::fmt::Write as _;
use std::time::Duration;

use http::StatusCode;
use rand::Rng;

use crate::chain::TargetPolicy;
use crate::error::{ErrorStatus, Fault, GatewayError, Reason, Retry};
use crate::upstream::{Endpoint, Failure};

/// Where another attempt would go, if it is safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Nowhere: this is the answer.
    Stop,
    /// To the same upstream, after a wait.
    Same,
    /// To another one, at once.
    Other,
}

/// The way that the rule's strategy takes after this error.
pub(super) fn way(failover: bool, mode: ErrorStatus, error: &GatewayError) -> Way {
    let nothing_sent = error.retry() == Retry::Safe;
    // What the gateway refused itself (a limit that is reached) another upstream may take.
    let of_upstream = match error.fault() {
        Fault::Upstream => true,
        Fault::Gateway => failover && nothing_sent,
        Fault::Client => false,
    };
    if !of_upstream {
        return Way::Stop;
    }
    if failover {
        return Way::Other;
    }
    match (error.reason(), mode) {
        (Reason::UpstreamTimeout | Reason::UpstreamConnectTimeout, _) => Way::Same,
        // To the rest the reference answers at once.
        (_, ErrorStatus::Standard) if nothing_sent => Way::Other,
        (Reason::UpstreamReset, ErrorStatus::Standard) => Way::Same,
        _ => Way::Stop,
    }
}

/// What an error says about its upstream.
pub(super) fn failure(error: &GatewayError) -> Option<Failure> {
    if error.fault() != Fault::Upstream {
        return None;
    }
    Some(match (error.reason(), error.retry()) {
        (Reason::UpstreamTimeout, _) => Failure::Timeout,
        (_, Retry::Safe) => Failure::Connect,
        (_, Retry::IfIdempotent | Retry::Never) => Failure::Reset,
    })
}

/// The wait before the attempt after `before` repeated ones: 20 ms, doubled, at most 20 s, and up to
/// half of it more or less.
pub(super) fn wait(before: u32) -> Duration {
    const FIRST: Duration = Duration::from_millis(20);
    const LONGEST: Duration = Duration::from_secs(20);
    let doubled = FIRST.saturating_mul(1_u32.checked_shl(before).unwrap_or(u32::MAX));
    doubled.min(LONGEST).mul_f64(rand::rng().random_range(0.5..1.5))
}

/// What the client is told of the last error.
pub(super) fn answer(policy: &TargetPolicy, error: GatewayError) -> GatewayError {
    let late = matches!(error.reason(), Reason::UpstreamTimeout | Reason::UpstreamConnectTimeout);
    if !(policy.failover && late) {
        return error;
    }
    let text = format!("Response took longer than timeout: {}", iso(policy.timeout));
    error.shenyu(StatusCode::GATEWAY_TIMEOUT, text)
}

/// Another upstream was to be tried, and there is none.
pub(super) fn none_left(last: &GatewayError) -> GatewayError {
    GatewayError::new(
        Fault::Upstream,
        Reason::NoUpstreamLeft,
        StatusCode::SERVICE_UNAVAILABLE,
        "CANNOT_FIND_HEALTHY_UPSTREAM_URL_AFTER_FAILOVER",
    )
    .detail(format_args!("the last one tried: {last}"))
}

/// The upstream has as many requests under way as it may.
pub(super) fn overloaded(endpoint: &Endpoint) -> GatewayError {
    GatewayError::new(
        Fault::Gateway,
        Reason::UpstreamOverloaded,
        StatusCode::SERVICE_UNAVAILABLE,
        "the upstream is at its limit of requests",
    )
    .retry_when(Retry::Safe)
    .detail(endpoint)
}

/// A duration as Java prints it: `PT3S`, `PT0.3S`, `PT1M30S`.
fn iso(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let mut text = String::from("PT");
    for (count, unit) in [(hours, 'H'), (minutes, 'M')] {
        if count > 0 {
            // Writing to a string cannot fail.
            let _ = write!(text, "{count}{unit}");
        }
    }
    let nanos = time.subsec_nanos();
    if nanos > 0 {
        let fraction = format!("{nanos:09}");
        let _ = write!(text, "{seconds}.{}S", fraction.trim_end_matches('0'));
    } else if seconds > 0 || text.len() == 2 {
        let _ = write!(text, "{seconds}S");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::StatusCode;

    use super::{Way, iso, wait, way};
    use crate::error::{ErrorStatus, Fault, GatewayError, Reason, Retry};

    #[test]
    fn strategies_follow_the_table() {
        use ErrorStatus::{Shenyu, Standard};
        use Reason::{
            BadRequest, PluginFailed, UpstreamConnect, UpstreamConnectTimeout, UpstreamOverloaded,
            UpstreamProtocol, UpstreamReset, UpstreamTimeout,
        };
        use Retry::{IfIdempotent, Never, Safe};
        for (reason, fault, retry, shenyu, standard, failover) in [
            (UpstreamTimeout, Fault::Upstream, IfIdempotent, Way::Same, Way::Same, Way::Other),
            (UpstreamConnectTimeout, Fault::Upstream, Safe, Way::Same, Way::Same, Way::Other),
            (UpstreamConnect, Fault::Upstream, Safe, Way::Stop, Way::Other, Way::Other),
            (UpstreamReset, Fault::Upstream, IfIdempotent, Way::Stop, Way::Same, Way::Other),
            (UpstreamProtocol, Fault::Upstream, IfIdempotent, Way::Stop, Way::Stop, Way::Other),
            (UpstreamOverloaded, Fault::Gateway, Safe, Way::Stop, Way::Stop, Way::Other),
            (PluginFailed, Fault::Gateway, Never, Way::Stop, Way::Stop, Way::Stop),
            (BadRequest, Fault::Client, Never, Way::Stop, Way::Stop, Way::Stop),
        ] {
            let error = GatewayError::new(fault, reason, StatusCode::BAD_GATEWAY, "x");
            let error = error.retry_when(retry);
            assert_eq!(way(false, Shenyu, &error), shenyu, "{reason}");
            assert_eq!(way(false, Standard, &error), standard, "{reason}");
            assert_eq!(way(true, Shenyu, &error), failover, "{reason}");
            assert_eq!(way(true, Standard, &error), failover, "{reason}");
        }
    }

    #[test]
    fn waits_double_up_to_a_limit() {
        for (before, middle) in [(0, 20), (1, 40), (5, 640), (10, 20_000), (100, 20_000)] {
            for _ in 0..50 {
                let ms = wait(before).as_millis();
                assert!((middle / 2..=middle * 3 / 2).contains(&ms), "{before}: {ms}");
            }
        }
    }

    #[test]
    fn durations_read_as_java_prints_them() {
        for (ms, text) in [
            (0, "PT0S"),
            (3000, "PT3S"),
            (300, "PT0.3S"),
            (1050, "PT1.05S"),
            (60_000, "PT1M"),
            (90_500, "PT1M30.5S"),
            (3_600_000, "PT1H"),
            (3_661_000, "PT1H1M1S"),
        ] {
            assert_eq!(iso(Duration::from_millis(ms)), text);
        }
    }
}
