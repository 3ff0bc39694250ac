//! Fixed pools: so many connections and no more, over all workers.

use std::sync::Arc;
use std::time::Duration;

use longmen_core::error::{ErrorStatus, Reason, Retry};
use longmen_core::upstream::{ClientOptions, ConnectFailure, Endpoint, PoolLimit, PoolOptions};
use tokio::join;

use crate::support::origin::Origin;
use crate::support::{Rig, Strategy, error, get, text, until, within};

conformance! {
    the_next_waits_for_its_turn, all_workers_share_the_limit, a_full_queue, waiting_has_an_end,
    those_who_leave_lose_their_place, a_dead_connection_makes_room, failed_connections_make_room,
}

fn fixed(strategy: Strategy, connections: usize, pending: usize, wait: Duration) -> Rig {
    let limit = PoolLimit::Fixed {
        max_connections: connections,
        max_pending: pending,
        acquire_timeout: wait,
    };
    let pool = PoolOptions { limit, ..PoolOptions::default() };
    Rig::with(strategy, ClientOptions { pool, ..ClientOptions::default() })
}

const LONG: Duration = Duration::from_secs(15);

async fn call(rig: &Rig, endpoint: &Arc<Endpoint>, path: &str) -> String {
    text(rig.send(endpoint, get(endpoint, path)).await.unwrap()).await
}

async fn the_next_waits_for_its_turn(strategy: Strategy) {
    let rig = fixed(strategy, 1, 10, LONG);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let upstream = async {
        let mut conn = origin.accept().await;
        for turn in 0..3 {
            let line = conn.request().await.line().to_owned();
            until("the others wait", || rig.stats().waiting == 2 - turn).await;
            assert_eq!(rig.stats().in_use, 1);
            conn.answer(&line).await;
        }
        assert!(!origin.has_another().await);
    };
    let calls = async {
        join!(call(&rig, &endpoint, "/0"), call(&rig, &endpoint, "/1"), call(&rig, &endpoint, "/2"))
    };
    let (answers, ()) = join!(calls, upstream);
    let expected = |n: u8| format!("GET /{n} HTTP/1.1");
    assert_eq!(answers, (expected(0), expected(1), expected(2)), "first come, first served");
    let stats = rig.stats();
    assert_eq!((stats.opened, stats.reused, stats.waiting), (1, 2, 0), "{stats:?}");
}

async fn all_workers_share_the_limit(strategy: Strategy) {
    let rig = fixed(strategy, 1, 10, LONG);
    let other = rig.another_worker();
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let upstream = async {
        let mut conn = origin.accept().await;
        conn.request().await;
        until("the other worker waits", || rig.stats().waiting == 1).await;
        conn.answer("first").await;
        // With reqwest each worker has connections of its own, but no two exchanges at once.
        if !rig.is_hyper() {
            conn = origin.accept().await;
        }
        conn.request().await;
        conn.answer("second").await;
        conn
    };
    let calls = async {
        join!(call(&rig, &endpoint, "/"), async {
            let response = within(other.send(&endpoint, get(&endpoint, "/"))).await.unwrap();
            text(response).await
        })
    };
    let ((first, second), _conn) = join!(calls, upstream);
    assert_eq!((&*first, &*second), ("first", "second"));
}

async fn a_full_queue(strategy: Strategy) {
    let rig = fixed(strategy, 1, 1, LONG);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let upstream = async {
        let mut conn = origin.accept().await;
        conn.request().await;
        until("one waits", || rig.stats().waiting == 1).await;
        let failure = rig.send(&endpoint, get(&endpoint, "/3")).await.unwrap_err();
        assert!(failure.request.is_some());
        assert_eq!(failure.error.reason(), Reason::UpstreamPool);
        assert_eq!(failure.error.retry(), Retry::Safe);
        assert_eq!(failure.error.status(ErrorStatus::Shenyu), 503);
        assert_eq!(rig.stats().failures(ConnectFailure::PoolFull), 1);
        conn.answer("1").await;
        conn.request().await;
        conn.answer("2").await;
    };
    join!(call(&rig, &endpoint, "/1"), call(&rig, &endpoint, "/2"), upstream);
}

async fn waiting_has_an_end(strategy: Strategy) {
    let rig = fixed(strategy, 1, 10, Duration::from_millis(30));
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let upstream = async {
        let mut conn = origin.accept().await;
        conn.request().await;
        let late = error(rig.send(&endpoint, get(&endpoint, "/2")).await);
        assert_eq!(late.reason(), Reason::UpstreamPool);
        let stats = rig.stats();
        assert_eq!((stats.failures(ConnectFailure::PoolTimeout), stats.waiting), (1, 0));
        conn.answer("1").await;
        conn.request().await;
        conn.answer("3").await;
    };
    let calls = async {
        assert_eq!(call(&rig, &endpoint, "/1").await, "1");
        rig.until_unused().await;
        assert_eq!(call(&rig, &endpoint, "/3").await, "3");
    };
    join!(calls, upstream);
}

async fn those_who_leave_lose_their_place(strategy: Strategy) {
    let rig = fixed(strategy, 1, 10, LONG);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let upstream = async {
        let mut conn = origin.accept().await;
        conn.request().await;
        let leaving = rig.client.send(&endpoint, get(&endpoint, "/leaves"));
        tokio::select! {
            _ = leaving => panic!("it has no connection"),
            () = until("it waits", || rig.stats().waiting == 1) => {}
        }
        assert_eq!(rig.stats().waiting, 0);
        conn.answer("1").await;
        assert_eq!(conn.request().await.line(), "GET /2 HTTP/1.1");
        conn.answer("2").await;
    };
    let calls = async {
        assert_eq!(call(&rig, &endpoint, "/1").await, "1");
        assert_eq!(call(&rig, &endpoint, "/2").await, "2");
    };
    join!(calls, upstream);
    assert_eq!(rig.stats().opened, 1);
}

async fn a_dead_connection_makes_room(strategy: Strategy) {
    let rig = fixed(strategy, 1, 10, LONG);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    let upstream = async {
        let mut conn = origin.accept().await;
        conn.request().await;
        until("one waits", || rig.stats().waiting == 1).await;
        conn.close();
        let mut conn = origin.accept().await;
        conn.request().await;
        conn.answer("2").await;
    };
    let calls = async {
        let first = async { error(rig.send(&endpoint, get(&endpoint, "/1")).await).reason() };
        join!(first, call(&rig, &endpoint, "/2"))
    };
    let ((first, second), ()) = join!(calls, upstream);
    assert_eq!((first, &*second), (Reason::UpstreamReset, "2"));
}

async fn failed_connections_make_room(strategy: Strategy) {
    let rig = fixed(strategy, 1, 10, LONG);
    let origin = Origin::new().await;
    let endpoint = rig.endpoint(&origin.url());
    drop(origin);
    for _ in 0..3 {
        let failed = error(rig.send(&endpoint, get(&endpoint, "/")).await);
        assert_eq!(failed.reason(), Reason::UpstreamConnect);
    }
    assert_eq!(rig.stats().in_use, 0);
}
