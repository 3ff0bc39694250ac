//! Rounds of probes, with a scripted probe and the clock of the test.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{CheckOptions, Checker, Probe, ProbeFuture};
use crate::model::Upstream;
use crate::upstream::{
    ClientFactory, ClientOptions, Endpoint, EndpointRegistry, Failure, LoadBalance, UpstreamSet,
    now_ms,
};

/// Answers as told, and counts how many probes there were, and at the same time.
#[derive(Debug, Default)]
struct Script {
    down: Mutex<HashSet<String>>,
    probes: AtomicUsize,
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Script {
    fn set_down(&self, urls: &[&str]) {
        *self.down.lock().unwrap() = urls.iter().map(|url| (*url).to_owned()).collect();
    }
}

impl Probe for Arc<Script> {
    fn probe<'a>(&'a self, endpoint: &'a Endpoint) -> ProbeFuture<'a> {
        Box::pin(async move {
            let under_way = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(under_way, Ordering::SeqCst);
            self.probes.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            self.now.fetch_sub(1, Ordering::SeqCst);
            !self.down.lock().unwrap().contains(&*endpoint.url)
        })
    }
}

static CLOCK: AtomicU64 = AtomicU64::new(1_000_000);

/// Each look is a whole interval later.
fn clock() -> u64 {
    CLOCK.fetch_add(5000, Ordering::SeqCst)
}

struct Bench {
    registry: EndpointRegistry,
    set: Arc<UpstreamSet>,
    script: Arc<Script>,
    checker: Checker<Arc<Script>>,
}

fn bench(props: &[&str], options: CheckOptions) -> Bench {
    let registry = EndpointRegistry::default();
    let list: Vec<Upstream> = (1..)
        .zip(props)
        .map(|(n, props)| Upstream {
            url: format!("h:{n}"),
            weight: 1,
            props: Some((*props).to_owned()),
            ..Upstream::default()
        })
        .collect();
    let (set, _) = UpstreamSet::build("s", &list, false, Arc::default(), &registry);
    let script = Arc::new(Script::default());
    let checker = Checker::new(registry.clone(), options, Arc::clone(&script));
    Bench { registry, set, script, checker }
}

impl Bench {
    fn usable(&self) -> Vec<String> {
        let mut urls: Vec<String> = (0..200_u8)
            .filter_map(|n| self.set.choose(LoadBalance::RoundRobin, [10, 0, 0, n].into()))
            .map(|endpoint| endpoint.url.to_string())
            .collect();
        urls.sort();
        urls.dedup();
        urls
    }
}

const PLAIN: &str = r#"{"warmup":0}"#;

#[tokio::test]
async fn upstreams_go_and_come_back_also_after_a_total_outage() {
    let bench = bench(&[PLAIN; 3], CheckOptions::default());
    for (down, usable) in [
        (&[][..], &["h:1", "h:2", "h:3"][..]),
        (&["h:1"], &["h:2", "h:3"]),
        (&["h:1", "h:2", "h:3"], &[]),
        (&["h:3"], &["h:1", "h:2"]),
        (&[], &["h:1", "h:2", "h:3"]),
    ] {
        bench.script.set_down(down);
        bench.checker.round(clock).await;
        assert_eq!(bench.usable(), usable, "with {down:?} down");
    }
    assert_eq!(bench.registry.len(), 3);
}

#[tokio::test]
async fn those_that_want_no_check_are_not_probed_and_never_out() {
    let unchecked = r#"{"warmup":0,"healthCheckEnabled":"false"}"#;
    let bench = bench(&[PLAIN, unchecked], CheckOptions::default());
    bench.script.set_down(&["h:1", "h:2"]);
    bench.checker.round(clock).await;
    assert_eq!(bench.usable(), ["h:2"]);
    assert_eq!(bench.script.probes.load(Ordering::SeqCst), 1);
    // Told so later on, it is taken in again.
    let now_unchecked = Upstream {
        url: "h:1".into(),
        weight: 1,
        props: Some(unchecked.into()),
        ..Upstream::default()
    };
    bench.registry.endpoint("s", &now_unchecked, &Arc::default()).unwrap();
    bench.checker.round(clock).await;
    assert_eq!(bench.usable(), ["h:1", "h:2"]);
}

#[tokio::test]
async fn only_those_that_could_not_be_connected_are_probed_beside_the_rounds() {
    let bench = bench(&[PLAIN; 3], CheckOptions::default());
    let endpoint = |url| bench.set.named(url).unwrap();
    for _ in 0..5 {
        endpoint("h:1").failed(Failure::Connect, now_ms());
        endpoint("h:2").failed(Failure::Timeout, now_ms());
    }
    assert_eq!(bench.usable(), ["h:3"]);
    bench.script.set_down(&["h:1"]);
    bench.checker.ejected(now_ms).await;
    assert_eq!(
        (bench.usable(), bench.script.probes.load(Ordering::SeqCst)),
        (vec!["h:3".into()], 1)
    );
    bench.script.set_down(&[]);
    bench.checker.ejected(now_ms).await;
    assert_eq!(bench.usable(), ["h:1", "h:3"]);
}

#[tokio::test]
async fn so_many_at_a_time_and_no_more() {
    let options = CheckOptions { parallel: 4, ..CheckOptions::default() };
    let bench = bench(&[PLAIN; 30], options);
    bench.checker.round(clock).await;
    assert_eq!(bench.script.probes.load(Ordering::SeqCst), 30);
    assert_eq!(bench.script.most.load(Ordering::SeqCst), 4);
}

#[tokio::test(start_paused = true)]
async fn the_first_round_is_late_and_the_pause_counts_from_the_end() {
    let options = CheckOptions { enabled: true, ejected: None, ..CheckOptions::default() };
    let Bench { script, checker, set, .. } = bench(&[PLAIN; 2], options);
    let running = tokio::spawn(checker.run());
    let probes = |seconds| {
        let script = Arc::clone(&script);
        async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            script.probes.load(Ordering::SeqCst)
        }
    };
    assert_eq!(probes(2).await, 0);
    assert_eq!(probes(2).await, 2);
    assert_eq!(probes(3).await, 2);
    assert_eq!(probes(2).await, 4);
    running.abort();
    assert!(!set.is_empty());
}

#[tokio::test]
async fn a_tcp_probe_tells_an_open_port_from_a_closed_one() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let control = tokio::runtime::Handle::current();
    let clients = ClientFactory::new(ClientOptions::default(), &control).unwrap();
    let probe = clients.probe(Duration::from_secs(5));
    let url = listener.local_addr().unwrap().to_string();
    let upstream = Upstream { url, weight: 1, ..Upstream::default() };
    let registry = EndpointRegistry::default();
    let endpoint = registry.endpoint("s", &upstream, &Arc::default()).unwrap();
    assert!(probe.probe(&endpoint).await);
    drop(listener);
    assert!(!probe.probe(&endpoint).await);
}
