//! Instances that say that they are alive.

use longmen_db::Store;
use longmen_db::repository::instance::{self, Farewell, InstanceAges, InstanceCounts, InstanceKey};

use crate::support::{NS, TestStore, actor, on_both_stores};

on_both_stores!(
    an_instance_is_stored_once_and_keeps_its_first_words,
    states_follow_the_age_of_the_last_word,
    farewells_are_remembered_for_a_while,
);

fn key(port: &str, kind: &str) -> InstanceKey {
    InstanceKey {
        namespace_id: NS.to_owned(),
        ip: "10.0.0.1".to_owned(),
        port: port.to_owned(),
        kind: kind.to_owned(),
    }
}

async fn beat(store: &Store, beats: &[(InstanceKey, String)]) {
    let mut uow = store.begin(actor()).await.unwrap();
    instance::beat(&mut uow, beats).await.unwrap();
    uow.commit().await.unwrap();
}

async fn an_instance_is_stored_once_and_keeps_its_first_words(test: TestStore) {
    let store = &test.store;
    let many: Vec<_> = (0..150).map(|n| (key(&n.to_string(), "client"), "{}".to_owned())).collect();
    beat(store, &many).await;
    beat(
        store,
        &[(key("0", "client"), "later".to_owned()), (key("0", "bootstrap"), "b".to_owned())],
    )
    .await;
    let mut tx = store.read().await.unwrap();
    let all = instance::list(&mut tx, NS, None, None, None).await.unwrap();
    assert_eq!(all.len(), 151);
    let of_port = instance::list(&mut tx, NS, Some("client"), None, Some("0")).await.unwrap();
    let [row] = &of_port[..] else { panic!("{of_port:?}") };
    assert_eq!((row.instance_info.as_str(), row.instance_state), ("{}", 1));
    assert!(instance::list(&mut tx, "other", None, None, None).await.unwrap().is_empty());
    let beating = instance::beating(&mut tx, 20_000).await.unwrap();
    assert_eq!(beating.len(), 150, "gateways are not meant");
    assert!(beating.contains(&(NS.to_owned(), "10.0.0.1:7".to_owned())));
}

async fn states_follow_the_age_of_the_last_word(test: TestStore) {
    let store = &test.store;
    beat(store, &[(key("1", "client"), String::new())]).await;
    let age = async |offline_ms, deleted_ms, forgotten_ms| {
        let mut uow = store.begin(actor()).await.unwrap();
        let ages = InstanceAges { offline_ms, deleted_ms, forgotten_ms };
        instance::age(&mut uow, ages, 60_000).await.unwrap();
        uow.commit().await.unwrap();
        let mut tx = store.read().await.unwrap();
        instance::count(&mut tx, Some(NS)).await.unwrap()
    };
    let counts = |deleted, online, offline| InstanceCounts { deleted, online, offline };
    const LONG: i64 = 3_600_000;
    // Ages below zero: whatever the clock of the database says, the word is older.
    assert_eq!(age(LONG, LONG, LONG).await, counts(0, 1, 0));
    assert_eq!(age(-LONG, LONG, LONG).await, counts(0, 0, 1));
    assert_eq!(age(-LONG, -LONG, LONG).await, counts(1, 0, 0));
    beat(store, &[(key("1", "client"), String::new())]).await;
    assert_eq!(age(LONG, LONG, LONG).await, counts(0, 1, 0), "it is back");
    assert_eq!(age(LONG, LONG, -LONG).await, counts(0, 0, 0));
    let trend = instance::trend(&mut store.read().await.unwrap()).await.unwrap();
    assert!((1..=5).contains(&trend.len()), "{trend:?}");
    assert_eq!(trend.last(), Some(&counts(0, 0, 0)));
}

async fn farewells_are_remembered_for_a_while(test: TestStore) {
    let store = &test.store;
    let one = Farewell { namespace_id: NS, plugin: "divide", selector: "/a", url: "10.0.0.1:1" };
    let other = Farewell { selector: "/b", ..one };
    for _ in 0..2 {
        let mut uow = store.begin(actor()).await.unwrap();
        instance::say_farewell(&mut uow, one).await.unwrap();
        uow.commit().await.unwrap();
    }
    let said = async |farewell, within_ms| {
        let mut tx = store.read().await.unwrap();
        instance::said_farewell(&mut tx, farewell, within_ms).await.unwrap()
    };
    assert!(said(one, 60_000).await);
    assert!(!said(other, 60_000).await && !said(one, -60_000).await);
    let mut uow = store.begin(actor()).await.unwrap();
    instance::forget_farewell(&mut uow, one).await.unwrap();
    uow.commit().await.unwrap();
    assert!(!said(one, 60_000).await);
}
