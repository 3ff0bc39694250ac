//! Several admins on one PostgreSQL.

use std::process::Command;
use std::time::Duration;

use longmen_admin::config::StoreConfig;
use longmen_core::config::Secret;
use longmen_core::sync::Payload;
use longmen_core::test_util::postgres::fresh_database;

use super::gateway::{Gateway, Set};
use super::objects::{add_selector, begin, commit};
use crate::support::TestAdmin;

/// An admin on the database of this address.
pub(super) async fn on(url: &str) -> TestAdmin {
    let url = Secret::new(url);
    TestAdmin::with(|config| config.store = StoreConfig::Postgres { url }).await
}

async fn two_admins() -> (TestAdmin, TestAdmin, String) {
    let url = tokio::task::spawn_blocking(fresh_database).await.unwrap();
    (on(&url).await, on(&url).await, url)
}

/// Runs SQL behind the admins' backs. Out: the lines of its result.
pub(super) async fn psql(url: &str, sql: &'static str) -> Vec<String> {
    let url = url.to_owned();
    let run = move || Command::new("psql").args(["-XAtq", &url, "-c", sql]).output().unwrap();
    let psql = tokio::task::spawn_blocking(run).await.unwrap();
    assert!(psql.status.success(), "{}", String::from_utf8_lossy(&psql.stderr));
    String::from_utf8_lossy(&psql.stdout).lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_on_one_admin_reaches_the_gateways_of_the_other() {
    let (one, other, _) = two_admins().await;
    let mut gateway = Gateway::ours(other.running(), "", 0).await;
    let mut mark = gateway.set().await.mark;
    for round in 0..20 {
        let mut uow = begin(one.running()).await;
        add_selector(&mut uow, &format!("s{round}")).await;
        let version = commit(uow).await;
        assert_eq!(version, mark.version + 1);
        mark = gateway.set().await.mark;
        assert_eq!(mark.version, version);
    }
    // A gateway changes its admin and goes on where it was.
    let mut moved = Gateway::ours(one.running(), &mark.epoch, mark.version).await;
    let set = moved.set().await;
    assert!(set.frames.is_empty() && !set.mark.refresh);
    one.stop().await;
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_arrive_although_the_listening_connection_is_killed() {
    const CUT_LISTENERS: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE datname = current_database() AND query ILIKE 'LISTEN%'";
    let (one, other, url) = two_admins().await;
    let mut gateway = Gateway::ours(other.running(), "", 0).await;
    gateway.set().await;
    for round in 0..5 {
        let killed = psql(&url, CUT_LISTENERS).await;
        let mut uow = begin(one.running()).await;
        add_selector(&mut uow, &format!("s{round}")).await;
        let version = commit(uow).await;
        let arrived = tokio::time::timeout(Duration::from_secs(10), gateway.set()).await;
        assert_eq!(arrived.expect("arrives by polling").mark.version, version);
        assert!(round > 0 || killed.contains(&"t".to_owned()), "nobody listened");
    }
    one.stop().await;
    other.stop().await;
}

/// Two writers that commit in the opposite order of their starts: the version is taken at the commit,
/// so a gateway that stands at the version of the second still gets the first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_in_the_opposite_order_of_the_starts_reach_every_gateway() {
    let (one, other, _) = two_admins().await;
    let mut gateways = Vec::new();
    for admin in [&one, &other] {
        let mut ours = Gateway::ours(admin.running(), "", 0).await;
        let start = ours.set().await.mark.version;
        let mut stock = Gateway::stock(admin.running()).await;
        stock.so_far().await;
        gateways.push((ours, stock, start));
    }
    let mut early = begin(one.running()).await;
    let first = add_selector(&mut early, "early").await;
    let mut late = begin(other.running()).await;
    let second = add_selector(&mut late, "late").await;

    let late = commit(late).await;
    for (ours, stock, start) in &mut gateways {
        let set = ours.set().await;
        assert_eq!((set.mark.version, late), (late, *start + 1));
        assert_eq!(selector_ids(&set), [second.id.as_str()], "the other one is not committed");
        assert_eq!(stock.json().await["data"][0]["id"], second.id.as_str());
    }
    let early = commit(early).await;
    assert_eq!(early, late + 1);
    for (ours, stock, _) in &mut gateways {
        let set = ours.set().await;
        assert_eq!((set.mark.version, set.mark.refresh), (early, false));
        assert_eq!(selector_ids(&set), [first.id.as_str()]);
        assert_eq!(stock.json().await["data"][0]["id"], first.id.as_str());
    }
    one.stop().await;
    other.stop().await;
}

fn selector_ids(set: &Set) -> Vec<&str> {
    let lists = set.frames.iter().map(|frame| match &frame.payload {
        Payload::Selector(list) => list,
        other => panic!("{other:?}"),
    });
    lists.flatten().map(|selector| selector.id.as_str()).collect()
}

/// A backup brought back: the versions that follow would not tell what was lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_older_than_what_was_sent_begins_a_new_epoch() {
    const BRING_BACK: &str = "DELETE FROM selector; DELETE FROM config_change WHERE version > 1; \
         UPDATE config_version SET version = 1 WHERE version > 1";
    let (one, other, url) = two_admins().await;
    let mut uow = begin(one.running()).await;
    add_selector(&mut uow, "kept").await;
    commit(uow).await;
    let mut uow = begin(one.running()).await;
    add_selector(&mut uow, "lost").await;
    let version = commit(uow).await;
    let mut gateways = Vec::new();
    for admin in [&one, &other] {
        let mut gateway = Gateway::ours(admin.running(), "", 0).await;
        let mark = gateway.sets_to(version).await.pop().unwrap().mark;
        gateways.push((gateway, mark.epoch));
    }
    psql(&url, BRING_BACK).await;
    let mut epochs = Vec::new();
    for (gateway, epoch) in &mut gateways {
        let mark = gateway.set().await.mark;
        assert!(mark.refresh);
        assert_ne!(mark.epoch, *epoch);
        assert_eq!(mark.version, 1);
        epochs.push(mark.epoch);
    }
    assert_eq!(epochs[0], epochs[1], "both admins may notice at once, one begins the epoch");
    one.stop().await;
    other.stop().await;
}
