use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use longmen_core::lifecycle::Lifecycle;
use longmen_core::snapshot::{Publisher, PublisherOptions, SnapshotStore};

use super::{Offer, Post, Predecessor, SUCCESSOR_LIMIT, Sockets, ask};
use crate::config::GatewayConfig;
use crate::sync::Applier;
use crate::worker::Doors;

/// Longer than anything takes.
const LIMIT: Duration = Duration::from_secs(20);

fn post(address: SocketAddr, patience: Duration) -> Post {
    let store = Arc::new(SnapshotStore::new());
    let registry = longmen_plugins::registry();
    let publisher = Publisher::new(Arc::clone(&store), registry, PublisherOptions::default());
    Post {
        address,
        netty: GatewayConfig::default().netty,
        patience,
        doors: Doors::default(),
        lifecycle: Lifecycle::new(),
        store,
        applier: Applier::new(publisher, None),
        handed_over: Arc::default(),
    }
}

fn opened() -> (SocketAddr, Sockets) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (address, Sockets { public: vec![listener], management: None })
}

async fn asked(address: SocketAddr) -> std::io::Result<Option<(Predecessor, Sockets)>> {
    tokio::task::spawn_blocking(move || ask(address)).await.unwrap()
}

/// Asks until it is given the sockets.
async fn given(address: SocketAddr) -> (Predecessor, Sockets) {
    let asking = async {
        loop {
            if let Ok(Some(given)) = asked(address).await {
                return given;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LIMIT, asking).await.expect("nothing is given")
}

async fn until_others(doors: &Doors, count: usize) {
    let waiting = async {
        while doors.others.load(Ordering::Acquire) != count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LIMIT, waiting).await.expect("others hold the sockets for ever");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_successor_that_hangs_is_given_up_and_another_one_served() {
    let (address, sockets) = opened();
    let predecessor = post(address, Duration::from_secs(3));
    let (doors, lifecycle) = (predecessor.doors.clone(), predecessor.lifecycle.clone());
    let running = tokio::spawn(predecessor.run(None, sockets));
    let (hung, its_sockets) = given(address).await;
    let busy = asked(address).await.expect_err("two successors at once");
    assert_eq!(busy.kind(), ErrorKind::ResourceBusy);
    assert!(busy.to_string().contains("busy: another successor gets ready"), "{busy}");
    // It is not waited for for ever, but has the sockets for as long as it lives.
    let next = given(address).await;
    assert_eq!(doors.others.load(Ordering::Acquire), 2);
    let successor = post(address, SUCCESSOR_LIMIT);
    let following = hung.followed_by(&successor, &its_sockets);
    let told = tokio::time::timeout(LIMIT, following).await.unwrap().unwrap_err();
    assert_eq!(told.kind(), ErrorKind::TimedOut);
    assert!(!successor.doors.open.is_cancelled(), "two gateways would serve for ever");
    until_others(&doors, 1).await;
    drop(next);
    until_others(&doors, 0).await;
    assert!(!lifecycle.soft().is_cancelled());
    lifecycle.soft().cancel();
    tokio::time::timeout(LIMIT, running).await.unwrap().unwrap();
    assert!(asked(address).await.unwrap().is_none(), "nobody is there any more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_successor_whose_predecessor_ends_serves_at_once() {
    for held_elsewhere in [false, true] {
        let (address, sockets) = opened();
        let predecessor = post(address, SUCCESSOR_LIMIT);
        predecessor.doors.others.store(usize::from(held_elsewhere), Ordering::Release);
        let lifecycle = predecessor.lifecycle.clone();
        let running = tokio::spawn(predecessor.run(None, sockets));
        let (found, its_sockets) = given(address).await;
        // Without any configuration.
        let successor = post(address, SUCCESSOR_LIMIT);
        successor.doors.others.store(1, Ordering::Release);
        let doors = successor.doors.clone();
        let following =
            tokio::spawn(async move { found.followed_by(&successor, &its_sockets).await });
        lifecycle.soft().cancel();
        tokio::time::timeout(LIMIT, running).await.unwrap().unwrap();
        tokio::time::timeout(LIMIT, following).await.expect("waits for ever").unwrap().unwrap();
        assert!(doors.open.is_cancelled());
        assert_eq!(doors.others.load(Ordering::Acquire), usize::from(held_elsewhere));
    }
}

#[tokio::test]
async fn a_gateway_that_stops_gives_nothing_away() {
    let (address, sockets) = opened();
    let predecessor = post(address, SUCCESSOR_LIMIT);
    predecessor.lifecycle.soft().cancel();
    let others = Arc::clone(&predecessor.doors.others);
    tokio::time::timeout(LIMIT, predecessor.run(None, sockets)).await.unwrap();
    assert_eq!(others.load(Ordering::Acquire), 0);
}

#[test]
fn an_older_predecessor_does_not_say_who_else_holds_the_sockets() {
    let offer: Offer = serde_json::from_str(r#"{"public":2,"management":1}"#).unwrap();
    assert!(!offer.held_elsewhere);
}
