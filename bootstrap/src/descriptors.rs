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
/// less than `shenyu.limits.maxConnections` needs. Called once, by the binary.
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
    let max_connections = config.limits.max_connections;
    if let Some(text) = shortage(now, max_connections) {
        warn!(open_files = %now, "{text}");
    }
}

/// A client connection needs a descriptor, and its request one more to the upstream.
const fn needed(max_connections: usize) -> u64 {
    (max_connections as u64).saturating_mul(2).saturating_add(OTHERS)
}

fn shortage(limit: Limit, max_connections: usize) -> Option<String> {
    let needed = needed(max_connections);
    (limit.0? < needed).then(|| {
        format!(
            "the limit of open files, {limit}, is too low for shenyu.limits.maxConnections, \
             {max_connections}: expected at least {needed}; connections past it are not accepted"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{Limit, shortage};

    #[test]
    fn two_for_each_connection_and_some_more_are_enough() {
        assert_eq!(shortage(Limit(None), 10_000_000), None);
        assert_eq!(shortage(Limit(Some(20_200)), 10_000), None);
        let text = shortage(Limit(Some(20_199)), 10_000).unwrap();
        assert!(
            text.contains("20199") && text.contains("10000") && text.contains("20200"),
            "{text}"
        );
    }
}
