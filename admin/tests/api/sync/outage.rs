//! A database that does not answer and does not close either.

use std::time::Duration;

use longmen_admin::config::StoreConfig;
use longmen_core::config::Secret;
use longmen_core::test_util::postgres::fresh_database;

use super::gateway::Gateway;
use super::link::Link;
use super::objects::{add_selector, begin, commit};
use crate::support::TestAdmin;

async fn admin_on(url: &str, query_timeout: Duration) -> TestAdmin {
    TestAdmin::with(|config| {
        config.store = StoreConfig::Postgres { url: Secret::new(url) };
        config.pool.max_connections = 3;
        config.sync.poll_interval = Duration::from_millis(100);
        config.sync.query_timeout = query_timeout;
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_arrive_by_another_connection_when_one_falls_silent() {
    let url = tokio::task::spawn_blocking(fresh_database).await.unwrap();
    let link = Link::to(&url).await;
    let writing = admin_on(&url, Duration::from_secs(10)).await;
    let admin = admin_on(&link.url, Duration::from_secs(1)).await;
    let mut gateway = Gateway::ours(admin.running(), "", 0).await;
    gateway.set().await;
    for round in 0..2 {
        link.silence_open_connections();
        link.something_was_lost().await;
        let mut uow = begin(writing.running()).await;
        add_selector(&mut uow, &format!("s{round}")).await;
        let version = commit(uow).await;
        assert_eq!(gateway.set().await.mark.version, version);
        // One that opens now gets an answer too.
        let mut late = Gateway::ours(admin.running(), "", 0).await;
        assert_eq!(late.set().await.mark.version, version);
    }
    admin.stop().await;
    writing.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_says_goodbye_although_the_database_is_silent() {
    const HOUR: Duration = Duration::from_secs(3600);
    let url = tokio::task::spawn_blocking(fresh_database).await.unwrap();
    let link = Link::to(&url).await;
    let admin = admin_on(&link.url, HOUR).await;
    let mut stock = Gateway::stock(admin.running()).await;
    stock.so_far().await;
    let mut ours = Gateway::ours(admin.running(), "", 0).await;
    ours.set().await;
    link.silence();
    // The dispatcher asks and gets no answer.
    link.something_was_lost().await;
    let ((), one, other) = tokio::join!(admin.stop_somehow(), stock.end(), ours.end());
    assert_eq!((one, other), (Some(1001), Some(1001)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_is_down_soon_when_the_database_falls_silent() {
    let url = tokio::task::spawn_blocking(fresh_database).await.unwrap();
    let link = Link::to(&url).await;
    let admin = admin_on(&link.url, Duration::from_secs(1)).await;
    let health = async || admin.call("GET", "/actuator/health", &[], None).await;
    assert_eq!(health().await.status, 200);
    link.silence();
    // A call's own limit is 20 s, and a wait for a connection would take 30.
    for _ in 0..3 {
        let begun = tokio::time::Instant::now();
        let answer = health().await;
        assert_eq!(answer.status, 503, "{}", answer.text);
        let json = answer.json.unwrap();
        assert_eq!(
            (&json["status"], &json["components"]["db"]["status"]),
            (&"DOWN".into(), &"DOWN".into())
        );
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    }
    admin.stop_somehow().await;
}
