//! Which connections are kept, and for how long.

use std::time::Duration;

use longmen_core::upstream::{ClientOptions, PoolLimit, PoolOptions};
use tokio::join;

use crate::support::origin::{Conn, Origin};
use crate::support::{Rig, Strategy, get, text, within};

conformance! {
    kept_connections_serve_again, connections_the_upstream_closes, without_keep_alive, without_pool,
    unused_too_long, unused_too_many, too_old, counters_of_several_workers,
}

fn with_pool(pool: PoolOptions) -> ClientOptions {
    ClientOptions { pool, ..ClientOptions::default() }
}

/// One GET that is answered on a connection, which stays open.
async fn exchange(
    rig: &Rig,
    origin: &Origin,
    endpoint: &std::sync::Arc<longmen_core::upstream::Endpoint>,
    conn: Option<Conn>,
) -> (Conn, String) {
    let upstream = async {
        let mut conn = match conn {
            Some(conn) => conn,
            None => origin.accept().await,
        };
        let head = conn.request().await.head;
        conn.answer("ok").await;
        (conn, head)
    };
    let client = async { text(rig.send(endpoint, get(endpoint, "/")).await.unwrap()).await };
    let (answer, got) = join!(client, upstream);
    assert_eq!(answer, "ok");
    got
}

async fn kept_connections_serve_again(strategy: Strategy) {
    let rig = Rig::new(strategy);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let mut conn = None;
    for _ in 0..5 {
        let (used, head) = exchange(&rig, &origin, &endpoint, conn.take()).await;
        assert!(!head.contains("connection:"), "{head}");
        conn = Some(used);
    }
    let stats = rig.stats();
    assert_eq!((stats.opened, stats.reused, stats.in_use), (1, 4, 0), "{stats:?}");
    // Another host is another connection.
    let other = Origin::new().await;
    let endpoint = rig.endpoint(&other.url());
    exchange(&rig, &other, &endpoint, None).await;
    assert_eq!(rig.factory.stats().iter().map(|host| host.opened).sum::<u64>(), 2);
}

async fn connections_the_upstream_closes(strategy: Strategy) {
    for head in ["HTTP/1.1 200 OK\r\nconnection: close\r\n", "HTTP/1.0 200 OK\r\n"] {
        let rig = Rig::new(strategy);
        let origin = Origin::new().await;
        let endpoint = rig.endpoint(&origin.url());
        let upstream = async {
            let mut conn = origin.accept().await;
            conn.request().await;
            conn.send(format!("{head}content-length: 2\r\n\r\nok")).await;
            conn.closed().await;
        };
        let client = async { text(rig.send(&endpoint, get(&endpoint, "/")).await.unwrap()).await };
        assert_eq!(join!(client, upstream).0, "ok");
        exchange(&rig, &origin, &endpoint, None).await;
        assert_eq!((rig.stats().opened, rig.stats().reused), (2, 0));
    }
}

async fn without_keep_alive(strategy: Strategy) {
    let rig = Rig::with(strategy, ClientOptions { keep_alive: false, ..ClientOptions::default() });
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    for _ in 0..2 {
        let (mut conn, head) = exchange(&rig, &origin, &endpoint, None).await;
        assert!(head.contains("\r\nconnection: close"), "{head}");
        conn.closed().await;
    }
    assert_eq!((rig.stats().opened, rig.stats().reused), (2, 0));
}

async fn without_pool(strategy: Strategy) {
    let pool = PoolOptions { limit: PoolLimit::Disabled, ..PoolOptions::default() };
    let rig = Rig::with(strategy, with_pool(pool));
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    for _ in 0..2 {
        let (mut conn, head) = exchange(&rig, &origin, &endpoint, None).await;
        assert!(!head.contains("connection:"), "{head}");
        conn.closed().await;
    }
    assert_eq!((rig.stats().opened, rig.stats().reused), (2, 0));
}

/// Sweeps, as a worker does, until the connection is closed.
async fn swept(rig: &Rig, conn: &mut Conn) {
    let sweeping = async {
        loop {
            rig.client.sweep();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        () = conn.closed() => {}
        () = within(sweeping) => {}
    }
}

async fn unused_too_long(strategy: Strategy) {
    let pool = PoolOptions { max_idle: Duration::from_millis(50), ..PoolOptions::default() };
    let rig = Rig::with(strategy, with_pool(pool));
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let (mut conn, _) = exchange(&rig, &origin, &endpoint, None).await;
    swept(&rig, &mut conn).await;
    exchange(&rig, &origin, &endpoint, None).await;
    if rig.is_hyper() {
        let stats = rig.stats();
        assert_eq!((stats.opened, stats.closed_idle), (2, 1), "{stats:?}");
    }
}

async fn unused_too_many(strategy: Strategy) {
    let pool = PoolOptions { max_idle_per_upstream: 1, ..PoolOptions::default() };
    let rig = Rig::with(strategy, with_pool(pool));
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let call = || async { text(rig.send(&endpoint, get(&endpoint, "/")).await.unwrap()).await };
    let upstream = async {
        let (mut one, mut two) = (origin.accept().await, origin.accept().await);
        one.request().await;
        two.request().await;
        one.answer("1").await;
        two.answer("2").await;
        // Either of them is closed, and only one.
        tokio::select! {
            () = one.closed() => two,
            () = two.closed() => one,
        }
    };
    let (_, _, kept) = join!(call(), call(), upstream);
    exchange(&rig, &origin, &endpoint, Some(kept)).await;
    assert_eq!(rig.stats().opened, 2);
}

async fn too_old(strategy: Strategy) {
    let life = Duration::from_millis(40);
    let pool = PoolOptions { max_life: Some(life), ..PoolOptions::default() };
    let rig = Rig::with(strategy, with_pool(pool));
    if !rig.is_hyper() {
        // reqwest has no such limit: the documentation says so.
        return;
    }
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let (mut conn, _) = exchange(&rig, &origin, &endpoint, None).await;
    tokio::time::sleep(life).await;
    exchange(&rig, &origin, &endpoint, None).await;
    conn.closed().await;
    let stats = rig.stats();
    assert_eq!((stats.opened, stats.reused, stats.closed_idle), (2, 0, 1), "{stats:?}");
}

async fn counters_of_several_workers(strategy: Strategy) {
    let rig = Rig::new(strategy);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let (_first, _) = exchange(&rig, &origin, &endpoint, None).await;
    let other = rig.another_worker();
    let upstream = async {
        let mut conn = origin.accept().await;
        conn.request().await;
        conn.answer("ok").await;
        conn
    };
    let (response, _second) = join!(within(other.send(&endpoint, get(&endpoint, "/"))), upstream);
    text(response.unwrap()).await;
    rig.until_unused().await;
    let stats = rig.stats();
    assert_eq!((stats.opened, stats.reused, stats.in_use), (2, 0, 0), "each has its own");
    assert_eq!(stats.address, format!("http://{}", origin.url()));
}
