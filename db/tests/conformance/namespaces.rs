//! Namespaces and who works in them.

use longmen_db::repository::namespace::{self, NamespaceFilter};
use longmen_db::repository::namespace_plugin;
use longmen_db::{Error, Like, PageRequest};

use crate::support::{NS, TestStore, add_rule, add_selector, on_both_stores};

on_both_stores!(
    namespaces_are_stored_found_and_listed,
    members_narrow_the_list,
    what_holds_something_is_not_deleted,
);

async fn namespaces_are_stored_found_and_listed(test: TestStore) {
    let mut uow = test.begin().await;
    let row = namespace::insert(&mut uow, "ns-2", "Billing", "b").await.unwrap();
    assert_eq!(namespace::update(&mut uow, "ns-2", "Billing 2", "c").await.unwrap(), 1);
    assert_eq!(namespace::update(&mut uow, "nope", "x", "y").await.unwrap(), 0);
    uow.commit().await.unwrap();

    let mut tx = test.store.read().await.unwrap();
    let found = namespace::find(&mut tx, "ns-2").await.unwrap().unwrap();
    assert_eq!((found.name.as_str(), found.description.as_str()), ("Billing 2", "c"));
    let by_row = namespace::find_many_by_row_id(&mut tx, &[&*row.id, "nope"]).await.unwrap();
    assert_eq!(by_row.len(), 1);
    let filter = NamespaceFilter { name: Like::contains("bill"), ..NamespaceFilter::default() };
    let page = namespace::page(&mut tx, &filter, PageRequest::new(1, 12)).await.unwrap();
    assert_eq!((page.total, page.rows[0].namespace_id.as_str()), (1, "ns-2"));
    let filter =
        NamespaceFilter { namespace_id: Some(NS.to_owned()), ..NamespaceFilter::default() };
    assert_eq!(namespace::list(&mut tx, &filter).await.unwrap().len(), 1);
    assert_eq!(namespace::list(&mut tx, &NamespaceFilter::default()).await.unwrap().len(), 2);
    drop(tx);

    let mut uow = test.begin().await;
    let taken = namespace::insert(&mut uow, "ns-2", "again", "").await.unwrap_err();
    assert!(taken.is_unique_violation(), "{taken}");
}

async fn members_narrow_the_list(test: TestStore) {
    let mut uow = test.begin().await;
    namespace::insert(&mut uow, "ns-2", "two", "").await.unwrap();
    namespace::add_member(&mut uow, "ns-2", "1").await.unwrap();
    namespace::add_member(&mut uow, "ns-2", "1").await.unwrap();
    uow.commit().await.unwrap();

    let mut tx = test.store.read().await.unwrap();
    assert!(namespace::is_member(&mut tx, "ns-2", "1").await.unwrap());
    assert!(!namespace::is_member(&mut tx, NS, "1").await.unwrap());
    let filter = NamespaceFilter { member: Some("1".to_owned()), ..NamespaceFilter::default() };
    let page = namespace::page(&mut tx, &filter, PageRequest::new(1, 12)).await.unwrap();
    assert_eq!((page.total, page.rows[0].namespace_id.as_str()), (1, "ns-2"));
}

async fn what_holds_something_is_not_deleted(test: TestStore) {
    let mut uow = test.begin().await;
    let row = namespace::insert(&mut uow, "ns-2", "two", "").await.unwrap();
    let link = namespace_plugin::link(&mut uow, "ns-2", "5").await.unwrap();
    namespace::add_member(&mut uow, "ns-2", "1").await.unwrap();
    let selector = add_selector(&mut uow, "s").await;
    add_rule(&mut uow, &selector, "r").await;
    uow.commit().await.unwrap();

    let mut tx = test.store.read().await.unwrap();
    let contents = namespace::contents(&mut tx, "ns-2").await.unwrap();
    assert_eq!((contents.plugins, contents.selectors, contents.rules), (1, 0, 0));
    let contents = namespace::contents(&mut tx, NS).await.unwrap();
    assert_eq!((contents.plugins, contents.selectors, contents.rules), (46, 1, 1));
    drop(tx);

    let mut uow = test.begin().await;
    let refused = namespace::delete(&mut uow, &[&*row.id]).await.unwrap_err();
    assert!(matches!(refused, Error::Reference { .. }), "{refused}");
    drop(uow);

    let mut uow = test.begin().await;
    namespace_plugin::delete(&mut uow, &[&link]).await.unwrap();
    assert_eq!(namespace::delete(&mut uow, &[&*row.id, "nope"]).await.unwrap(), 1);
    uow.commit().await.unwrap();
    assert_eq!(test.mentions("ns-2").await, []);
}
