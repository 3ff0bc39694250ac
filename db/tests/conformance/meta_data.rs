//! Metadata.

use longmen_core::model::MetaData;
use longmen_db::repository::meta_data;
use longmen_db::{Error, Like, PageRequest};

use crate::support::{NS, TestStore, on_both_stores};

on_both_stores!(
    descriptions_are_stored_found_and_listed,
    edits_keep_what_is_not_theirs,
    deletes_stay_in_their_namespace,
);

fn new(id: &str, path: &str, service: &str) -> MetaData {
    MetaData {
        id: id.to_owned(),
        app_name: Some("shop".to_owned()),
        path: path.to_owned(),
        rpc_type: "dubbo".to_owned(),
        service_name: Some(service.to_owned()),
        method_name: Some("find".to_owned()),
        parameter_types: None,
        rpc_ext: Some(r#"{"timeout":1000}"#.to_owned()),
        enabled: true,
        namespace_id: Some(NS.to_owned()),
        ..MetaData::default()
    }
}

async fn descriptions_are_stored_found_and_listed(test: TestStore) {
    let mut uow = test.begin().await;
    meta_data::insert(&mut uow, &new("1", "/shop/b", "S"), Some("text")).await.unwrap();
    meta_data::insert(&mut uow, &new("2", "/shop/a", "S"), None).await.unwrap();
    meta_data::insert(&mut uow, &new("3", "/other", "T"), None).await.unwrap();
    uow.commit().await.unwrap();

    let mut tx = test.store.read().await.unwrap();
    let row = meta_data::find(&mut tx, "1").await.unwrap().unwrap();
    assert_eq!(row.meta_data, new("1", "/shop/b", "S"));
    assert_eq!(row.path_desc.as_deref(), Some("text"));
    assert!(meta_data::find(&mut tx, "nope").await.unwrap().is_none());
    let by_path = meta_data::find_by_path(&mut tx, NS, "/other").await.unwrap().unwrap();
    assert_eq!(by_path.meta_data.id, "3");
    assert!(meta_data::find_by_path(&mut tx, "other", "/other").await.unwrap().is_none());

    let shop = Like::contains("SHOP");
    let page = meta_data::page(&mut tx, NS, shop.as_ref(), PageRequest::new(1, 1)).await.unwrap();
    assert_eq!((page.total, page.rows[0].meta_data.path.as_str()), (2, "/shop/a"));
    assert_eq!(meta_data::all(&mut tx).await.unwrap().len(), 3);
    assert_eq!(meta_data::models_of_namespace(&mut tx, NS).await.unwrap()[1].id, "2");
    drop(tx);

    let mut uow = test.begin().await;
    let taken = meta_data::insert(&mut uow, &new("4", "/other", "T"), None).await.unwrap_err();
    assert!(taken.is_unique_violation(), "{taken}");
    drop(uow);
    let mut uow = test.begin().await;
    let mut lost = new("4", "/x", "T");
    lost.namespace_id = Some("nowhere".to_owned());
    let refused = meta_data::insert(&mut uow, &lost, None).await.unwrap_err();
    assert!(matches!(refused, Error::Reference { .. }), "{refused}");
}

async fn edits_keep_what_is_not_theirs(test: TestStore) {
    let mut uow = test.begin().await;
    meta_data::insert(&mut uow, &new("1", "/a", "S"), None).await.unwrap();
    meta_data::insert(&mut uow, &new("2", "/b", "S"), None).await.unwrap();
    uow.commit().await.unwrap();
    test.clock.forward(5);

    let mut uow = test.begin().await;
    let wanted = MetaData { path: "/c".to_owned(), enabled: false, ..new("1", "/a", "S") };
    assert_eq!(meta_data::update(&mut uow, &wanted, Some("d")).await.unwrap(), 1);
    let elsewhere = MetaData { namespace_id: Some("other".to_owned()), ..wanted };
    assert_eq!(meta_data::update(&mut uow, &elsewhere, None).await.unwrap(), 0);
    assert_eq!(meta_data::set_rpc_ext(&mut uow, &["1", "2"], Some("{}")).await.unwrap(), 2);
    assert_eq!(meta_data::set_enabled(&mut uow, &["2", "nope"], false).await.unwrap(), 1);
    uow.commit().await.unwrap();

    let mut tx = test.store.read().await.unwrap();
    let row = meta_data::find(&mut tx, "1").await.unwrap().unwrap();
    assert_eq!((row.meta_data.path.as_str(), row.path_desc.as_deref()), ("/c", Some("d")));
    assert!(row.meta_data.enabled, "an edit does not switch");
    assert_eq!(row.meta_data.rpc_ext.as_deref(), Some("{}"));
    assert_eq!(row.updated_ms - row.created_ms, 5);
    assert!(!meta_data::find(&mut tx, "2").await.unwrap().unwrap().meta_data.enabled);
}

async fn deletes_stay_in_their_namespace(test: TestStore) {
    let mut uow = test.begin().await;
    meta_data::insert(&mut uow, &new("1", "/a", "S"), None).await.unwrap();
    assert_eq!(meta_data::delete(&mut uow, "other", &["1"]).await.unwrap(), []);
    assert_eq!(meta_data::delete(&mut uow, NS, &["1", "nope"]).await.unwrap().len(), 1);
    uow.commit().await.unwrap();
    assert_eq!(test.mentions("/a").await, []);
}
