//! Gateways that poll, as they are listed: connected while they ask, and for a while after.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::super::Shared;
use super::super::gateways::{GatewayView, address};
use super::request::Caller;
use super::states::Position;

/// After which silence a gateway counts as gone. It pauses five seconds after a failure.
const SILENCE: Duration = Duration::from_secs(30);

/// Most gateways that are listed; each that goes is looked for among all.
const MAX_LISTED: usize = 1_000;

/// Which gateway it is: its namespace, its address, and its name for itself with the number of its
/// session, if it has one.
type Key = (String, String, Option<(String, i64)>);

/// The gateways that poll.
#[derive(Debug, Default)]
pub(in crate::publish) struct Pollers(Mutex<HashMap<Key, Poller>>);

#[derive(Debug)]
struct Poller {
    /// Number of its connection in the list of gateways.
    id: u64,
    /// How many of its questions are under way.
    asking: usize,
    seen: Instant,
}

impl Pollers {
    /// Lists as gone who has been silent.
    pub(in crate::publish) fn sweep(&self, shared: &Shared) {
        let mut gone = Vec::new();
        self.lock().retain(|_, poller| {
            let stays = poller.asking > 0 || poller.seen.elapsed() < SILENCE;
            if !stays {
                gone.push(poller.id);
            }
            stays
        });
        let now_ms = shared.store.now_ms();
        gone.into_iter().for_each(|id| shared.gateways.closed(id, now_ms));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Poller>> {
        // Every change of an entry is complete.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A gateway that has a question under way.
pub(super) struct Listed {
    shared: Arc<Shared>,
    key: Key,
    id: Option<u64>,
}

/// Lists who asks.
pub(super) fn arrive(shared: &Arc<Shared>, namespace: &str, caller: Caller) -> Listed {
    let now_ms = shared.store.now_ms();
    let address = address(&caller.host, Some(caller.port));
    let key = (namespace.to_owned(), address, caller.instance.clone());
    let mut pollers = shared.polling.pollers.lock();
    let room = pollers.len() < MAX_LISTED;
    let (id, is_new) = match pollers.get_mut(&key) {
        Some(known) => {
            known.asking += 1;
            (Some(known.id), false)
        }
        None if room => {
            let id = shared.hub.number();
            pollers.insert(key.clone(), Poller { id, asking: 1, seen: Instant::now() });
            (Some(id), true)
        }
        None => (None, false),
    };
    drop(pollers);
    if let Some(id) = id {
        if is_new {
            shared.gateways.opened(view(shared, id, namespace, &caller, now_ms));
        }
        if let Some(info) = caller.info {
            shared.gateways.reported(id, info, now_ms);
        }
    }
    Listed { shared: Arc::clone(shared), key, id }
}

impl Listed {
    /// The gateway has what there is at this version: its digests say so.
    pub(super) fn has(&self, shared: &Shared, at: &Position) {
        if let Some(id) = self.id {
            let now_ms = shared.store.now_ms();
            shared.gateways.acknowledged(id, at.epoch.to_string(), at.version, Vec::new(), now_ms);
        }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        if self.id.is_none() {
            return;
        }
        if let Some(poller) = self.shared.polling.pollers.lock().get_mut(&self.key) {
            poller.asking = poller.asking.saturating_sub(1);
            poller.seen = Instant::now();
        }
    }
}

fn view(shared: &Shared, id: u64, namespace: &str, caller: &Caller, now_ms: i64) -> GatewayView {
    let (name, session) = match &caller.instance {
        Some((name, session)) => (name.clone(), *session),
        None => (format!("{}-{id}", shared.store.process_id()), 0),
    };
    GatewayView {
        id,
        name,
        session,
        namespace: namespace.to_owned(),
        host: caller.host.clone(),
        port: Some(caller.port),
        kind: if caller.ours { "longmen" } else { "stock" },
        transport: "http",
        connected: true,
        serving: true,
        since: now_ms,
        info: None,
        heard_at: now_ms,
        epoch: None,
        version: None,
        in_force_since: None,
        faults: Vec::new(),
    }
}
