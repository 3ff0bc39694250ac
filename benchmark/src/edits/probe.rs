//! Asks for one path again and again until the gateway treats it as expected.

use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use http::StatusCode;
use tokio::sync::oneshot;

use crate::client::{Answer, Connection, Server};

/// What a path is expected to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expect {
    /// An upstream answers.
    Served,
    /// The gateway says itself that there is no such route.
    NotServed,
}

/// A thread that polls. It sleeps as a thread does, because a runtime's timer is no finer than a
/// millisecond.
#[derive(Debug)]
pub(super) struct Prober {
    orders: Option<mpsc::Sender<Order>>,
    thread: Option<JoinHandle<()>>,
}

/// A poll under way.
#[derive(Debug)]
pub(super) struct Watch(oneshot::Receiver<anyhow::Result<Instant>>);

struct Order {
    path: String,
    expect: Expect,
    seen: oneshot::Sender<anyhow::Result<Instant>>,
}

// === impl Prober ===

impl Prober {
    /// Starts the thread. It sleeps for `pause` after an answer and gives a path up after `limit`.
    pub(super) fn start(gateway: Server, pause: Duration, limit: Duration) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (orders, inbox) = mpsc::channel::<Order>();
        let thread = std::thread::Builder::new().name("prober".into()).spawn(move || {
            let mut connection = Connection::new(gateway);
            while let Ok(order) = inbox.recv() {
                let seen = runtime.block_on(poll(&mut connection, &order, pause, limit));
                // Whoever asked may have given up.
                let _ = order.seen.send(seen);
            }
        })?;
        Ok(Self { orders: Some(orders), thread: Some(thread) })
    }

    /// Starts to poll; the watch resolves when the expected answer has been read.
    pub(super) fn watch(&self, path: &str, expect: Expect) -> anyhow::Result<Watch> {
        let (seen, watch) = oneshot::channel();
        let orders = self.orders.as_ref().context("the prober has ended")?;
        let order = Order { path: path.to_owned(), expect, seen };
        orders.send(order).map_err(|_| anyhow!("the prober has ended"))?;
        Ok(Watch(watch))
    }

    /// Polls until a path does what is expected.
    pub(super) async fn expect(&self, path: &str, expect: Expect) -> anyhow::Result<Instant> {
        self.watch(path, expect)?.seen().await
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Some(thread) = self.thread.take() {
            // A panic was reported by the thread; there is nothing to add.
            let _ = thread.join();
        }
    }
}

// === impl Watch ===

impl Watch {
    /// When the expected answer had been read.
    pub(super) async fn seen(self) -> anyhow::Result<Instant> {
        self.0.await.context("the prober has ended")?
    }
}

async fn poll(
    connection: &mut Connection,
    order: &Order,
    pause: Duration,
    limit: Duration,
) -> anyhow::Result<Instant> {
    let started = Instant::now();
    loop {
        let outcome = connection.get(&order.path).await;
        let now = Instant::now();
        let last = match outcome {
            Ok(answer) if order.expect.holds(&answer, &order.path) => return Ok(now),
            Ok(answer) => format!("status {}: {}", answer.status, answer.excerpt()),
            Err(error) => format!("{error:#}"),
        };
        if now.duration_since(started) > limit {
            let (path, expect) = (&order.path, order.expect);
            return Err(anyhow!("{path} not {expect:?} within {limit:?}; at last {last}"));
        }
        // Nothing else runs on this thread that could be held up.
        std::thread::sleep(pause);
    }
}

// === impl Expect ===

impl Expect {
    /// Whether an answer is what is expected; one of another kind (503, a wrong target) is neither.
    fn holds(self, answer: &Answer, path: &str) -> bool {
        let by_upstream = answer.header("x-upstream").is_some();
        match self {
            Self::Served => answer.status == StatusCode::OK && by_upstream && echoes(answer, path),
            Self::NotServed => !by_upstream && answered_without_route(answer),
        }
    }
}

/// Whether the mock upstream says that it was asked for this path.
pub(super) fn echoes(answer: &Answer, path: &str) -> bool {
    answer.json().is_ok_and(|json| json["target"] == path)
}

/// No selector (-107) or no rule (-102) takes the request, whatever status that has.
fn answered_without_route(answer: &Answer) -> bool {
    answer.json().is_ok_and(|json| json["code"] == -107 || json["code"] == -102)
}
