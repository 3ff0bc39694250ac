//! The checker: probes upstreams, off the request path.
//!
//! With `enabled` every upstream is probed in rounds. Without, only those are that requests ejected
//! because nobody could connect: so it is a probe that finds out that they are back, not a client.
//!
//! Source: ShenYu 2.7.1, upstream check: a TCP connection is opened and closed; the first round after
//! three seconds; the pause counts from the end of a round.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use tokio::time::{Instant, sleep_until};
use tracing::info;

use super::clock::now_ms;
use super::health::ProbeRule;
use super::{Endpoint, EndpointRegistry};

/// How upstreams are probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckOptions {
    /// Whether all upstreams are probed, in rounds.
    pub enabled: bool,
    /// Before the first round.
    pub delay: Duration,
    /// Between the end of a round and the next one.
    pub interval: Duration,
    /// Intervals without a failure after which an upstream is taken in again.
    pub healthy: u32,
    /// Intervals without a success after which an upstream is taken out.
    pub unhealthy: u32,
    /// Probes at the same time.
    pub parallel: usize,
    /// How often ejected upstreams are probed; `None`: never.
    pub ejected: Option<Duration>,
    /// How often the states are logged; `None`: never.
    pub print: Option<Duration>,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self {
            enabled: false,
            delay: Duration::from_secs(3),
            interval: Duration::from_secs(5),
            healthy: 1,
            unhealthy: 1,
            parallel: 10,
            ejected: Some(Duration::from_secs(1)),
            print: None,
        }
    }
}

/// The future of a probe: whether the upstream could be connected to.
pub type ProbeFuture<'a> = Pin<Box<dyn Future<Output = bool> + Send + 'a>>;

/// A way to find out whether an upstream is there. Bounded in time by itself.
pub trait Probe: Debug + Send + Sync {
    /// Probes once.
    fn probe<'a>(&'a self, endpoint: &'a Endpoint) -> ProbeFuture<'a>;
}

/// Probes the upstreams of one gateway. Runs on the control runtime; the states it writes are
/// atomics that requests read.
#[derive(Debug)]
pub struct Checker<P> {
    registry: EndpointRegistry,
    options: CheckOptions,
    probe: P,
}

impl<P: Probe> Checker<P> {
    /// A checker of everything in the registry.
    #[must_use]
    pub const fn new(registry: EndpointRegistry, options: CheckOptions, probe: P) -> Self {
        Self { registry, options, probe }
    }

    /// Probes for ever. Dropping the future ends the probes under way.
    pub async fn run(self) {
        let start = Instant::now();
        let options = self.options;
        let mut round = options.enabled.then(|| start + options.delay);
        let mut ejected = options.ejected.map(|pause| start + pause);
        let mut print = options.print.map(|pause| start + pause);
        loop {
            tokio::select! {
                () = due(round) => {
                    self.round(now_ms).await;
                    round = Some(Instant::now() + options.interval);
                }
                () = due(ejected) => {
                    self.ejected(now_ms).await;
                    ejected = options.ejected.map(|pause| Instant::now() + pause);
                }
                () = due(print) => {
                    self.print();
                    print = options.print.map(|pause| Instant::now() + pause);
                }
                else => return,
            }
        }
    }

    /// Probes every upstream once. `clock` says when each probe ended.
    pub async fn round(&self, clock: impl Fn() -> u64 + Copy + Send) {
        let CheckOptions { interval, healthy, unhealthy, .. } = self.options;
        let rule = ProbeRule { interval, healthy, unhealthy };
        let endpoints = self.registry.list();
        self.each(endpoints, |endpoint| async move {
            if !endpoint.is_checked() {
                endpoint.unwatched();
                return;
            }
            let connected = self.probe.probe(&endpoint).await;
            endpoint.probed(connected, clock(), &rule);
        })
        .await;
    }

    /// Probes those that requests ejected because nobody could connect.
    pub async fn ejected(&self, clock: impl Fn() -> u64 + Copy + Send) {
        let mut endpoints = self.registry.list();
        endpoints.retain(|(_, endpoint)| endpoint.awaits_probe());
        self.each(endpoints, |endpoint| async move {
            let connected = self.probe.probe(&endpoint).await;
            endpoint.probed_ejected(connected, clock());
        })
        .await;
    }

    async fn each<F: Future<Output = ()>>(
        &self,
        endpoints: Vec<(Box<str>, Arc<Endpoint>)>,
        probe: impl Fn(Arc<Endpoint>) -> F,
    ) {
        let parallel = self.options.parallel.max(1);
        stream::iter(endpoints)
            .for_each_concurrent(parallel, |(_, endpoint)| probe(endpoint))
            .await;
    }

    fn print(&self) {
        let now = now_ms();
        let (healthy, unhealthy): (Vec<_>, Vec<_>) =
            self.registry.list().into_iter().partition(|(_, e)| e.state(now).healthy());
        let names = |list: &[(Box<str>, Arc<Endpoint>)]| {
            let names: Vec<String> = list.iter().map(|(id, e)| format!("{id} {e}")).collect();
            names.join(", ")
        };
        info!("upstreams in: [{}], out: [{}]", names(&healthy), names(&unhealthy));
    }
}

async fn due(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
