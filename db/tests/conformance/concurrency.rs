//! Several writers at once.

use std::sync::Arc;
use std::time::Duration;

use longmen_core::model::Selector;
use longmen_core::sync::Group;
use longmen_db::repository::{conditioned, proxy_selector, rule, selector, upstream};
use longmen_db::{Change, Error, Operation, Store, StoreOptions, current_version};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::bindings::{bind, bind_port, new_port};
use crate::support::{
    LIMIT, NS, TestStore, actor, add_rule, add_selector, any_change, conditions, new_selector,
    new_upstream, on_both_stores,
};

on_both_stores!(
    many_writers_leave_no_gap,
    edits_of_one_selector_form_a_chain,
    edits_of_one_upstream_list_form_a_chain,
    a_rule_never_survives_its_selector,
    a_binding_never_survives_its_selector,
    a_binding_never_survives_its_raw_port,
    a_selector_that_goes_is_not_bound,
);

/// Two transactions that overlap and commit in the opposite order of their starts. SQLite has one
/// writer at a time, so there they cannot.
#[tokio::test]
async fn commits_in_the_opposite_order_of_the_starts_are_all_seen() {
    let test = TestStore::postgres().await;
    let other = test.other().await;
    let mut early = test.begin().await;
    add_selector(&mut early, "early").await;
    early.record(any_change(NS, "early"));
    let mut late = other.begin(actor()).await.unwrap();
    add_selector(&mut late, "late").await;
    late.record(any_change(NS, "late"));

    assert_eq!(late.commit().await.unwrap()[0].version, 1);
    let seen = test.sets(NS, 0).await;
    assert_eq!(seen.len(), 1);
    // A reader that stands at version 1 must still get what began before it.
    assert_eq!(early.commit().await.unwrap()[0].version, 2);
    let rest = test.sets(NS, 1).await;
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0].rows[0].object_id, "early");
}

/// The same on SQLite: the second writer waits for the first, whatever it wants.
#[tokio::test]
async fn sqlite_writers_wait_for_each_other_in_order() {
    let test = TestStore::sqlite().await;
    let mut early = test.begin().await;
    let store = test.store.clone();
    let (started, start) = oneshot::channel();
    let late = tokio::spawn(async move {
        started.send(()).unwrap();
        let mut late = store.begin(actor()).await.unwrap();
        late.record(any_change(NS, "late"));
        late.commit().await.unwrap()[0].version
    });
    start.await.unwrap();
    add_selector(&mut early, "early").await;
    early.record(any_change(NS, "early"));
    assert_eq!(early.commit().await.unwrap()[0].version, 1);
    assert_eq!(timeout(LIMIT, late).await.unwrap().unwrap(), 2);
}

/// Two writers of the same rows must not each hold what the other wants: rows are taken in the order
/// of their ids, whatever the order in which they stand.
#[tokio::test]
async fn rows_are_held_in_the_order_of_their_ids() {
    let test = Arc::new(TestStore::postgres().await);
    let mut uow = test.begin().await;
    for id in ["c", "b", "a"] {
        selector::insert(&mut uow, &new_selector(id, id, 1), &[]).await.unwrap();
    }
    uow.commit().await.unwrap();
    let mut holder = test.begin().await;
    conditioned::find_for_update::<Selector>(&mut holder, "b").await.unwrap().unwrap();
    let waiting = tokio::spawn({
        let test = Arc::clone(&test);
        async move {
            let mut waiter = test.begin().await;
            conditioned::set_enabled::<Selector>(&mut waiter, &["c", "b", "a"], false)
                .await
                .unwrap()
        }
    });
    test.somebody_waits().await;
    let options = StoreOptions {
        acquire_timeout: Duration::from_millis(500),
        ..crate::support::options(&test.clock)
    };
    let hasty = Store::open(&test.location, options).await.unwrap();
    for (id, free) in [("c", true), ("a", false)] {
        let mut third = hasty.begin(actor()).await.unwrap();
        let held = conditioned::find_for_update::<Selector>(&mut third, id).await;
        assert_eq!(held.is_ok(), free, "{id}");
    }
    drop(holder);
    assert_eq!(timeout(LIMIT, waiting).await.unwrap().unwrap(), 3);
}

/// A writer that waits for what another holds gives up in time, and may try again.
#[tokio::test]
async fn waiting_for_a_held_row_has_a_limit() {
    let test = TestStore::postgres().await;
    let options = StoreOptions {
        acquire_timeout: Duration::from_millis(500),
        ..crate::support::options(&test.clock)
    };
    let hasty = Store::open(&test.location, options).await.unwrap();
    let mut holder = test.begin().await;
    let id = add_selector(&mut holder, "orders").await;
    holder.commit().await.unwrap();
    let mut holder = test.begin().await;
    conditioned::find_for_update::<Selector>(&mut holder, &id).await.unwrap().unwrap();
    let mut waiter = hasty.begin(actor()).await.unwrap();
    let refused = timeout(LIMIT, conditioned::find_for_update::<Selector>(&mut waiter, &id))
        .await
        .unwrap()
        .unwrap_err();
    assert!(matches!(refused, Error::Busy { .. }), "{refused}");
    assert!(refused.is_transient());
}

async fn many_writers_leave_no_gap(test: TestStore) {
    let test = Arc::new(test);
    let tasks: Vec<_> = (0..100)
        .map(|n| {
            let test = Arc::clone(&test);
            tokio::spawn(async move {
                let mut uow = test.begin().await;
                add_selector(&mut uow, &format!("s{n}")).await;
                uow.record(any_change(NS, &n.to_string()));
                // Every fifth gives up: its version must not be missed.
                if n % 5 == 0 { None } else { Some(uow.commit().await.unwrap()[0].version) }
            })
        })
        .collect();
    let mut versions = Vec::new();
    for task in tasks {
        versions.extend(timeout(LIMIT, task).await.unwrap().unwrap());
    }
    versions.sort_unstable();
    assert_eq!(versions, (1..=80).collect::<Vec<u64>>());
    let read: Vec<u64> = test.sets(NS, 0).await.iter().map(|set| set.version).collect();
    assert_eq!(read, versions);
}

async fn edits_of_one_selector_form_a_chain(test: TestStore) {
    let mut uow = test.begin().await;
    let id = add_selector(&mut uow, "orders").await;
    uow.commit().await.unwrap();
    let test = Arc::new(test);
    let tasks: Vec<_> = (0..20)
        .map(|n| {
            let (test, id) = (Arc::clone(&test), id.clone());
            tokio::spawn(async move {
                let mut uow = test.begin().await;
                let before =
                    conditioned::find_for_update::<Selector>(&mut uow, &id).await.unwrap().unwrap();
                let mut wanted = before.object.clone();
                wanted.name = Some(format!("orders {n}"));
                let path = format!("/{n}");
                selector::update(&mut uow, &wanted, &conditions(&[&path, "/x"])).await.unwrap();
                let after = conditioned::find::<Selector>(&mut uow, &id).await.unwrap().unwrap();
                uow.record(
                    Change::new(NS, Group::Selector, &*id, Operation::Update)
                        .before(&before.object)
                        .after(&after.object),
                );
                uow.commit().await.unwrap();
            })
        })
        .collect();
    for task in tasks {
        timeout(LIMIT, task).await.unwrap().unwrap();
    }
    let sets = test.sets(NS, 0).await;
    assert_eq!(sets.len(), 20);
    for pair in sets.windows(2) {
        assert_eq!(pair[0].rows[0].after, pair[1].rows[0].before, "version {}", pair[1].version);
    }
    let mut tx = test.store.read().await.unwrap();
    let last = conditioned::find::<Selector>(&mut tx, &id).await.unwrap().unwrap().object;
    let logged: Selector = serde_json::from_str(sets[19].rows[0].after.as_ref().unwrap()).unwrap();
    assert_eq!(logged, last);
    assert_eq!(last.conditions().len(), 2);
}

async fn edits_of_one_upstream_list_form_a_chain(test: TestStore) {
    let mut uow = test.begin().await;
    let id = add_selector(&mut uow, "orders").await;
    let handler = bind(&mut uow, &id, &[]).await;
    uow.commit().await.unwrap();
    let test = Arc::new(test);
    let tasks: Vec<_> = (0..20)
        .map(|n| {
            let (test, handler) = (Arc::clone(&test), handler.clone());
            tokio::spawn(async move {
                let mut uow = test.begin().await;
                let url = format!("127.0.0.1:{n}");
                upstream::insert(&mut uow, &handler, &[new_upstream(&url)]).await.unwrap();
                let binding = longmen_db::repository::binding::load(&mut uow, &handler)
                    .await
                    .unwrap()
                    .unwrap();
                binding.record_upstreams(&mut uow, &binding.upstreams.clone());
                uow.commit().await.unwrap();
            })
        })
        .collect();
    for task in tasks {
        timeout(LIMIT, task).await.unwrap().unwrap();
    }
    for (n, set) in test.sets(NS, 0).await.iter().enumerate() {
        let list: longmen_core::model::UpstreamList =
            serde_json::from_str(set.rows[0].after.as_ref().unwrap()).unwrap();
        assert_eq!(list.upstreams().len(), n + 1, "version {}", set.version);
    }
}

async fn a_rule_never_survives_its_selector(test: TestStore) {
    let test = Arc::new(test);
    for round in 0..10 {
        let mut uow = test.begin().await;
        let id = add_selector(&mut uow, "orders").await;
        uow.commit().await.unwrap();
        let adding = {
            let (test, id) = (Arc::clone(&test), id.clone());
            tokio::spawn(async move {
                let mut uow = test.begin().await;
                let rule_id = uow.next_id().unwrap();
                let rule = crate::support::new_rule(&rule_id, &id, "r", 1);
                rule::insert(&mut uow, &rule, &[]).await?;
                uow.record(any_change(NS, &rule_id));
                uow.commit().await.map(|_| rule_id)
            })
        };
        let mut uow = test.begin().await;
        let first = add_rule(&mut uow, &id, "first").await;
        let removed = selector::delete(&mut uow, &[&id]).await.unwrap();
        removed.record(&mut uow);
        uow.commit().await.unwrap();
        let added = timeout(LIMIT, adding).await.unwrap().unwrap();
        let ids: Vec<&str> = removed.rules.iter().map(|rule| rule.id.as_str()).collect();
        assert!(ids.contains(&first.as_str()));
        // Either it came before and went with the selector, or it was refused.
        match added {
            Ok(rule_id) => assert!(ids.contains(&rule_id.as_str()), "round {round}"),
            Err(error) => {
                assert!(matches!(error, Error::Reference { .. }), "{error}");
            }
        }
    }
    let mut tx = test.store.read().await.unwrap();
    assert!(current_version(&mut tx, NS).await.unwrap() >= 10);
}

/// The twin of the above for bindings: the selector is deleted while it is being bound.
async fn a_binding_never_survives_its_selector(test: TestStore) {
    let test = Arc::new(test);
    let mut uow = test.begin().await;
    let id = add_selector(&mut uow, "orders").await;
    uow.commit().await.unwrap();
    let mut binding = test.begin().await;
    let handler = bind(&mut binding, &id, &["127.0.0.1:1"]).await;
    let deleting = tokio::spawn({
        let test = Arc::clone(&test);
        async move {
            let mut uow = test.begin().await;
            let removed = selector::delete(&mut uow, &[&id]).await.unwrap();
            removed.record(&mut uow);
            uow.commit().await.unwrap();
            removed
        }
    });
    test.somebody_waits().await;
    binding.commit().await.unwrap();
    let removed = timeout(LIMIT, deleting).await.unwrap().unwrap();
    assert_eq!(removed.bindings.len(), 1, "told to gateways");
    assert_eq!(test.mentions(&handler).await, [], "no handler and no upstream is left");
}

async fn a_binding_never_survives_its_raw_port(test: TestStore) {
    let test = Arc::new(test);
    let mut uow = test.begin().await;
    let id = proxy_selector::insert(&mut uow, &new_port()).await.unwrap();
    uow.commit().await.unwrap();
    let mut binding = test.begin().await;
    let handler = bind_port(&mut binding, &id, &["127.0.0.1:1"]).await.unwrap();
    let deleting = tokio::spawn({
        let (test, id) = (Arc::clone(&test), id.clone());
        async move {
            let mut uow = test.begin().await;
            let removed = proxy_selector::delete(&mut uow, &[&id]).await.unwrap();
            uow.commit().await.unwrap();
            removed
        }
    });
    test.somebody_waits().await;
    binding.commit().await.unwrap();
    assert_eq!(timeout(LIMIT, deleting).await.unwrap().unwrap().len(), 1, "told to gateways");
    assert_eq!(test.mentions(&handler).await, []);

    // The other way round: there is nothing left to bind.
    let mut uow = test.begin().await;
    let refused = bind_port(&mut uow, &id, &[]).await.unwrap_err();
    assert!(refused.to_string().contains(&format!("raw port {id} does not exist")), "{refused}");
}

async fn a_selector_that_goes_is_not_bound(test: TestStore) {
    let test = Arc::new(test);
    let mut uow = test.begin().await;
    let id = add_selector(&mut uow, "orders").await;
    uow.commit().await.unwrap();
    let mut deleting = test.begin().await;
    selector::delete(&mut deleting, &[&id]).await.unwrap();
    let binding = tokio::spawn({
        let (test, id) = (Arc::clone(&test), id.clone());
        async move {
            let mut uow = test.begin().await;
            crate::bindings::try_bind(&mut uow, &id, &[]).await
        }
    });
    test.somebody_waits().await;
    deleting.commit().await.unwrap();
    let refused = timeout(LIMIT, binding).await.unwrap().unwrap().unwrap_err();
    assert!(matches!(refused, Error::Reference { .. }), "{refused}");
    assert!(refused.to_string().contains(&format!("selector {id} does not exist")), "{refused}");
}
