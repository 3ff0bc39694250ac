//! Rules.

use longmen_core::model::{Level, Rule};
use longmen_db::repository::conditioned::{self, ObjectFilter};
use longmen_db::repository::{data_permission, rule};
use longmen_db::{Error, Keyword, PageRequest};

use crate::support::{
    NS, TestStore, add_rule, add_selector, condition, conditions, new_rule, on_both_stores,
};

on_both_stores!(
    rules_are_stored_found_and_listed,
    an_edit_replaces_all_but_the_namespace,
    a_delete_takes_conditions_and_grants_along,
    a_rule_needs_its_selector,
);

async fn rules_are_stored_found_and_listed(test: TestStore) {
    let mut uow = test.begin().await;
    let s1 = add_selector(&mut uow, "s1").await;
    let s2 = add_selector(&mut uow, "s2").await;
    let stored = Rule {
        match_mode: 1,
        logged: true,
        match_restful: true,
        handle: Some(r#"{"retry":3}"#.to_owned()),
        ..new_rule("10", &s1, "first", 2)
    };
    rule::insert(&mut uow, &stored, &conditions(&["/z", "/a"])).await.unwrap();
    rule::insert(&mut uow, &new_rule("11", &s1, "second", 1), &[]).await.unwrap();
    rule::insert(&mut uow, &new_rule("12", &s2, "third", 1), &[]).await.unwrap();
    data_permission::grant(&mut uow, "1", Level::Rule, "12").await.unwrap();
    uow.commit().await.unwrap();

    let mut tx = test.store.read().await.unwrap();
    let found = conditioned::find::<Rule>(&mut tx, "10").await.unwrap().unwrap();
    let expected = Rule { condition_list: Some(vec![condition("/z"), condition("/a")]), ..stored };
    assert_eq!(found.object, expected);
    assert!(conditioned::find::<Rule>(&mut tx, "nope").await.unwrap().is_none());
    let rows = conditioned::conditions::<Rule>(&mut tx, "10").await.unwrap();
    assert_eq!((rows.len(), rows[0].owner_id.as_str()), (2, "10"));
    assert_eq!(conditioned::find_many::<Rule>(&mut tx, &["12", "10", "x"]).await.unwrap().len(), 2);
    let of: Vec<String> = conditioned::of_owners::<Rule>(&mut tx, &[&s1])
        .await
        .unwrap()
        .into_iter()
        .map(|row| row.object.id)
        .collect();
    assert_eq!(of, ["11", "10"]);

    let list = async |tx: &mut longmen_db::ReadTx, filter: ObjectFilter| {
        let page = conditioned::page::<Rule>(tx, &filter, PageRequest::new(1, 12)).await.unwrap();
        assert_eq!(usize::try_from(page.total).unwrap(), page.rows.len());
        page.rows.into_iter().map(|row| row.object.id).collect::<Vec<_>>()
    };
    assert_eq!(list(&mut tx, ObjectFilter::default()).await, ["11", "12", "10"]);
    let filter = ObjectFilter { owner_ids: vec![s1], ..ObjectFilter::default() };
    assert_eq!(list(&mut tx, filter).await, ["11", "10"]);
    let filter = ObjectFilter { keyword: Keyword::parse("i!th"), ..ObjectFilter::default() };
    assert_eq!(list(&mut tx, filter).await, ["10"]);
    let filter = ObjectFilter { enabled: Some(false), ..ObjectFilter::default() };
    assert_eq!(list(&mut tx, filter).await, [""; 0]);
    let filter = ObjectFilter { granted_to: Some("1".to_owned()), ..ObjectFilter::default() };
    assert_eq!(list(&mut tx, filter).await, ["12"]);
    let filter = ObjectFilter { namespace_id: Some("other".to_owned()), ..ObjectFilter::default() };
    assert_eq!(list(&mut tx, filter).await, [""; 0]);
}

async fn an_edit_replaces_all_but_the_namespace(test: TestStore) {
    let mut uow = test.begin().await;
    let selector = add_selector(&mut uow, "s").await;
    let other = add_selector(&mut uow, "t").await;
    let id = add_rule(&mut uow, &selector, "r").await;
    uow.commit().await.unwrap();
    test.clock.forward(3);

    let mut uow = test.begin().await;
    let before = conditioned::find_for_update::<Rule>(&mut uow, &id).await.unwrap().unwrap();
    let wanted = Rule {
        name: Some("r2".to_owned()),
        enabled: false,
        handle: None,
        condition_list: None,
        selector_id: other.clone(),
        ..before.object.clone()
    };
    let elsewhere = Rule { namespace_id: Some("other".to_owned()), ..wanted.clone() };
    assert_eq!(rule::update(&mut uow, &elsewhere, &[]).await.unwrap(), 0);
    assert_eq!(
        conditioned::find::<Rule>(&mut uow, &id).await.unwrap().unwrap(),
        before,
        "untouched"
    );
    assert_eq!(rule::update(&mut uow, &wanted, &conditions(&["/c"])).await.unwrap(), 1);
    assert_eq!(conditioned::set_enabled::<Rule>(&mut uow, &[&*id, "nope"], true).await.unwrap(), 1);
    uow.commit().await.unwrap();

    let mut tx = test.store.read().await.unwrap();
    let after = conditioned::find::<Rule>(&mut tx, &id).await.unwrap().unwrap();
    let expected = Rule {
        enabled: true,
        condition_list: Some(vec![condition("/c")]),
        selector_id: other,
        ..wanted
    };
    assert_eq!(after.object, expected);
    assert_eq!((after.created_ms, after.updated_ms), (before.created_ms, before.created_ms + 3));
}

async fn a_delete_takes_conditions_and_grants_along(test: TestStore) {
    let mut uow = test.begin().await;
    let selector = add_selector(&mut uow, "s").await;
    let id = add_rule(&mut uow, &selector, "r").await;
    data_permission::grant(&mut uow, "1", Level::Rule, &id).await.unwrap();
    let gone = rule::delete(&mut uow, &[&*id, "nope"]).await.unwrap();
    assert_eq!((gone.len(), gone[0].conditions().len()), (1, 2));
    uow.commit().await.unwrap();
    assert_eq!(test.mentions(&id).await, []);
}

async fn a_rule_needs_its_selector(test: TestStore) {
    let mut uow = test.begin().await;
    let refused = rule::insert(&mut uow, &new_rule("1", "nope", "r", 1), &[]).await.unwrap_err();
    assert!(matches!(refused, Error::Reference { .. }), "{refused}");
    drop(uow);
    let mut uow = test.begin().await;
    assert_eq!(conditioned::find_many_for_update::<Rule>(&mut uow, &["nope"]).await.unwrap(), []);
    assert!(conditioned::find_for_update::<Rule>(&mut uow, NS).await.unwrap().is_none());
}
