//! When a gateway leaves an admin: the master rule, by a short tick, and once by the real one.

use std::time::{Duration, Instant};

use longmen_bootstrap::RunningGateway;

use crate::fake_admin::{FakeAdmin, Manners, Seen};
use crate::support::{gateway, stop};

const STANDALONE: &str = r#"{"eventType":"RUNNING_MODE","runningMode":"STANDALONE","isMaster":true,"masterUrl":"/websocket"}"#;
const NOT_MASTER: &str = r#"{"eventType":"RUNNING_MODE","runningMode":"CLUSTER","isMaster":false,"masterUrl":"ws://10.0.0.2:9095/websocket"}"#;

async fn start(manners: Manners, tick: Duration) -> (FakeAdmin, RunningGateway, Instant) {
    let admin = FakeAdmin::start(manners).await;
    let begun = Instant::now();
    let yaml = format!(
        "  sync:\n    websocket:\n      urls: {}\n      masterCheckInterval: {}\n      \
         reconnectInterval: 100\n      pingInterval: 10000\n",
        admin.url(),
        tick.as_millis()
    );
    let gateway = gateway(&yaml).await;
    (admin, gateway, begun)
}

/// Opens and closes as (connection, what, ticks since the start).
async fn life(admin: &mut FakeAdmin, begun: Instant, tick: Duration, events: usize) -> Vec<String> {
    let mut seen = Vec::new();
    while seen.len() < events {
        let event = tokio::time::timeout(tick * 4, admin.events.recv()).await;
        let event = event.expect("nothing happens any more").unwrap();
        let ticks = event.at.duration_since(begun).as_secs_f64() / tick.as_secs_f64();
        let what = match event.seen {
            Seen::Open(_) => "open".to_owned(),
            Seen::Closed(code) => format!("closed {code:?}"),
            Seen::Text(_) | Seen::Pong => continue,
        };
        seen.push(format!("{} {what} at tick {}", event.connection, ticks.floor()));
    }
    seen
}

const TICK: Duration = Duration::from_millis(1500);

/// Recorded: closed with 1000 at the tick, dialled again at the next, and closed there at once; here
/// the fresh connection has until the tick after.
const LEAVES: [&str; 4] = [
    "1 open at tick 0",
    "1 closed Some(1000) at tick 1",
    "2 open at tick 2",
    "2 closed Some(1000) at tick 3",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_that_is_not_the_master_is_left_and_tried_again() {
    let manners = Manners { running_mode: vec![NOT_MASTER.into()], ..Manners::default() };
    let (mut admin, gateway, begun) = start(manners, TICK).await;
    assert_eq!(life(&mut admin, begun, TICK, 4).await, LEAVES);
    assert!(!gateway.store.load_full().ready, "what is not the master's never counts");
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_that_never_answers_is_left_and_tried_again() {
    let (mut admin, gateway, begun) = start(Manners::default(), TICK).await;
    assert_eq!(life(&mut admin, begun, TICK, 4).await, LEAVES);
    assert!(!gateway.store.load_full().ready);
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_that_stands_alone_is_kept_for_good() {
    let manners = Manners { running_mode: vec![STANDALONE.into()], ..Manners::default() };
    let (mut admin, gateway, _) = start(manners, Duration::from_millis(300)).await;
    assert!(matches!(admin.next().await.seen, Seen::Open(_)));
    for word in ["RUNNING_MODE", "MYSELF", "RUNNING_MODE"] {
        assert_eq!(admin.next_word().await, word);
    }
    admin.quiet_for(Duration::from_millis(1500)).await;
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mode_that_nobody_asked_for_counts_and_may_come_with_the_handshake() {
    let manners = Manners { greeting: Some(STANDALONE.into()), ..Manners::default() };
    let (mut admin, gateway, _) = start(manners, Duration::from_millis(300)).await;
    assert!(matches!(admin.next().await.seen, Seen::Open(_)));
    for word in ["RUNNING_MODE", "MYSELF", "RUNNING_MODE"] {
        assert_eq!(admin.next_word().await, word);
    }
    admin.quiet_for(Duration::from_millis(1500)).await;
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tick_is_a_minute_unless_configured() {
    let manners = Manners { running_mode: vec![NOT_MASTER.into()], ..Manners::default() };
    let mut admin = FakeAdmin::start(manners).await;
    let yaml = format!("  sync:\n    websocket:\n      urls: {}\n", admin.url());
    let begun = Instant::now();
    let gateway = gateway(&yaml).await;
    let closed = loop {
        let event = tokio::time::timeout(Duration::from_secs(70), admin.events.recv()).await;
        let event = event.expect("not closed within 70 s").unwrap();
        if let Seen::Closed(code) = event.seen {
            assert_eq!((event.connection, code), (1, Some(1000)));
            break event.at.duration_since(begun);
        }
    };
    assert!((59.0..63.0).contains(&closed.as_secs_f64()), "closed after {closed:?}");
    stop(gateway).await;
}
