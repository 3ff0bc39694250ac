//! What registering clients share: how many are served at once, and who has just said good-bye.

pub(crate) mod held;
pub(crate) mod mirror;
pub(crate) mod probes;

use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Method;
use longmen_core::telemetry::Throttle;
use longmen_db::repository::instance::Farewell;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::error::{ApiError, ApiResult};
use crate::state::AppState;

/// Registrations that are written at a time; more wait. Each takes a connection of the store, and those
/// of one namespace and plugin follow one another anyway.
const AT_ONCE: usize = 4;

/// How often one is tried. They are idempotent, so what may or may not have been written is written
/// again.
const ATTEMPTS: u32 = 5;

/// The pause after the first failed attempt; it doubles.
const PAUSE: Duration = Duration::from_millis(50);

/// How long a heartbeat of an instance that said good-bye counts for nothing. SDKs send heartbeats
/// every ten seconds from a thread of its own, which goes on while the process stops.
pub(crate) const FAREWELL: Duration = Duration::from_secs(60);

/// How long a heartbeat shows that an instance is alive, though no probe reaches it: two of them, as
/// long as the reference calls an instance online.
pub(crate) const BEAT: Duration = Duration::from_secs(20);

/// So many good-byes, and so many heartbeats, are remembered.
const MAX_KNOWN: usize = 65_536;

/// The shared part of all registrations at this admin. What the others must know as well is in the store
/// besides: good-byes, and heartbeats with a delay of a second.
#[derive(Debug)]
pub(crate) struct Registration {
    slots: Arc<Semaphore>,
    dropped: Throttle,
    departed: Mutex<HashMap<Instance, Instant>>,
    beats: Mutex<HashMap<(String, String), Instant>>,
}

/// One instance of a service.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Instance {
    /// Its namespace.
    pub namespace_id: String,
    /// The plugin that serves it.
    pub plugin: &'static str,
    /// The selector that it belongs to.
    pub selector: String,
    /// `host:port`.
    pub url: String,
}

impl Default for Registration {
    fn default() -> Self {
        Self {
            slots: Arc::new(Semaphore::new(AT_ONCE)),
            dropped: Throttle::default(),
            departed: Mutex::default(),
            beats: Mutex::default(),
        }
    }
}

impl Registration {
    /// Remembers that an instance said good-bye.
    pub(crate) fn departed(&self, instance: Instance) {
        let now = Instant::now();
        let mut beats = self.beats.lock().unwrap_or_else(PoisonError::into_inner);
        beats.remove(&(instance.namespace_id.clone(), instance.url.clone()));
        drop(beats);
        let mut departed = self.departed.lock().unwrap_or_else(PoisonError::into_inner);
        remember(&mut departed, instance, now + FAREWELL, now);
    }

    /// Remembers that an instance said it is alive.
    pub(crate) fn beat(&self, instance: &Instance) {
        let now = Instant::now();
        let mut beats = self.beats.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (instance.namespace_id.clone(), instance.url.clone());
        remember(&mut beats, key, now + BEAT, now);
    }

    /// Whether an instance at an address said a moment ago that it is alive.
    pub(crate) fn is_beating(&self, namespace_id: &str, url: &str) -> bool {
        let beats = self.beats.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (namespace_id.to_owned(), url.to_owned());
        beats.get(&key).is_some_and(|until| *until > Instant::now())
    }

    /// Whether an instance said good-bye a moment ago.
    pub(crate) fn is_departed(&self, instance: &Instance) -> bool {
        let departed = self.departed.lock().unwrap_or_else(PoisonError::into_inner);
        departed.get(instance).is_some_and(|until| *until > Instant::now())
    }

    /// Forgets a good-bye: the instance is back.
    pub(crate) fn arrived(&self, instance: &Instance) {
        self.departed.lock().unwrap_or_else(PoisonError::into_inner).remove(instance);
    }
}

/// Notes until when something counts, unless there is no room even without what counts no more.
fn remember<K: Eq + Hash>(known: &mut HashMap<K, Instant>, key: K, until: Instant, now: Instant) {
    if known.len() >= MAX_KNOWN {
        known.retain(|_, until| *until > now);
    }
    if known.len() < MAX_KNOWN {
        known.insert(key, until);
    }
}

impl Instance {
    /// As the store knows it.
    pub(crate) fn farewell(&self) -> Farewell<'_> {
        Farewell {
            namespace_id: &self.namespace_id,
            plugin: self.plugin,
            selector: &self.selector,
            url: &self.url,
        }
    }
}

/// A good-bye or a heartbeat counts for so long, in milliseconds.
pub(crate) fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Runs `work` to its end, also when the caller leaves meanwhile: the Go SDK does after a second, and
/// the Java SDK never sends again what was answered by an error. What cannot be stored as it is, is
/// left out with a line in the log and counts as done, as with the reference.
///
/// # Errors
/// Failures of the store that last.
pub(crate) async fn run<W, F>(state: &AppState, what: &'static str, work: W) -> ApiResult<()>
where
    W: Fn() -> F + Send + Sync + 'static,
    F: Future<Output = ApiResult<()>> + Send,
{
    let slots = Arc::clone(&state.registration().slots);
    // Never closed.
    let slot = slots.acquire_owned().await.map_err(anyhow::Error::from)?;
    let (state, hard) = (state.clone(), state.life().hard().clone());
    let tasks = state.tasks().clone();
    let task = tasks.spawn(async move {
        let _slot = slot;
        tokio::select! {
            done = repeated(&work) => done,
            () = hard.cancelled() => Err(anyhow::anyhow!("the admin stopped").into()),
        }
        .or_else(|error| left_out(&state, what, error))
    });
    task.await.map_err(anyhow::Error::from)?
}

async fn repeated<W, F>(work: &W) -> ApiResult<()>
where
    W: Fn() -> F,
    F: Future<Output = ApiResult<()>>,
{
    let mut pause = PAUSE;
    for _ in 1..ATTEMPTS {
        match work().await {
            Err(error) if may_pass(&error) => {
                tracing::debug!(?error, "a registration is tried again");
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            done => return done,
        }
    }
    work().await
}

/// Whether trying again can help: the store is busy or away, or another writer was a little faster.
fn may_pass(error: &ApiError) -> bool {
    let ApiError::Internal(inner) = error else { return false };
    let faster = inner
        .downcast_ref::<longmen_db::Error>()
        .is_some_and(longmen_db::Error::is_unique_violation);
    faster || error.may_be_tried_again(&Method::GET)
}

fn left_out(state: &AppState, what: &'static str, error: ApiError) -> ApiResult<()> {
    let ApiError::Refused(reason) = &error else { return Err(error) };
    if let Some(others) = state.registration().dropped.pass() {
        tracing::warn!("{what}: {reason}; left out{others}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance(port: u16) -> Instance {
        Instance {
            namespace_id: "n".to_owned(),
            plugin: "divide",
            selector: "/a".to_owned(),
            url: format!("127.0.0.1:{port}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_good_bye_is_forgotten_after_a_while_or_when_the_instance_is_back() {
        let shared = Registration::default();
        shared.departed(instance(1));
        shared.departed(instance(2));
        assert!(shared.is_departed(&instance(1)) && !shared.is_departed(&instance(3)));
        shared.arrived(&instance(1));
        assert!(!shared.is_departed(&instance(1)));
        tokio::time::advance(FAREWELL).await;
        assert!(!shared.is_departed(&instance(2)));
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_can_pass_is_tried_again() {
        let calls = std::cell::Cell::new(0);
        let busy = async || -> ApiResult<()> {
            calls.set(calls.get() + 1);
            Err(longmen_db::Error::NodeLeaseOver.into())
        };
        assert!(repeated(&busy).await.is_err());
        assert_eq!(calls.replace(0), ATTEMPTS);
        let refused = async || -> ApiResult<()> {
            calls.set(calls.get() + 1);
            Err(ApiError::refused("no"))
        };
        assert!(repeated(&refused).await.is_err());
        assert_eq!(calls.get(), 1);
    }
}
