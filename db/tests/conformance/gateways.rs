//! Gateways of all admins.

use longmen_db::Store;
use longmen_db::repository::gateway::{
    self, GatewayFilter, GatewayRow, InForceRow, admin_leaves, admin_lives,
};

use crate::support::{NS, TestStore, actor, on_both_stores};

on_both_stores!(
    gateways_are_listed_and_counted,
    a_late_word_about_an_old_session_changes_nothing,
    the_gateways_of_an_admin_that_leaves_are_gone,
    those_that_are_gone_are_forgotten,
);

fn row(store: &Store, id: &str, session: i64) -> GatewayRow {
    GatewayRow {
        id: id.to_owned(),
        session,
        admin_id: store.process_id().to_owned(),
        admin_name: "admin-1:9095".to_owned(),
        namespace_id: NS.to_owned(),
        host: "10.0.0.1".to_owned(),
        port: Some(9195),
        kind: "longmen".to_owned(),
        transport: "websocket".to_owned(),
        connected: true,
        since_ms: 1,
        epoch: Some("e".to_owned()),
        version: Some(7),
        in_force_ms: Some(2),
        heard_ms: 3,
        info: None,
        faults: "[]".to_owned(),
    }
}

async fn put(store: &Store, rows: &[GatewayRow]) {
    let mut uow = store.begin(actor()).await.unwrap();
    admin_lives(&mut uow, "admin-1:9095", 1).await.unwrap();
    gateway::put(&mut uow, rows).await.unwrap();
    uow.commit().await.unwrap();
}

async fn listed(store: &Store, filter: &GatewayFilter) -> Vec<GatewayRow> {
    gateway::list(&mut store.read().await.unwrap(), filter, 0, 500).await.unwrap().0
}

async fn gateways_are_listed_and_counted(test: TestStore) {
    let store = &test.store;
    let all = GatewayFilter::default();
    put(store, &[]).await;
    assert!(listed(store, &all).await.is_empty());
    // More than one statement takes.
    let many: Vec<GatewayRow> = (0..100)
        .map(|n| GatewayRow {
            host: format!("10.0.1.{n:03}"),
            ..row(store, &format!("g{n:03}"), 0)
        })
        .collect();
    put(store, &many).await;
    let stock = GatewayRow {
        kind: "stock".to_owned(),
        epoch: None,
        version: None,
        in_force_ms: None,
        ..row(store, "s", 0)
    };
    put(store, std::slice::from_ref(&stock)).await;
    let mut expected = vec![stock];
    expected.extend(many);
    assert_eq!(listed(store, &all).await, expected);

    let mut tx = store.read().await.unwrap();
    let (part, total) = gateway::list(&mut tx, &all, 1, 2).await.unwrap();
    assert_eq!((part, total), (expected[1..3].to_vec(), 101));
    let counted = gateway::in_force(&mut tx, Some(NS)).await.unwrap();
    let of = |epoch: Option<&str>, version, gateways| InForceRow {
        namespace_id: NS.to_owned(),
        epoch: epoch.map(str::to_owned),
        version,
        gateways,
    };
    assert_eq!(counted.len(), 2);
    assert!(counted.contains(&of(Some("e"), Some(7), 100)) && counted.contains(&of(None, None, 1)));
    drop(tx);
    let none = GatewayFilter { namespace_id: Some("other".to_owned()), ..all };
    assert!(listed(store, &none).await.is_empty());
}

async fn a_late_word_about_an_old_session_changes_nothing(test: TestStore) {
    let store = &test.store;
    let all = GatewayFilter::default();
    put(store, &[row(store, "g", 4)]).await;
    let elsewhere = GatewayRow { admin_id: "another".to_owned(), ..row(store, "g", 4) };
    put(store, &[GatewayRow { version: Some(9), ..elsewhere.clone() }]).await;
    assert_eq!(listed(store, &all).await[0].version, Some(7), "the same session has one admin");
    put(store, &[GatewayRow { session: 5, version: Some(8), ..elsewhere }]).await;
    let late = GatewayRow { connected: false, ..row(store, "g", 4) };
    put(store, &[late]).await;
    let [now] = &listed(store, &all).await[..] else { panic!() };
    assert_eq!((now.session, now.version, now.admin_id.as_str()), (5, Some(8), "another"));
}

async fn the_gateways_of_an_admin_that_leaves_are_gone(test: TestStore) {
    let store = &test.store;
    put(store, &[row(store, "g", 0)]).await;
    let mut uow = store.begin(actor()).await.unwrap();
    admin_leaves(&mut uow, 99).await.unwrap();
    uow.commit().await.unwrap();
    let gone = GatewayFilter { connected: Some(false), ..GatewayFilter::default() };
    let [row] = &listed(store, &gone).await[..] else { panic!("it is gone") };
    assert_eq!((row.connected, row.since_ms), (false, 99));
}

async fn those_that_are_gone_are_forgotten(test: TestStore) {
    let store = &test.store;
    let all = GatewayFilter::default();
    let gone = |id: &str, host: &str| GatewayRow {
        connected: false,
        host: host.to_owned(),
        ..row(store, id, 0)
    };
    let orphan = GatewayRow { admin_id: "died".to_owned(), ..row(store, "orphan", 0) };
    let rows = [
        gone("a", "10.0.0.7"),
        gone("b", "10.0.0.8"),
        row(store, "c", 0),
        gone("d", "10.0.0.1"),
        orphan,
    ];
    put(store, &rows).await;
    let sweep = async |keep_ms, most| {
        let mut uow = store.begin(actor()).await.unwrap();
        let swept = gateway::sweep(&mut uow, 50, keep_ms, most).await.unwrap();
        uow.commit().await.unwrap();
        swept
    };
    // The orphan has the address of one that is connected, as has `d`.
    assert_eq!(sweep(60_000, 10).await, (1, 2));
    let ids = async || -> Vec<String> {
        listed(store, &all).await.into_iter().map(|row| row.id).collect()
    };
    assert_eq!(ids().await, ["c", "a", "b"]);
    assert_eq!(sweep(60_000, 1).await, (0, 1));
    assert_eq!(sweep(-1_000, 10).await, (0, 1), "whatever its age");
    assert_eq!(ids().await, ["c"]);
}
