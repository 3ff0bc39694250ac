//! Requests at a steady pace over all routes; each answer is judged.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

use super::routes::{Routes, UPSTREAMS, name};
use super::timeline::{Answered, Verdict};
use crate::client::{Answer, Connection, Server};
use crate::stats::{Histogram, Summary};

/// What is told in words of each kind of trouble.
const MAX_EXAMPLES: usize = 10;

/// Of so many requests one goes over a connection of its own.
const OWN_CONNECTION: u64 = 10;

/// What the clients saw.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TrafficResult {
    /// Requests sent.
    pub requests: u64,
    /// Right answers of upstreams.
    pub served: u64,
    /// Right answers of the gateway that there is no route.
    pub without_route: u64,
    /// Requests without an answer, or with an answer that no state of the configuration gives.
    pub failed: u64,
    /// Answers of an upstream, or of none, that was never valid at that moment, or another request's.
    pub wrong: u64,
    /// Answers by what was over, on every gateway, before the request was sent.
    pub stale: u64,
    /// From sending a request to its whole answer.
    pub latency: Summary,
    /// Trouble in words, by kind.
    pub examples: BTreeMap<&'static str, Vec<String>>,
}

#[derive(Debug, Default)]
struct Seen {
    result: TrafficResult,
    latency: Histogram,
}

/// Clients at work.
#[derive(Debug)]
pub(super) struct Traffic {
    lanes: JoinSet<()>,
    stop: CancellationToken,
    seen: Arc<Mutex<Seen>>,
}

impl Traffic {
    /// Starts clients that send `rate` requests per second together.
    pub(super) fn start(gateway: &Server, routes: &Arc<Routes>, rate: u32, clients: u32) -> Self {
        let (stop, seen) = (CancellationToken::new(), Arc::new(Mutex::new(Seen::default())));
        let pause = Duration::from_secs(1) * clients / rate;
        let begun = Instant::now();
        let mut lanes = JoinSet::new();
        for number in 0..clients {
            let lane = Lane {
                number: u64::from(number),
                gateway: gateway.clone(),
                routes: Arc::clone(routes),
                seen: Arc::clone(&seen),
            };
            lanes.spawn(lane.run(begun + pause * number / clients, pause, stop.clone()));
        }
        Self { lanes, stop, seen }
    }

    /// Waits for the last answers and sums up.
    pub(super) async fn end(mut self) -> TrafficResult {
        self.stop.cancel();
        while self.lanes.join_next().await.is_some() {}
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let latency = seen.latency.summary();
        TrafficResult { latency, ..std::mem::take(&mut seen.result) }
    }
}

struct Lane {
    number: u64,
    gateway: Server,
    routes: Arc<Routes>,
    seen: Arc<Mutex<Seen>>,
}

impl Lane {
    async fn run(self, first: Instant, pause: Duration, stop: CancellationToken) {
        let mut kept = Connection::new(self.gateway.clone());
        let mut ticks = interval_at(first, pause);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        for count in self.number * 7.. {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
            }
            if count.is_multiple_of(OWN_CONNECTION) {
                let mut own = Connection::new(self.gateway.clone());
                self.one(&mut own, count).await;
            } else {
                self.one(&mut kept, count).await;
            }
        }
    }

    async fn one(&self, connection: &mut Connection, count: u64) {
        let routes = &self.routes.all;
        let at = usize::try_from(count).unwrap_or_default();
        let route = &routes[at % routes.len()];
        // Mostly the path that the route should have; now and then the other one.
        let last = route.timeline().last().path;
        let path = if (at / routes.len()).is_multiple_of(4) { 1 - last } else { last };
        let target = format!("{}/{}/{count}?of={}", route.path(path), self.number, self.number);
        let (method, body) = if count.is_multiple_of(4) {
            (Method::POST, Bytes::from(format!("{}/{count}", self.number).repeat(20)))
        } else {
            (Method::GET, Bytes::new())
        };
        let sent = std::time::Instant::now();
        let outcome =
            connection.send(method.clone(), &target, HeaderMap::new(), body.clone()).await;
        let received = std::time::Instant::now();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.result.requests += 1;
        seen.latency.record(received - sent);
        let answer = match outcome {
            Ok(answer) => answer,
            Err(error) => return seen.result.failure(format!("{error:#}")),
        };
        let Some(answered) = answered(&answer) else {
            let text = format!("{method} {target}: {}: {}", answer.status, answer.excerpt());
            return seen.result.failure(text);
        };
        if answered != Answered::Gateway && !echoes(&answer, &method, &target, &body) {
            let text = format!("{method} {target}: another's answer: {}", answer.excerpt());
            return seen.result.note(Verdict::Wrong, text);
        }
        let timeline = route.timeline();
        match timeline.judge(path, answered, sent, received) {
            Verdict::Right if answered == Answered::Gateway => seen.result.without_route += 1,
            Verdict::Right => seen.result.served += 1,
            bad => {
                let text = format!("{method} {target}: {answered:?}; last {:?}", timeline.last());
                seen.result.note(bad, text);
            }
        }
    }
}

impl TrafficResult {
    fn failure(&mut self, text: String) {
        self.failed += 1;
        self.example("failed", text);
    }

    fn note(&mut self, verdict: Verdict, text: String) {
        match verdict {
            Verdict::Right => {}
            Verdict::Stale => {
                self.stale += 1;
                self.example("stale", text);
            }
            Verdict::Wrong => {
                self.wrong += 1;
                self.example("wrong", text);
            }
        }
    }

    fn example(&mut self, kind: &'static str, text: String) {
        let examples = self.examples.entry(kind).or_default();
        if examples.len() < MAX_EXAMPLES {
            examples.push(text);
        }
    }
}

/// Who answered; `None` for what neither an upstream nor a gateway without route says.
fn answered(answer: &Answer) -> Option<Answered> {
    match answer.header("x-upstream") {
        Some(said) if answer.status == StatusCode::OK => {
            (0..UPSTREAMS).find(|number| name(*number) == said).map(Answered::Upstream)
        }
        Some(_) => None,
        None => {
            let json = answer.json().ok()?;
            (json["code"] == -107 || json["code"] == -102).then_some(Answered::Gateway)
        }
    }
}

/// Whether the upstream describes this very request.
fn echoes(answer: &Answer, method: &Method, target: &str, body: &Bytes) -> bool {
    let hash: String = Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect();
    answer.json().is_ok_and(|json| {
        json["method"] == method.as_str() && json["target"] == target && json["bodySha256"] == *hash
    })
}
