//! Keeping the change log and the operation log small.

use std::time::Duration;

use longmen_db::{Pruned, Retention, Store, prune};
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use super::patience::Patience;
use crate::config::HistoryConfig;
use crate::jobs::Job;

/// How often old changes are taken away: often enough that each time is short.
const EVERY: Duration = Duration::from_secs(300);

/// Prunes until `stop`, on one of the admins.
pub(super) async fn run(
    store: Store,
    config: HistoryConfig,
    patience: Patience,
    stop: CancellationToken,
) {
    let retention = retention(&config);
    let job = Job::new(store.clone(), "prune");
    Box::pin(job.run(stop, |_lease| rounds(store.clone(), retention, patience))).await;
}

/// What is taken away twice is not there the second time, so no lease has to be shown for it.
async fn rounds(store: Store, retention: Retention, patience: Patience) {
    let mut ticks = interval_at(Instant::now() + EVERY, EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match patience.state("room in the history", prune(&store, retention)).await {
            Ok(Pruned { changes: 0, operations: 0 }) => {}
            Ok(Pruned { changes, operations }) => {
                tracing::debug!(changes, operations, "old rows taken out of the history");
            }
            Err(error) => {
                tracing::warn!(error = format!("{error:#}"), "old changes stay for now");
            }
        }
    }
}

fn retention(config: &HistoryConfig) -> Retention {
    let ms = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    Retention {
        dispatch_sets: config.dispatch_max_changes,
        dispatch_ms: ms(config.dispatch_retention),
        history_ms: config.retention.map_or(i64::MAX, ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AdminConfig;

    #[test]
    fn the_shipped_times_are_a_day_and_a_year() {
        let shipped = retention(&AdminConfig::default().history);
        let day = 86_400_000;
        assert_eq!((shipped.dispatch_ms, shipped.history_ms), (day, 365 * day));
        let for_ever = HistoryConfig { retention: None, ..AdminConfig::default().history };
        assert_eq!(retention(&for_ever).history_ms, i64::MAX);
    }
}
