//! When a gateway leaves an admin: the master rule, by a short tick, and once by the real one.

use std::time::{Duration, Instant};

use longmen_bootstrap::RunningGateway;

use crate::fake_admin::{FakeAdmin, Manners, Seen};
use crate::support::{gateway, recording, stop};

const STANDALONE: &str = r#"{"eventType":"RUNNING_MODE","runningMode":"STANDALONE","isMaster":true,"masterUrl":"/websocket"}"#;
const NOT_MASTER: &str = r#"{"eventType":"RUNNING_MODE","runningMode":"CLUSTER","isMaster":false,"masterUrl":"ws://10.0.0.2:9095/websocket"}"#;

/// What a recording says of a stock gateway, whose tick is a minute.
struct Recorded {
    /// The code that connections are closed with.
    code: u64,
    /// Ticks from a close to the next dial.
    pause: u64,
    /// Whether a connection was still open when the recording ended.
    kept: bool,
}

fn recorded(name: &str) -> Recorded {
    let lines = recording(&format!("websocket/master-check-{name}.jsonl"));
    let events = lines.iter().filter(|line| line["event"].is_string());
    let (mut code, mut pause, mut closed_at, mut open) = (0, 0, None, 0_i32);
    for event in events {
        let ms = event["ms"].as_u64().expect("a time");
        if event["event"] != "closed" {
            open += 1;
            if let Some(closed) = closed_at.take() {
                pause = (ms - closed + 30_000) / 60_000;
            }
        } else if event["code"] != 1001 {
            // 1001 is the recorder's own end.
            open -= 1;
            code = event["code"].as_u64().unwrap_or(code);
            closed_at = Some(ms);
        }
    }
    Recorded { code, pause, kept: open > 0 }
}

async fn start(manners: Manners, tick: Duration) -> (FakeAdmin, RunningGateway) {
    let admin = FakeAdmin::start(manners).await;
    let yaml = format!(
        "  sync:\n    websocket:\n      urls: {}\n      masterCheckInterval: {}\n      \
         reconnectInterval: 100\n      pingInterval: 10000\n",
        admin.url(),
        tick.as_millis()
    );
    let gateway = gateway(&yaml).await;
    (admin, gateway)
}

/// Opens and closes as (connection, what, ticks since the first opening).
async fn life(admin: &mut FakeAdmin, tick: Duration, events: usize) -> Vec<String> {
    let mut seen = Vec::new();
    let mut begun = None;
    while seen.len() < events {
        let event = tokio::time::timeout(tick * 4, admin.events.recv()).await;
        let event = event.expect("nothing happens any more").unwrap();
        let begun = *begun.get_or_insert(event.at);
        let ticks = event.at.duration_since(begun).as_secs_f64() / tick.as_secs_f64();
        let what = match event.seen {
            Seen::Open(_) => "open".to_owned(),
            Seen::Closed(code) => format!("closed {}", code.unwrap_or_default()),
            Seen::Text(_) | Seen::Pong => continue,
        };
        seen.push(format!("{} {what} at tick {}", event.connection, ticks.round()));
    }
    seen
}

const TICK: Duration = Duration::from_millis(1500);

/// Two connections' lives. The code and the pause are the recording's; the reference judges a
/// connection that it has just dialled in the same tick, ours has until the next.
fn leaves(recorded: &Recorded) -> [String; 4] {
    let Recorded { code, pause, .. } = recorded;
    let again = 1 + pause;
    [
        "1 open at tick 0".to_owned(),
        format!("1 closed {code} at tick 1"),
        format!("2 open at tick {again}"),
        format!("2 closed {code} at tick {}", again + 1),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_that_is_not_the_master_is_left_and_tried_again() {
    let manners = Manners { running_mode: vec![NOT_MASTER.into()], ..Manners::default() };
    let (mut admin, gateway) = start(manners, TICK).await;
    let recorded = recorded("slave");
    assert_eq!(life(&mut admin, TICK, 4).await, leaves(&recorded));
    assert!(!recorded.kept);
    assert!(!gateway.store.load_full().ready, "what is not the master's never counts");
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_that_never_answers_is_left_and_tried_again() {
    let (mut admin, gateway) = start(Manners::default(), TICK).await;
    assert_eq!(life(&mut admin, TICK, 4).await, leaves(&recorded("silent")));
    assert!(!gateway.store.load_full().ready);
    stop(gateway).await;
}

/// The admin is kept: its words come in order, and then nothing happens over several ticks.
async fn is_kept(manners: Manners) {
    let (mut admin, gateway) = start(manners, Duration::from_millis(300)).await;
    assert!(matches!(admin.next().await.seen, Seen::Open(_)));
    for word in ["RUNNING_MODE", "MYSELF", "RUNNING_MODE"] {
        assert_eq!(admin.next_word().await, word);
    }
    admin.quiet_for(Duration::from_millis(1500)).await;
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_that_stands_alone_is_kept_for_good() {
    is_kept(Manners { running_mode: vec![STANDALONE.into()], ..Manners::default() }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mode_that_nobody_asked_for_counts_and_may_come_with_the_handshake() {
    assert!(recorded("unasked").kept && recorded("flush").kept);
    is_kept(Manners { greeting: Some(STANDALONE.into()), ..Manners::default() }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_only_node_of_a_cluster_is_asked_as_recorded_and_kept() {
    let lines = recording("websocket/cluster.jsonl");
    let text = |line: &serde_json::Value| line["text"].as_str().unwrap().to_owned();
    let (asked, told): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line["dir"] == ">");
    let asked: Vec<_> = asked.into_iter().map(text).collect();
    assert_eq!(asked, ["RUNNING_MODE", "MYSELF"], "what `is_kept` expects of ours");
    let mode = told.into_iter().map(text).find(|text| text.contains("RUNNING_MODE"));
    let mode = mode.expect("an answer that names the mode");
    assert!(mode.contains(r#""isMaster":true"#) && mode.contains("CLUSTER"), "{mode}");
    is_kept(Manners { running_mode: vec![mode], ..Manners::default() }).await;
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
