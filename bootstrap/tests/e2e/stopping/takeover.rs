//! Restarts by takeover: the sockets are passed on.

use longmen_benchmark::steady::{Refused, Steady};
use rustix::process::Signal;
use tokio::net::TcpStream;

use super::Scene;
use super::process::{Process, until_routed};

const TAKEOVER: &str = "--takeover";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_restarts_under_load_lose_nothing() {
    let scene = Scene::new().await;
    let mut process = Process::start(&scene.arguments(0));
    let address = process.address().await;
    until_routed(address).await;
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
    let mut process = Process::start(&scene.arguments(0));
    let address = process.address().await;
    until_routed(address).await;
    // An admin that is not there.
    let nowhere = "--shenyu.sync.websocket.urls=ws://127.0.0.1:1/websocket";
    let mut next = Process::start(&scene.arguments_with(address.port(), &[TAKEOVER, nowhere]));
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
async fn a_second_gateway_without_takeover_is_refused() {
    let scene = Scene::new().await;
    let process = Process::start(&scene.arguments(0));
    let address = process.address().await;
    let mut second = Process::start(&scene.arguments(address.port()));
    assert_eq!(second.ended().await.code(), Some(1));
    assert!(second.log().contains(&format!("cannot listen on {address}")), "{}", second.log());
}
