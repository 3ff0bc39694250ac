//! Restarts by takeover: the sockets are passed on.

use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use longmen_benchmark::raw::RawClient;
use longmen_benchmark::steady::{Refused, Steady};
use rustix::process::Signal;
use tokio::net::TcpStream;

use super::Scene;
use super::process::{Process, until_routed};
use crate::support::{LIMIT, client};

const TAKEOVER: &str = "--takeover";

/// An admin that is not there.
const NOWHERE: &str = "--shenyu.sync.websocket.urls=ws://127.0.0.1:1/websocket";

async fn is_alive(address: SocketAddr) -> bool {
    let url = format!("http://{address}/actuator/health/liveness");
    client().get(url).send().await.is_ok_and(|answer| answer.status() == 200)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_restarts_under_load_lose_nothing() {
    let scene = Scene::new().await;
    let (mut process, address) = scene.serving(&[]).await;
    let load = Steady::start(address, 3, Refused::Fails);
    for _ in 0..10 {
        assert!(load.more(50).await);
        let next = Process::start(&scene.arguments_with(address.port(), &[TAKEOVER]));
        next.says("took over").await;
        assert_eq!(process.ended().await.code(), Some(0), "{}", process.log());
        assert!(process.log().contains("everything came to its end"), "{}", process.log());
        process = next;
    }
    assert!(load.more(50).await);
    let seen = load.end(true).await;
    assert!(seen.failures.is_empty(), "{seen:#?}");
    assert!(seen.answers > 500);
    process.signal(Signal::TERM);
    assert_eq!(process.ended().await.code(), Some(0), "{}", process.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_successor_that_does_not_get_ready_changes_nothing() {
    let scene = Scene::new().await;
    let (mut process, address) = scene.serving(&[]).await;
    let mut next = Process::start(&scene.arguments_with(address.port(), &[TAKEOVER, NOWHERE]));
    process.says("a successor gets ready").await;
    until_routed(address).await;
    next.signal(Signal::TERM);
    next.ended().await;
    process.says("a successor gave up").await;
    // The sockets are its own again: a stop still empties the queue.
    until_routed(address).await;
    process.signal(Signal::TERM);
    assert_eq!(process.ended().await.code(), Some(0), "{}", process.log());
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_anybody_to_follow_it_starts_as_ever() {
    let scene = Scene::new().await;
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let process = Process::start(&scene.arguments_with(port, &[TAKEOVER]));
    process.says("nobody to take over from").await;
    until_routed(process.address().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_is_taken_without_anybody_to_speak_for_it_is_waited_for() {
    let scene = Scene::new().await;
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap();
    let waiting = Process::start(&scene.arguments_with(address.port(), &[TAKEOVER]));
    waiting.says("nobody to take over from").await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    drop(holder);
    assert_eq!(waiting.address().await, address);
    until_routed(address).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_stays_taken_is_an_error() {
    let scene = Scene::new().await;
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap();
    let mut waiting = Process::start(&scene.arguments_with(address.port(), &[TAKEOVER]));
    assert_eq!(waiting.ended().await.code(), Some(1));
    assert!(waiting.log().contains(&format!("cannot listen on {address}")), "{}", waiting.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_gateway_without_takeover_is_refused() {
    let scene = Scene::new().await;
    let process = Process::start(&scene.arguments(0));
    let address = process.address().await;
    let mut second = Process::start(&scene.arguments(address.port()));
    assert_eq!(second.ended().await.code(), Some(1));
    assert!(second.log().contains(&format!("cannot listen on {address}")), "{}", second.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_predecessor_that_is_killed_leaves_its_successor_to_serve_at_once() {
    let scene = Scene::new().await;
    let (mut process, address) = scene.serving(&[]).await;
    let mut next = Process::start(&scene.arguments_with(address.port(), &[TAKEOVER, NOWHERE]));
    process.says("a successor gets ready").await;
    process.signal(Signal::KILL);
    process.ended().await;
    next.says("took over before this gateway is ready").await;
    assert!(is_alive(address).await);
    // It can be followed in its turn.
    let after = Process::start(&scene.arguments_with(address.port(), &[TAKEOVER]));
    after.says("took over").await;
    assert_eq!(next.ended().await.code(), Some(0), "{}", next.log());
    until_routed(address).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_successor_that_hangs_is_named_to_the_next_one() {
    let scene = Scene::new().await;
    let (mut process, address) = scene.serving(&[]).await;
    let mut hung = Process::start(&scene.arguments_with(address.port(), &[TAKEOVER, NOWHERE]));
    process.says("a successor gets ready").await;
    hung.signal(Signal::STOP);
    let mut second = Process::start(&scene.arguments_with(address.port(), &[TAKEOVER]));
    assert_eq!(second.ended().await.code(), Some(1));
    assert!(second.log().contains("busy: another successor gets ready"), "{}", second.log());
    until_routed(address).await;
    hung.signal(Signal::KILL);
    hung.ended().await;
    process.says("a successor gave up").await;
    let third = Process::start(&scene.arguments_with(address.port(), &[TAKEOVER]));
    third.says("took over").await;
    assert_eq!(process.ended().await.code(), Some(0), "{}", process.log());
    until_routed(address).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_the_old_process_has_stay_healthy() {
    let scene = Scene::new().await;
    let (mut process, address) = scene.serving(&[]).await;
    let mut kept = RawClient::connect(address, LIMIT).await.unwrap();
    let ready = b"GET /actuator/health/readiness HTTP/1.1\r\nHost: h\r\n\r\n";
    kept.send(ready).await;
    assert_eq!(kept.answer(false).await.status(), 200);
    let next = Process::start(&scene.arguments_with(address.port(), &[TAKEOVER]));
    next.says("took over").await;
    loop {
        kept.send(ready).await;
        let answer = kept.answer(false).await;
        assert_eq!(answer.status(), 200, "the address is as ready as before");
        // Only then it has noticed for sure that it stops.
        if answer.header("connection") == ["close"] {
            break;
        }
    }
    assert_eq!(process.ended().await.code(), Some(0), "{}", process.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_old_process_takes_changes_in_as_long_as_it_serves() {
    let scene = Scene::new().await;
    let (mut process, address) = scene.serving(&[]).await;
    let request = b"GET /hello HTTP/1.1\r\nHost: h\r\n\r\n";
    let mut kept = Vec::new();
    for _ in 0..20 {
        let mut client = RawClient::connect(address, LIMIT).await.unwrap();
        client.send(request).await;
        assert_eq!(client.answer(false).await.status(), 200);
        kept.push(client);
    }
    let next = Process::start(&scene.arguments_with(address.port(), &[TAKEOVER]));
    next.says("took over").await;
    process.says("a successor has taken over").await;
    let off = serde_json::json!({"groupType": "PLUGIN", "eventType": "UPDATE", "data": [
        {"id": "divide", "name": "divide", "role": "Proxy", "enabled": false, "pluginJar": ""}
    ]});
    scene.admin.text_to_all(&off.to_string());
    let begun = Instant::now();
    // Each of them is good for one more request.
    loop {
        let mut client = kept.pop().expect("the old process goes by what was before");
        client.send(request).await;
        if client.answer(false).await.status() == 404 {
            break;
        }
        tokio::time::sleep(begun.elapsed().max(Duration::from_millis(5))).await;
    }
    drop(kept);
    assert_eq!(process.ended().await.code(), Some(0), "{}", process.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sockets_of_a_supervisor_are_taken_over_and_stay_usable() {
    let scene = Scene::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // Bound to something else than what is configured, as `ListenStream=9195` is.
    let arguments = |others: &[&str]| {
        let mut all = vec!["--server.address=0.0.0.0"];
        all.extend(others);
        scene.arguments_with(address.port(), &all)
    };
    let mut process = Process::with_socket(&arguments(&[]), &listener);
    assert_eq!(process.address().await, address);
    until_routed(address).await;
    let mut next = Process::start(&arguments(&[TAKEOVER]));
    next.says("took over").await;
    assert_eq!(process.ended().await.code(), Some(0), "{}", process.log());
    until_routed(address).await;
    next.signal(Signal::TERM);
    assert_eq!(next.ended().await.code(), Some(0), "{}", next.log());
    // The supervisor holds it still: handshakes are not turned away.
    let waiting = tokio::time::timeout(Duration::from_secs(5), TcpStream::connect(address));
    assert!(waiting.await.is_ok_and(|connected| connected.is_ok()), "no new handshake begins");
    let last = Process::with_socket(&arguments(&[]), &listener);
    until_routed(address).await;
    drop(last);
}
