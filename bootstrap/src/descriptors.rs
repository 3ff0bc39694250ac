//! The limit of open files of the process.

use std::fmt;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::{info, warn};

use crate::config::GatewayConfig;

/// Descriptors beside those of client connections and of the connections to upstreams behind them:
/// sockets that listen, runtimes, files, sessions with admins.
const OTHERS: u64 = 200;

/// A number of descriptors, or as many as there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limit(Option<u64>);

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(count) => count.fmt(f),
            None => f.write_str("unlimited"),
        }
    }
}

/// Raises the soft limit of open files to the hard one, says what it is now, and warns where that is
/// less than what the limits of connections need that somebody has set; where it is less than the
/// defaults need, it says no more than that. Called once, by the binary.
///
/// A process starts with a soft limit that suits programs which count descriptors in a bit set, mostly
/// 1024, far below what a gateway holds; the hard limit is what the operator allows.
pub fn raise(config: &GatewayConfig) {
    let before = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: before.maximum, maximum: before.maximum };
    if before.current != before.maximum
        && let Err(error) = setrlimit(Resource::Nofile, wanted)
    {
        let (from, to) = (Limit(before.current), Limit(before.maximum));
        warn!("cannot raise the limit of open files from {from} to {to}: {error}");
    }
    let now = Limit(getrlimit(Resource::Nofile).current);
    info!(open_files = %now, "limit of open files: {now}");
    match shortage(now, &Demand::of(config)) {
        Some(Shortage::OfWhatIsSet(text)) => warn!(open_files = %now, "{text}"),
        Some(Shortage::OfDefaults(text)) => info!(open_files = %now, "{text}"),
        None => {}
    }
}

/// Limits of connections that take descriptors.
#[derive(Debug)]
struct Demand {
    /// Key, limit, and whether somebody has set it.
    limits: [(&'static str, usize, bool); 2],
}

impl Demand {
    fn of(config: &GatewayConfig) -> Self {
        let (limits, websocket) = (&config.limits, &config.websocket);
        // A websocket is no connection of the first limit any more.
        Self {
            limits: [
                (
                    "shenyu.limits.maxConnections",
                    limits.max_connections,
                    limits.max_connections_is_set,
                ),
                (
                    "shenyu.websocket.maxConnections",
                    websocket.max_connections,
                    websocket.max_connections_is_set,
                ),
            ],
        }
    }

    /// What these limits need, and what they are. A connection of a client needs a descriptor, and its
    /// request, or its websocket, one more to the upstream.
    fn needed(&self, counts: impl Fn(bool) -> bool) -> (u64, String) {
        let counted = || self.limits.iter().filter(|(_, _, is_set)| counts(*is_set));
        let connections: u64 = counted().map(|(_, limit, _)| *limit as u64).sum();
        let named: Vec<_> = counted().map(|(key, limit, _)| format!("{key}, {limit}")).collect();
        (connections.saturating_mul(2).saturating_add(OTHERS), named.join(", and "))
    }
}

/// There are fewer descriptors than connections may need.
#[derive(Debug, PartialEq, Eq)]
enum Shortage {
    OfWhatIsSet(String),
    OfDefaults(String),
}

fn shortage(limit: Limit, demand: &Demand) -> Option<Shortage> {
    let available = limit.0?;
    let (needed, named) = demand.needed(|is_set| is_set);
    if !named.is_empty() && available < needed {
        return Some(Shortage::OfWhatIsSet(format!(
            "the limit of open files, {limit}, is too low for {named}: expected at least {needed}; \
             connections past it are not accepted"
        )));
    }
    let (needed, named) = demand.needed(|_| true);
    (available < needed).then(|| {
        Shortage::OfDefaults(format!(
            "the limit of open files is reached before {named}, which would need {needed}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::{Demand, Limit, Shortage, shortage};

    fn demand(connections: (usize, bool), websockets: (usize, bool)) -> Demand {
        Demand { limits: [("a", connections.0, connections.1), ("b", websockets.0, websockets.1)] }
    }

    #[test]
    fn two_for_each_connection_and_some_more_are_enough() {
        let both = demand((10_000, true), (5_000, true));
        assert_eq!(shortage(Limit(None), &both), None);
        assert_eq!(shortage(Limit(Some(30_200)), &both), None);
        let Some(Shortage::OfWhatIsSet(text)) = shortage(Limit(Some(30_199)), &both) else {
            panic!("no warning");
        };
        for part in ["30199", "a, 10000, and b, 5000", "30200"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn what_nobody_has_set_is_nothing_to_warn_of() {
        let one = demand((900, true), (100_000, false));
        let short = shortage(Limit(Some(2000)), &one);
        assert!(matches!(short, Some(Shortage::OfDefaults(_))), "{short:?}");
        let short = shortage(Limit(Some(1999)), &one);
        let Some(Shortage::OfWhatIsSet(text)) = short else { panic!("{short:?}") };
        assert!(text.contains("a, 900:") && !text.contains("b,"), "{text}");
        let none = demand((100_000, false), (100_000, false));
        let short = shortage(Limit(Some(20_000)), &none);
        assert!(matches!(short, Some(Shortage::OfDefaults(_))), "{short:?}");
        assert_eq!(shortage(Limit(Some(400_200)), &none), None);
    }
}
