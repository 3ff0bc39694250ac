//! Names of upstreams: looked up on the control runtime, kept for as long as their records say.
//!
//! A name in use is looked up again before its records run out, so that a request waits for a
//! look-up only at the first sight of a name. An answer that the name is gone counts at once; a
//! look-up that fails leaves the last answer in force for a while. Every name has one task, the
//! keeper, that ends when the name is no longer asked for.

mod system;

use std::collections::HashMap;
use std::fmt::Debug;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tracing::debug;

pub use system::SystemLookUp;

/// Shortest and longest time for which records are believed, whatever they say.
const TTL: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(3600));
/// The same for the answer that there is no such name.
const GONE_TTL: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));
/// How long records outlive their time while every look-up fails.
const STALE: Duration = Duration::from_secs(300);
/// Between look-ups that fail.
const FAILED_WAIT: Duration = Duration::from_secs(1);
/// Of one look-up, over all servers, attempts and search domains.
const LOOK_UP_TIMEOUT: Duration = Duration::from_secs(15);
/// Names kept at once.
const MAX_NAMES: usize = 10_000;

/// What a look-up found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// All addresses, at least one.
    pub addresses: Vec<IpAddr>,
    /// How long they are good for.
    pub ttl: Duration,
}

/// Why a look-up found nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LookUpError {
    /// The name has no addresses: a server said so.
    #[error("no addresses for this name")]
    NoSuchName {
        /// How long that is good for, if the server said.
        ttl: Option<Duration>,
    },
    /// Nobody could say.
    #[error("{0}")]
    Failed(String),
}

/// The future of a look-up.
pub type LookUpFuture = Pin<Box<dyn Future<Output = Result<Answer, LookUpError>> + Send>>;

/// A source of addresses: the system's servers, or a scripted one in tests.
///
/// Called on the control runtime. Never asked about IP literals.
pub trait LookUp: Debug + Send + Sync {
    /// Looks a name up, afresh.
    fn look_up(&self, name: &str) -> LookUpFuture;
}

#[derive(Debug, Clone)]
enum Known {
    /// The first look-up is under way.
    Nothing,
    Addresses {
        list: Arc<[IpAddr]>,
        until: Instant,
    },
    Error(LookUpError),
}

#[derive(Debug)]
struct NameEntry {
    known: watch::Sender<Known>,
    /// Since the keeper last looked.
    used: AtomicBool,
    /// Where the next connection begins in the list.
    turn: AtomicUsize,
}

type Names = HashMap<Box<str>, Arc<NameEntry>>;

/// The names in use.
#[derive(Debug, Clone)]
pub(super) struct Dns {
    source: Arc<dyn LookUp>,
    names: Arc<Mutex<Names>>,
    control: Handle,
}

impl Dns {
    pub(super) fn new(source: Arc<dyn LookUp>, control: Handle) -> Self {
        Self { source, names: Arc::default(), control }
    }

    /// All addresses of a name, beginning with another one each time. Waits at the first sight of
    /// a name only.
    pub(super) async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, LookUpError> {
        let entry = self.entry(name)?;
        let mut known = entry.known.subscribe();
        let known = match known.wait_for(|known| !matches!(known, Known::Nothing)).await {
            Ok(known) => known.clone(),
            Err(_) => return Err(LookUpError::Failed("the look-up was given up".to_owned())),
        };
        match known {
            Known::Addresses { list, until } if Instant::now() < until + STALE => {
                let turn = entry.turn.fetch_add(1, Ordering::Relaxed) % list.len();
                Ok(list[turn..].iter().chain(&list[..turn]).copied().collect())
            }
            Known::Error(error) => Err(error),
            Known::Addresses { .. } | Known::Nothing => {
                Err(LookUpError::Failed("no name server answers".to_owned()))
            }
        }
    }

    fn entry(&self, name: &str) -> Result<Arc<NameEntry>, LookUpError> {
        let mut names = lock(&self.names);
        if let Some(entry) = names.get(name) {
            entry.used.store(true, Ordering::Relaxed);
            return Ok(Arc::clone(entry));
        }
        if names.len() >= MAX_NAMES {
            return Err(LookUpError::Failed(format!("more than {MAX_NAMES} names in use")));
        }
        let entry = Arc::new(NameEntry {
            known: watch::Sender::new(Known::Nothing),
            used: AtomicBool::new(true),
            turn: AtomicUsize::new(0),
        });
        names.insert(name.into(), Arc::clone(&entry));
        let keeper = Keeper {
            name: name.into(),
            entry: Arc::clone(&entry),
            source: Arc::clone(&self.source),
            names: Arc::clone(&self.names),
        };
        self.control.spawn(keeper.run());
        Ok(entry)
    }
}

fn lock(names: &Mutex<Names>) -> MutexGuard<'_, Names> {
    names.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks one name up, again and again. Owned by [`Dns`]; ends when the name is not used any more,
/// or with the control runtime.
struct Keeper {
    name: Box<str>,
    entry: Arc<NameEntry>,
    source: Arc<dyn LookUp>,
    names: Arc<Mutex<Names>>,
}

impl Keeper {
    async fn run(self) {
        loop {
            let found = match timeout(LOOK_UP_TIMEOUT, self.source.look_up(&self.name)).await {
                Ok(found) => found,
                Err(_) => Err(LookUpError::Failed("no name server answers in time".to_owned())),
            };
            let wait = self.take_in(found);
            // Used or not is asked over a whole period; the first one began with a use.
            self.entry.used.store(false, Ordering::Relaxed);
            sleep(wait).await;
            if self.forgotten() {
                return;
            }
        }
    }

    /// Publishes what a look-up found; says when the next is due.
    fn take_in(&self, found: Result<Answer, LookUpError>) -> Duration {
        let now = Instant::now();
        match found {
            Ok(answer) if !answer.addresses.is_empty() => {
                let ttl = answer.ttl.clamp(TTL.0, TTL.1);
                let known = Known::Addresses { list: answer.addresses.into(), until: now + ttl };
                self.entry.known.send_replace(known);
                ttl.mul_f32(0.8)
            }
            Ok(_) => self.gone(None),
            Err(LookUpError::NoSuchName { ttl }) => self.gone(ttl),
            Err(LookUpError::Failed(text)) => {
                debug!(name = &*self.name, "look-up failed: {text}");
                let usable = |known: &Known| matches!(known, Known::Addresses { until, .. } if now < *until + STALE);
                self.entry.known.send_if_modified(|known| {
                    let replace = !usable(known);
                    if replace {
                        *known = Known::Error(LookUpError::Failed(text));
                    }
                    replace
                });
                FAILED_WAIT
            }
        }
    }

    fn gone(&self, ttl: Option<Duration>) -> Duration {
        let known = Known::Error(LookUpError::NoSuchName { ttl });
        self.entry.known.send_replace(known);
        ttl.unwrap_or(GONE_TTL.1).clamp(GONE_TTL.0, GONE_TTL.1)
    }

    fn forgotten(&self) -> bool {
        // Under the lock: whoever found the entry has marked it as used before.
        let mut names = lock(&self.names);
        let forgotten = !self.entry.used.load(Ordering::Relaxed);
        if forgotten {
            names.remove(&self.name);
        }
        forgotten
    }
}

#[cfg(test)]
mod tests;
