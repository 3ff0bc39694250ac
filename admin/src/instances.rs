//! Instances that say that they are alive: gateways of any kind, and services.
//!
//! What is heard is kept here for a moment and written many at a time, so that heartbeats cost one row
//! each in one statement, however often they come. The states are kept by a job that one admin runs.
//!
//! Source: ShenYu 2.7.1, instance table: states and their ages. Ours: it is one table for all admins, and
//! what is long gone is forgotten.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use longmen_core::telemetry::Throttle;
use longmen_db::repository::instance::{self, InstanceAges, InstanceKey};
use longmen_db::{Actor, Lease, require_lease};
use tokio::time::{MissedTickBehavior, interval};

use crate::registration::FAREWELL;
use crate::state::AppState;

/// What a gateway that reports by its sync is.
pub(crate) const BOOTSTRAP: &str = "bootstrap";

/// What a service is.
pub(crate) const CLIENT: &str = "client";

/// Most instances whose words wait to be written.
const MAX_WAITING: usize = 65_536;

/// How often states are brought up to date.
const EVERY: Duration = Duration::from_secs(10);

/// As the reference's, and a week until an instance is forgotten.
const AGES: InstanceAges =
    InstanceAges { offline_ms: 20_000, deleted_ms: 60_000, forgotten_ms: 7 * 86_400_000 };

/// Words of instances that wait to be written.
#[derive(Debug, Default)]
pub(crate) struct Instances {
    waiting: Mutex<HashMap<InstanceKey, String>>,
    dropped: Throttle,
}

impl Instances {
    /// Notes that an instance is alive.
    pub(crate) fn beat(&self, key: InstanceKey, info: String) {
        let mut waiting = self.lock();
        if waiting.len() < MAX_WAITING || waiting.contains_key(&key) {
            waiting.entry(key).or_insert(info);
            return;
        }
        drop(waiting);
        if let Some(others) = self.dropped.pass() {
            tracing::warn!(
                "more than {MAX_WAITING} heartbeats wait to be stored, one is left out{others}"
            );
        }
    }

    /// Takes what waits, at most `most`.
    pub(crate) fn take(&self, most: usize) -> Vec<(InstanceKey, String)> {
        let mut waiting = self.lock();
        if waiting.len() <= most {
            return waiting.drain().collect();
        }
        let keys: Vec<InstanceKey> = waiting.keys().take(most).cloned().collect();
        keys.into_iter().filter_map(|key| waiting.remove_entry(&key)).collect()
    }

    /// Takes back what could not be written.
    pub(crate) fn put_back(&self, beats: Vec<(InstanceKey, String)>) {
        for (key, info) in beats {
            self.beat(key, info);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<InstanceKey, String>> {
        // Every change is complete.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps the states, for as long as this admin holds the lease.
pub(crate) async fn keep_states(state: AppState, lease: Lease) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let failed = Throttle::default();
    loop {
        ticks.tick().await;
        if let Err(error) = age(&state, &lease).await
            && let Some(others) = failed.pass()
        {
            tracing::warn!("the states of instances were not brought up to date: {error}{others}");
        }
    }
}

async fn age(state: &AppState, lease: &Lease) -> longmen_db::Result<()> {
    let mut uow = state.store().begin(Actor::system()).await?;
    require_lease(&mut uow, lease).await?;
    let farewell_ms = i64::try_from(FAREWELL.as_millis()).unwrap_or(i64::MAX);
    instance::age(&mut uow, AGES, farewell_ms).await?;
    uow.commit().await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(port: usize) -> InstanceKey {
        InstanceKey {
            namespace_id: "n".to_owned(),
            ip: "10.0.0.1".to_owned(),
            port: port.to_string(),
            kind: CLIENT.to_owned(),
        }
    }

    #[test]
    fn words_wait_once_each_and_up_to_a_limit() {
        let instances = Instances::default();
        for _ in 0..3 {
            instances.beat(key(1), "{}".to_owned());
        }
        instances.beat(key(2), "{}".to_owned());
        let one = instances.take(1);
        assert_eq!(one.len(), 1);
        instances.put_back(one);
        assert_eq!(instances.take(9).len(), 2);
        for port in 0..MAX_WAITING + 10 {
            instances.beat(key(port), String::new());
        }
        assert_eq!(instances.take(usize::MAX).len(), MAX_WAITING);
    }
}
