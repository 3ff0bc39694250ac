//! The change log.

use std::sync::Arc;
use std::time::Duration;

use longmen_core::model::Selector;
use longmen_core::sync::{Event, Group};
use longmen_db::repository::{conditioned, namespace};
use longmen_db::{
    Change, GLOBAL, Location, Operation, Retention, Since, Source, current_version, epoch, heads,
    prune, renew_epoch, renew_epoch_from, since,
};
use tokio::time::timeout;

use crate::support::{LIMIT, NS, TestStore, add_selector, any_change, on_both_stores};

on_both_stores!(
    a_commit_takes_the_next_version_and_keeps_what_was_recorded,
    a_unit_without_changes_takes_no_version,
    a_unit_that_is_dropped_leaves_nothing,
    a_failed_statement_leaves_nothing,
    one_unit_over_several_namespaces_takes_one_version_of_each,
    whole_sets_are_read_in_order,
    large_sets_are_read_a_few_at_a_time,
    what_was_pruned_or_never_was_is_a_gap,
    long_logs_are_pruned_in_batches,
    a_new_epoch_replaces_the_old_one,
);

async fn commit_one(test: &TestStore, namespace_id: &str, object_id: &str) -> u64 {
    let mut uow = test.begin().await;
    uow.record(any_change(namespace_id, object_id));
    uow.commit().await.unwrap()[0].version
}

async fn a_commit_takes_the_next_version_and_keeps_what_was_recorded(test: TestStore) {
    let mut uow = test.begin().await;
    let id = add_selector(&mut uow, "orders").await;
    uow.record(
        Change::new(NS, Group::Selector, &*id, Operation::Create)
            .stock_event(Event::Update)
            .after(&serde_json::json!({"id": id, "name": "ö'\\\"%"})),
    );
    uow.record(
        Change::new(NS, Group::DiscoverUpstream, &*id, Operation::Delete)
            .before(&serde_json::json!({"selectorId": id})),
    );
    assert_eq!(uow.changes().len(), 2);
    let versions = uow.commit().await.unwrap();
    assert_eq!(versions.len(), 1);
    assert_eq!((versions[0].namespace_id.as_str(), versions[0].version), (NS, 1));

    let sets = test.sets(NS, 0).await;
    assert_eq!(sets.len(), 1);
    assert_eq!(sets[0].version, 1);
    let [first, second] = &sets[0].rows[..] else { panic!("{sets:?}") };
    assert_eq!((first.position, second.position), (0, 1));
    assert_eq!(first.group(), Some(Group::Selector));
    assert_eq!(first.object_id, id);
    assert_eq!((first.operation, first.event), (Operation::Create, Some(Event::Update)));
    assert_eq!(first.before, None);
    let after: serde_json::Value = serde_json::from_str(first.after.as_ref().unwrap()).unwrap();
    assert_eq!(after["name"], "ö'\\\"%");
    assert_eq!((first.actor.as_str(), first.address.as_str()), ("lina", "10.0.0.1"));
    assert_eq!(first.source, Source::Api.name());
    assert_eq!(first.at_ms, test.store.now_ms());
    assert_eq!((second.operation, second.event), (Operation::Delete, None));
    assert!(second.before.is_some() && second.after.is_none());
}

async fn a_unit_without_changes_takes_no_version(test: TestStore) {
    let mut uow = test.begin().await;
    let id = add_selector(&mut uow, "orders").await;
    assert!(uow.commit().await.unwrap().is_empty());
    let mut tx = test.store.read().await.unwrap();
    assert_eq!(current_version(&mut tx, NS).await.unwrap(), 0);
    assert!(conditioned::find::<Selector>(&mut tx, &id).await.unwrap().is_some());
}

async fn a_unit_that_is_dropped_leaves_nothing(test: TestStore) {
    let mut uow = test.begin().await;
    let id = add_selector(&mut uow, "orders").await;
    uow.record(any_change(NS, &id));
    drop(uow);
    assert_eq!(commit_one(&test, NS, "next").await, 1);
    assert_eq!(test.mentions(&id).await, []);
}

/// C-09: the last statement of several fails; nothing of them is seen, no version is lost.
async fn a_failed_statement_leaves_nothing(test: TestStore) {
    let mut uow = test.begin().await;
    let id = add_selector(&mut uow, "orders").await;
    uow.record(any_change(NS, &id));
    let twice = crate::support::new_selector(&id, "again", 1);
    let error = longmen_db::repository::selector::insert(&mut uow, &twice, &[]).await.unwrap_err();
    assert!(error.is_unique_violation(), "{error}");
    // PostgreSQL refuses everything after a failure; whoever goes on all the same gets an error.
    drop(uow);
    assert_eq!(test.mentions(&id).await, []);
    assert_eq!(commit_one(&test, NS, "next").await, 1);
}

async fn one_unit_over_several_namespaces_takes_one_version_of_each(test: TestStore) {
    let mut uow = test.begin().await;
    let other = namespace::insert(&mut uow, "other", "other", "").await.unwrap();
    uow.record(Change::internal(GLOBAL, "NAMESPACE", &*other.id, Operation::Create).after("other"));
    uow.commit().await.unwrap();
    assert_eq!(commit_one(&test, NS, "a").await, 1);

    let mut uow = test.begin().await;
    uow.record(any_change("other", "1"));
    uow.record(any_change(NS, "2"));
    uow.record(any_change("other", "3"));
    let versions: Vec<(String, u64)> = uow
        .commit()
        .await
        .unwrap()
        .into_iter()
        .map(|new| (new.namespace_id, new.version))
        .collect();
    assert_eq!(versions, [(NS.to_owned(), 2), ("other".to_owned(), 1)]);
    let sets = test.sets("other", 0).await;
    let ids: Vec<&str> = sets[0].rows.iter().map(|row| row.object_id.as_str()).collect();
    assert_eq!(ids, ["1", "3"]);
    assert_eq!(test.sets(GLOBAL, 0).await[0].rows[0].kind, "NAMESPACE");
    let mut tx = test.store.read().await.unwrap();
    let heads = heads(&mut tx).await.unwrap();
    assert_eq!(heads.epoch, epoch(&mut tx).await.unwrap());
    let expected = [(GLOBAL, 1), (NS, 2), ("other", 1)];
    assert_eq!(heads.versions, expected.map(|(id, version)| (id.to_owned(), version)));
}

async fn whole_sets_are_read_in_order(test: TestStore) {
    for set in 0..5 {
        let mut uow = test.begin().await;
        for row in 0..450 {
            uow.record(any_change(NS, &format!("{set}-{row}")));
        }
        uow.commit().await.unwrap();
    }
    let mut tx = test.store.read().await.unwrap();
    let Since::Sets(sets) = since(&mut tx, NS, 1, 460).await.unwrap() else { panic!("gap") };
    let shape: Vec<(u64, usize)> = sets.iter().map(|set| (set.version, set.rows.len())).collect();
    assert_eq!(shape, [(2, 450), (3, 450)], "the set in which the limit falls is whole");
    let ids: Vec<String> = sets[0].rows.iter().map(|row| row.object_id.clone()).collect();
    assert_eq!(ids, (0..450).map(|row| format!("1-{row}")).collect::<Vec<_>>());
    let Since::Sets(sets) = since(&mut tx, NS, 4, 1).await.unwrap() else { panic!("gap") };
    assert_eq!((sets.len(), sets[0].rows.len()), (1, 450));
    assert_eq!(since(&mut tx, NS, 5, 100).await.unwrap(), Since::Sets(Vec::new()));
    assert_eq!(since(&mut tx, "unknown", 0, 100).await.unwrap(), Since::Sets(Vec::new()));
}

async fn large_sets_are_read_a_few_at_a_time(test: TestStore) {
    const MIB: usize = 1024 * 1024;
    for (before, after) in [(0, 1), (1, 1), (1, 0), (0, 9), (0, 1)] {
        let mut uow = test.begin().await;
        // Two bytes each: what counts is what is stored and read.
        let text = |mib: usize| "ö".repeat(mib * MIB / 2);
        uow.record(any_change(NS, "x").before(&text(before)).after(&text(after)));
        uow.commit().await.unwrap();
    }
    let mut tx = test.store.read().await.unwrap();
    for (version, expected) in [(0, vec![1, 2, 3]), (2, vec![3, 4]), (3, vec![4]), (4, vec![5])] {
        let Since::Sets(sets) = since(&mut tx, NS, version, 100).await.unwrap() else {
            panic!("gap")
        };
        let versions: Vec<u64> = sets.iter().map(|set| set.version).collect();
        assert_eq!(versions, expected, "after {version}");
    }
}

async fn what_was_pruned_or_never_was_is_a_gap(test: TestStore) {
    for n in 1..=10 {
        assert_eq!(commit_one(&test, NS, &n.to_string()).await, n);
        test.clock.forward(1000);
    }
    let gap = async |version| {
        let mut tx = test.store.read().await.unwrap();
        since(&mut tx, NS, version, 100).await.unwrap() == Since::Gap
    };
    assert!(gap(11).await, "never given out");
    assert!(!gap(0).await);

    // By count: the last four stay.
    let keep = Retention { dispatch_sets: 4, dispatch_ms: 1_000_000, history_ms: 2_000_000 };
    assert_eq!(prune(&test.store, keep).await.unwrap().changes, 0, "history is longer");
    assert!(gap(5).await);
    assert_eq!(test.sets(NS, 6).await.len(), 4);

    // By age: version 8 was written 3 s ago.
    let keep = Retention { dispatch_sets: 100, dispatch_ms: 2500, history_ms: 4500 };
    let deleted = prune(&test.store, keep).await.unwrap();
    assert!(gap(7).await);
    assert_eq!(test.sets(NS, 8).await.len(), 2);
    assert_eq!(deleted.changes, 6, "versions 1 to 6 are older than 4.5 s");

    // A floor never falls again.
    let keep = Retention { dispatch_sets: 100, dispatch_ms: 1_000_000, history_ms: 1_000_000 };
    assert_eq!(prune(&test.store, keep).await.unwrap().changes, 0);
    assert!(gap(7).await);
    assert_eq!(commit_one(&test, NS, "11").await, 11);

    // All of it: the version stays, and a gateway that has it needs nothing.
    test.clock.forward(10_000);
    let keep = Retention { dispatch_sets: 0, dispatch_ms: 0, history_ms: 0 };
    assert!(prune(&test.store, keep).await.unwrap().changes > 0);
    assert!(gap(10).await);
    assert_eq!(test.sets(NS, 11).await, []);
}

/// More rows than one batch holds, and one set that is cut by a batch.
async fn long_logs_are_pruned_in_batches(test: TestStore) {
    const SETS: u64 = 3;
    for _ in 0..SETS {
        let mut uow = test.begin().await;
        for row in 0..1_500 {
            uow.record(any_change(NS, &row.to_string()));
        }
        uow.commit().await.unwrap();
    }
    test.clock.forward(10_000);
    assert_eq!(commit_one(&test, NS, "kept").await, SETS + 1);
    let keep = Retention { dispatch_sets: 100, dispatch_ms: 1000, history_ms: 1000 };
    assert_eq!(prune(&test.store, keep).await.unwrap().changes, 4_500);
    assert_eq!(prune(&test.store, keep).await.unwrap().changes, 0);
    assert_eq!(test.sets(NS, SETS).await.len(), 1);
}

/// However long rows take to delete, configuration can be written meanwhile.
#[tokio::test]
async fn writers_do_not_wait_for_the_pruning() {
    use sqlx::{ConnectOptions, Connection};

    let test = Arc::new(TestStore::postgres().await);
    commit_one(&test, NS, "old").await;
    test.clock.forward(10_000);
    let Location::Postgres(options) = &test.location else { unreachable!() };
    let mut conn = options.connect().await.unwrap();
    let mut holder = conn.begin().await.unwrap();
    sqlx::query("SELECT 1 FROM config_change FOR UPDATE").execute(&mut *holder).await.unwrap();
    let pruning = tokio::spawn({
        let test = Arc::clone(&test);
        let keep = Retention { dispatch_sets: 0, dispatch_ms: 1000, history_ms: 1000 };
        async move { prune(&test.store, keep).await.unwrap() }
    });
    test.somebody_waits().await;
    let written = timeout(Duration::from_secs(20), commit_one(&test, NS, "new")).await;
    assert_eq!(written.expect("nothing to wait for"), 2);
    holder.rollback().await.unwrap();
    assert_eq!(timeout(LIMIT, pruning).await.unwrap().unwrap().changes, 1);
}

async fn a_new_epoch_replaces_the_old_one(test: TestStore) {
    let mut tx = test.store.read().await.unwrap();
    let old = epoch(&mut tx).await.unwrap();
    drop(tx);
    let new = renew_epoch(&test.store).await.unwrap();
    assert_ne!(old, new);
    let mut tx = test.store.read().await.unwrap();
    assert_eq!(epoch(&mut tx).await.unwrap(), new);
    drop(tx);
    // Of two who find the same epoch wanting, one begins the next.
    let (one, other) =
        tokio::join!(renew_epoch_from(&test.store, &new), renew_epoch_from(&test.store, &new));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_ne!(one, new);
    assert_eq!(one, other);
    assert_eq!(renew_epoch_from(&test.store, &old).await.unwrap(), one);
}
