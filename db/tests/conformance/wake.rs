//! Waking the dispatcher.

use std::time::Duration;

use longmen_db::{Location, Wake, WakeUp, renew_epoch};
use sqlx::ConnectOptions;
use tokio::time::timeout;

use crate::support::{LIMIT, NS, TestStore, actor, any_change, on_both_stores};

on_both_stores!(own_commits_wake, what_happened_before_the_wait_counts, a_new_epoch_wakes,);

async fn next(wake: &mut WakeUp) -> Wake {
    timeout(LIMIT, wake.next()).await.unwrap()
}

/// Waits for a certain wake-up; on the way come those of the link, and own ones told twice.
async fn until(wake: &mut WakeUp, wanted: Wake) {
    while next(wake).await != wanted {}
}

async fn commit(store: &longmen_db::Store) {
    let mut uow = store.begin(actor()).await.unwrap();
    uow.record(any_change(NS, "x"));
    uow.commit().await.unwrap();
}

async fn own_commits_wake(test: TestStore) {
    let mut wake = test.store.wake_up();
    let store = test.store.clone();
    let waiter = tokio::spawn(async move {
        until(&mut wake, Wake::Own).await;
        wake
    });
    commit(&store).await;
    let mut wake = timeout(LIMIT, waiter).await.unwrap().unwrap();
    // A unit without changes has nothing to tell.
    let mut uow = test.begin().await;
    crate::support::add_selector(&mut uow, "s").await;
    uow.commit().await.unwrap();
    let quiet = timeout(Duration::from_millis(300), until(&mut wake, Wake::Own)).await;
    assert!(quiet.is_err(), "woken by a unit without changes");
}

async fn what_happened_before_the_wait_counts(test: TestStore) {
    let mut wake = test.store.wake_up();
    commit(&test.store).await;
    commit(&test.store).await;
    until(&mut wake, Wake::Own).await;
}

async fn a_new_epoch_wakes(test: TestStore) {
    let mut wake = test.store.wake_up();
    renew_epoch(&test.store).await.unwrap();
    until(&mut wake, Wake::Own).await;
}

#[tokio::test]
async fn commits_of_other_admins_wake_on_postgresql() {
    let test = TestStore::postgres().await;
    let other = test.other().await;
    let mut wake = test.store.wake_up();
    assert_eq!(next(&mut wake).await, Wake::Link, "listening from here on");
    commit(&other).await;
    assert_eq!(next(&mut wake).await, Wake::Other);

    // A rolled back unit tells nobody; the next thing heard is the commit after it.
    let mut uow = other.begin(actor()).await.unwrap();
    uow.record(any_change(NS, "y"));
    drop(uow);
    commit(&other).await;
    assert_eq!(next(&mut wake).await, Wake::Other);
}

#[tokio::test]
async fn a_lost_link_is_told_and_made_anew() {
    let test = TestStore::postgres().await;
    let other = test.other().await;
    let mut wake = test.store.wake_up();
    assert_eq!(next(&mut wake).await, Wake::Link);

    let Location::Postgres(options) = &test.location else { unreachable!() };
    let mut conn = options.connect().await.unwrap();
    let cut: i64 = sqlx::query_scalar(
        "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity
         WHERE datname = current_database() AND query LIKE 'LISTEN%' AND pid <> pg_backend_pid()",
    )
    .fetch_one(&mut conn)
    .await
    .unwrap();
    assert_eq!(cut, 1);
    assert_eq!(next(&mut wake).await, Wake::Link);
    // It listens again once a further commit is heard; those before may be lost.
    let heard = async {
        loop {
            commit(&other).await;
            if timeout(Duration::from_millis(200), until(&mut wake, Wake::Other)).await.is_ok() {
                break;
            }
        }
    };
    timeout(LIMIT, heard).await.unwrap();

    // The store's own connections recover as well.
    let _: i64 = sqlx::query_scalar(
        "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    .fetch_one(&mut conn)
    .await
    .unwrap();
    let recovered = async {
        while test.store.read().await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(LIMIT, recovered).await.unwrap();
}
