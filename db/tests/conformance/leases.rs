//! Leases of periodic jobs.

use longmen_db::{Error, Store, require_lease};
use tokio::time::timeout;

use crate::support::{LIMIT, NS, TestStore, actor, any_change, on_both_stores};

const JOB: &str = "job";

on_both_stores!(
    a_lease_is_taken_kept_and_given_back,
    what_a_former_holder_writes_is_refused,
    facts_are_shared,
);

async fn a_lease_is_taken_kept_and_given_back(test: TestStore) {
    let store = &test.store;
    let free = store.look_at_lease(JOB).await.unwrap();
    assert!(free.is_free());
    let lease = store.take_lease(JOB, &free).await.unwrap().expect("nobody has it");
    assert_eq!((lease.name(), lease.term()), (JOB, 1));
    assert_eq!(store.take_lease(JOB, &free).await.unwrap(), None, "it is not as it was seen");

    let before = store.look_at_lease(JOB).await.unwrap();
    assert!(store.renew_lease(&lease).await.unwrap());
    let after = store.look_at_lease(JOB).await.unwrap();
    assert_ne!(before, after, "a sign of life shows");
    assert_eq!(store.take_lease(JOB, &before).await.unwrap(), None, "its holder is alive");

    store.give_lease_back(&lease).await.unwrap();
    assert!(!store.renew_lease(&lease).await.unwrap());
    let free = store.look_at_lease(JOB).await.unwrap();
    assert!(free.is_free());
    assert_eq!(store.take_lease(JOB, &free).await.unwrap().unwrap().term(), 2);
    assert!(store.look_at_lease("another").await.unwrap().is_free());
}

/// The clocks say nothing: the term does.
async fn what_a_former_holder_writes_is_refused(test: TestStore) {
    let store = &test.store;
    let seen = store.look_at_lease(JOB).await.unwrap();
    let old = store.take_lease(JOB, &seen).await.unwrap().unwrap();
    let mut uow = test.begin().await;
    require_lease(&mut uow, &old).await.unwrap();
    uow.record(any_change(NS, "1"));
    uow.commit().await.unwrap();

    let seen = store.look_at_lease(JOB).await.unwrap();
    let new = store.take_lease(JOB, &seen).await.unwrap().unwrap();
    let mut uow = test.begin().await;
    let error = require_lease(&mut uow, &old).await.unwrap_err();
    assert!(matches!(error, Error::LeaseLost { name: JOB }), "{error}");
    assert!(!error.is_transient(), "trying again does not help");
    drop(uow);
    let mut uow = test.begin().await;
    require_lease(&mut uow, &new).await.unwrap();
}

async fn facts_are_shared(test: TestStore) {
    let store = &test.store;
    assert_eq!(store.shared_fact("fact", None).await.unwrap(), None);
    assert_eq!(store.shared_fact("fact", Some("one")).await.unwrap().as_deref(), Some("one"));
    assert_eq!(store.shared_fact("fact", Some("two")).await.unwrap().as_deref(), Some("one"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_admins_one_takes_the_lease() {
    let test = TestStore::postgres().await;
    let others: Vec<Store> = vec![test.other().await, test.other().await, test.other().await];
    for round in 1..=20 {
        let seen = test.store.look_at_lease(JOB).await.unwrap();
        let taken = tokio::join!(
            others[0].take_lease(JOB, &seen),
            others[1].take_lease(JOB, &seen),
            others[2].take_lease(JOB, &seen),
        );
        let won: Vec<_> =
            [taken.0, taken.1, taken.2].into_iter().filter_map(|taken| taken.unwrap()).collect();
        assert_eq!(won.len(), 1, "round {round}");
        assert_eq!(won[0].term(), round);
    }
}

/// A holder that is in the middle of writing is waited for: it is over before the next term begins.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_takeover_waits_for_what_is_being_written() {
    let test = TestStore::postgres().await;
    let seen = test.store.look_at_lease(JOB).await.unwrap();
    let old = test.store.take_lease(JOB, &seen).await.unwrap().unwrap();
    let mut uow = test.begin().await;
    require_lease(&mut uow, &old).await.unwrap();
    uow.record(any_change(NS, "1"));

    let other = test.other().await;
    let seen = other.look_at_lease(JOB).await.unwrap();
    let taking = tokio::spawn(async move { other.take_lease(JOB, &seen).await });
    test.somebody_waits().await;
    uow.commit().await.unwrap();
    let new = timeout(LIMIT, taking).await.unwrap().unwrap().unwrap().expect("as it was seen");
    assert_eq!(new.term(), 2);
    assert_eq!(test.sets(NS, 0).await.len(), 1);
    let mut late = test.store.begin(actor()).await.unwrap();
    assert!(require_lease(&mut late, &old).await.is_err());
}
