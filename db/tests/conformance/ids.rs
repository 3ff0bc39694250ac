//! Ids and the lease of their node part.

use std::collections::HashSet;

use longmen_db::Error;

use crate::support::{NOON_MS, TestStore, actor, on_both_stores};

/// Bits of an id below the time.
const NODE_AND_SEQUENCE: u32 = 22;

on_both_stores!(
    ids_tell_their_time_and_ascend,
    a_lease_is_renewed_and_a_lost_one_replaced,
    an_old_transaction_makes_no_ids,
);

fn node_of(id: &str) -> i64 {
    (id.parse::<i64>().unwrap() >> 12) & 1023
}

async fn ids_tell_their_time_and_ascend(test: TestStore) {
    let uow = test.begin().await;
    let ids: Vec<i64> = (0..10_000).map(|_| uow.next_id().unwrap().parse().unwrap()).collect();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!((ids[0] >> NODE_AND_SEQUENCE) + 1_288_834_974_657, NOON_MS);
}

/// Half an hour before its end a lease is renewed; after its end the number may be another's.
async fn a_lease_is_renewed_and_a_lost_one_replaced(test: TestStore) {
    let node = |id: longmen_db::Result<String>| node_of(&id.unwrap());
    let first = node(test.begin().await.next_id());
    test.clock.forward(40 * 60 * 1000);
    assert_eq!(node(test.begin().await.next_id()), first, "renewed");
    test.clock.forward(3 * 60 * 60 * 1000);
    assert_eq!(node(test.begin().await.next_id()), first, "nobody else wanted it");
    test.store.close().await;

    // The number given back is the last in the queue.
    let next = test.other().await;
    let second = node(next.begin(actor()).await.unwrap().next_id());
    assert_ne!(second, first);
    next.close().await;
}

async fn an_old_transaction_makes_no_ids(test: TestStore) {
    let uow = test.begin().await;
    test.clock.forward(61 * 60 * 1000);
    let error = uow.next_id().unwrap_err();
    assert!(matches!(error, Error::NodeLeaseOver), "{error}");
}

#[tokio::test]
async fn admins_that_share_a_database_never_share_a_node() {
    let test = TestStore::postgres().await;
    let mut nodes = HashSet::from([node_of(&test.begin().await.next_id().unwrap())]);
    let mut stores = Vec::new();
    for _ in 0..4 {
        stores.push(test.other().await);
    }
    let begun = tokio::join!(
        stores[0].begin(actor()),
        stores[1].begin(actor()),
        stores[2].begin(actor()),
        stores[3].begin(actor()),
    );
    for uow in [begun.0, begun.1, begun.2, begun.3] {
        nodes.insert(node_of(&uow.unwrap().next_id().unwrap()));
    }
    assert_eq!(nodes.len(), 5);

    // One whose lease ran out while another took its number gets a new one.
    test.clock.forward(2 * 60 * 60 * 1000);
    let taken = test.other().await;
    let mut held = HashSet::new();
    for _ in 0..1 {
        held.insert(node_of(&taken.begin(actor()).await.unwrap().next_id().unwrap()));
    }
    for store in stores.iter().chain([&test.store]) {
        held.insert(node_of(&store.begin(actor()).await.unwrap().next_id().unwrap()));
    }
    assert_eq!(held.len(), 6);
}
