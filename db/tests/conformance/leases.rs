//! Leases of periodic jobs, and what admins tell each other of their gateways.

use std::time::Duration;

use longmen_db::lease::{acquire, release};
use longmen_db::repository::gateway_report::{Report, forget, of_others, write};

use crate::support::{TestStore, on_both_stores};

on_both_stores!(
    one_owner_at_a_time_has_a_lease,
    many_that_ask_at_once_make_one_holder,
    others_see_what_an_admin_reports,
);

/// Long enough for the statements of a test on a busy machine.
const LEASE_MS: i64 = 3_000;

/// Both clocks: SQLite's is the test's, PostgreSQL's is its own.
async fn pass(test: &TestStore, ms: u64) {
    test.clock.forward(i64::try_from(ms).unwrap());
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

async fn one_owner_at_a_time_has_a_lease(test: TestStore) {
    let store = &test.store;
    let first = acquire(store, "job", "a", LEASE_MS).await.unwrap().expect("nobody had it");
    assert_eq!(acquire(store, "job", "b", LEASE_MS).await.unwrap(), None);
    assert_eq!(acquire(store, "job", "a", LEASE_MS).await.unwrap(), Some(first), "renewed");
    assert!(acquire(store, "other", "b", LEASE_MS).await.unwrap().is_some(), "another job");
    pass(&test, 3_500).await;
    let second = acquire(store, "job", "b", LEASE_MS).await.unwrap().expect("it ran out");
    assert_eq!(second.term, first.term + 1);
    assert_eq!(acquire(store, "job", "a", LEASE_MS).await.unwrap(), None);
    // Only who has it can give it back.
    release(store, "job", "a").await.unwrap();
    assert_eq!(acquire(store, "job", "a", LEASE_MS).await.unwrap(), None);
    release(store, "job", "b").await.unwrap();
    assert!(acquire(store, "job", "a", LEASE_MS).await.unwrap().is_some());
}

async fn many_that_ask_at_once_make_one_holder(test: TestStore) {
    let asking = (0..16).map(|number| {
        let store = test.store.clone();
        tokio::spawn(async move {
            let owner = format!("owner {number}");
            acquire(&store, "job", &owner, 60_000).await.unwrap().is_some()
        })
    });
    let mut holders = 0;
    for asked in asking.collect::<Vec<_>>() {
        holders += usize::from(asked.await.unwrap());
    }
    assert_eq!(holders, 1);
}

async fn others_see_what_an_admin_reports(test: TestStore) {
    let report = |connection, connected, text: &str| Report {
        connection,
        connected,
        report: text.to_owned(),
    };
    write(&test.store, "a", &[report(1, true, "{}"), report(2, true, "{}")]).await.unwrap();
    write(&test.store, "a", &[report(2, false, "{\"left\":1}")]).await.unwrap();
    write(&test.store, "b", &[report(1, true, "{}")]).await.unwrap();
    pass(&test, 1_000).await;
    // Says that it is alive; the one that left does not live by that.
    write(&test.store, "a", &[]).await.unwrap();
    let mut tx = test.store.read().await.unwrap();
    let seen = of_others(&mut tx, "b", 10).await.unwrap();
    drop(tx);
    let [one, two] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((one.connection, one.connected), (1, true));
    assert!(one.silent_ms < 1_000, "{one:?}");
    assert_eq!((two.connection, two.connected, &*two.report), (2, false, "{\"left\":1}"));
    assert!(two.silent_ms >= 1_000, "{two:?}");
    assert_eq!(forget(&test.store, 900).await.unwrap(), 2, "b and what left a");
    let mut tx = test.store.read().await.unwrap();
    assert_eq!(of_others(&mut tx, "c", 10).await.unwrap().len(), 1);
}
