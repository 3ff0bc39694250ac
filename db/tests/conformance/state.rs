//! The full state of a namespace.

use std::sync::Arc;
use std::time::Instant;

use longmen_core::model::{Rule, Selector};
use longmen_db::repository::{conditioned, namespace, rule, selector};
use longmen_db::{current_version, full_state};
use tokio::time::timeout;

use crate::bindings::bind;
use crate::support::{
    LIMIT, NS, TestStore, add_rule, add_selector, any_change, conditions, new_rule, new_selector,
    on_both_stores,
};

on_both_stores!(
    the_state_has_everything_of_its_namespace,
    the_state_belongs_to_its_version,
    ten_thousand_rules_are_read_at_once,
);

async fn the_state_has_everything_of_its_namespace(test: TestStore) {
    let mut uow = test.begin().await;
    namespace::insert(&mut uow, "ns-2", "two", "").await.unwrap();
    let id = add_selector(&mut uow, "orders").await;
    let rule_id = add_rule(&mut uow, &id, "r").await;
    let full = new_selector("full", "everything", 1);
    selector::insert(&mut uow, &full, &[]).await.unwrap();
    bind(&mut uow, &id, &["127.0.0.1:1"]).await;
    uow.record(any_change(NS, &id));
    uow.commit().await.unwrap();

    let mut tx = test.store.read().await.unwrap();
    let state = full_state(&mut tx, NS).await.unwrap();
    assert_eq!(state.version, 1);
    assert_eq!(state.epoch.len(), 32);
    assert_eq!(state.plugins.len(), 46);
    assert_eq!(state.plugins[0].name, "mock");
    let stored = conditioned::find::<Selector>(&mut tx, &id).await.unwrap().unwrap().object;
    assert_eq!(state.selectors, [stored, full], "by id; no list where there is no condition");
    let stored = conditioned::find::<Rule>(&mut tx, &rule_id).await.unwrap().unwrap().object;
    assert_eq!(state.rules, [stored]);
    assert_eq!(state.metadata, []);
    assert_eq!(state.bindings.len(), 1);
    assert_eq!(state.bindings[0].upstreams.upstreams().len(), 1);

    let empty = full_state(&mut tx, "ns-2").await.unwrap();
    assert_eq!((empty.version, empty.plugins.len(), empty.rules.len()), (0, 0, 0));
    assert_eq!(empty.epoch, state.epoch);
}

/// A reader in the middle of writes sees as many rules as its version says.
async fn the_state_belongs_to_its_version(test: TestStore) {
    let mut uow = test.begin().await;
    let id = add_selector(&mut uow, "orders").await;
    uow.commit().await.unwrap();
    let test = Arc::new(test);
    let writer = {
        let test = Arc::clone(&test);
        tokio::spawn(async move {
            for n in 0..40 {
                let mut uow = test.begin().await;
                let rule = add_rule(&mut uow, &id, &format!("r{n}")).await;
                uow.record(any_change(NS, &rule));
                uow.commit().await.unwrap();
            }
        })
    };
    let mut seen = 0;
    while seen < 40 {
        let mut tx = test.store.read().await.unwrap();
        let first = current_version(&mut tx, NS).await.unwrap();
        let state = timeout(LIMIT, full_state(&mut tx, NS)).await.unwrap().unwrap();
        assert_eq!(state.version, first);
        assert_eq!(state.rules.len(), usize::try_from(state.version).unwrap());
        assert!(state.rules.iter().all(|rule| rule.conditions().len() == 2));
        seen = state.version;
    }
    timeout(LIMIT, writer).await.unwrap().unwrap();
}

async fn ten_thousand_rules_are_read_at_once(test: TestStore) {
    let mut uow = test.begin().await;
    for s in 0..100 {
        let id = format!("s{s:03}");
        let selector = new_selector(&id, &id, 1);
        selector::insert(&mut uow, &selector, &conditions(&["/s"])).await.unwrap();
        for r in 0..100 {
            let rule = new_rule(&format!("{id}-{r:03}"), &id, "r", r);
            rule::insert(&mut uow, &rule, &conditions(&["/a"])).await.unwrap();
        }
    }
    uow.commit().await.unwrap();
    let start = Instant::now();
    let mut tx = test.store.read().await.unwrap();
    let state = full_state(&mut tx, NS).await.unwrap();
    let took = start.elapsed();
    assert_eq!((state.selectors.len(), state.rules.len()), (100, 10_000));
    println!("{}: 10,000 rules read in {took:?}", test.store.kind());
    // A bound that only statements per rule would break.
    assert!(took.as_secs() < 5, "{took:?}");
}
