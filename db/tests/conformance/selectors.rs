//! Selectors and everything that goes with them.

use longmen_core::model::{Level, Selector};
use longmen_core::sync::{Event, Group};
use longmen_db::repository::conditioned::{self, ObjectFilter};
use longmen_db::repository::user::{self, NewUser};
use longmen_db::repository::{NewCondition, binding, data_permission, namespace, selector};
use longmen_db::{Error, Keyword, Operation, PageRequest};

use crate::bindings::bind;
use crate::support::{
    NS, TestStore, add_rule, add_selector, condition, conditions, new_selector, on_both_stores,
};

on_both_stores!(
    selectors_are_stored_found_and_listed,
    an_edit_replaces_all_but_the_namespace,
    ids_of_conditions_are_kept_where_given,
    a_delete_leaves_no_row_behind,
    a_new_object_is_granted_as_the_reference_does,
    a_selector_needs_its_plugin_and_namespace,
);

async fn selectors_are_stored_found_and_listed(test: TestStore) {
    let mut uow = test.begin().await;
    let stored = Selector {
        match_mode: 1,
        continued: false,
        match_restful: true,
        handle: None,
        ..new_selector("10", "first", 2)
    };
    selector::insert(&mut uow, &stored, &conditions(&["/z", "/a"])).await.unwrap();
    selector::insert(&mut uow, &new_selector("11", "second", 1), &[]).await.unwrap();
    let rewrite = Selector {
        plugin_id: Some("3".to_owned()),
        enabled: false,
        ..new_selector("12", "third", 1)
    };
    selector::insert(&mut uow, &rewrite, &[]).await.unwrap();
    data_permission::grant(&mut uow, "1", Level::Selector, "11").await.unwrap();
    uow.commit().await.unwrap();

    let mut tx = test.store.read().await.unwrap();
    let found = conditioned::find::<Selector>(&mut tx, "10").await.unwrap().unwrap();
    let expected =
        Selector { condition_list: Some(vec![condition("/z"), condition("/a")]), ..stored };
    assert_eq!(found.object, expected);
    assert!(conditioned::find::<Selector>(&mut tx, "nope").await.unwrap().is_none());
    assert_eq!(
        conditioned::find::<Selector>(&mut tx, "12").await.unwrap().unwrap().object.plugin_name,
        "rewrite"
    );
    assert_eq!(
        conditioned::find_many::<Selector>(&mut tx, &["11", "10", "x"]).await.unwrap().len(),
        2
    );
    let of: Vec<String> = selector::of_plugin(&mut tx, NS, "5")
        .await
        .unwrap()
        .into_iter()
        .map(|row| row.object.id)
        .collect();
    assert_eq!(of, ["11", "10"]);

    let list = async |tx: &mut longmen_db::ReadTx, filter: ObjectFilter| {
        let page =
            conditioned::page::<Selector>(tx, &filter, PageRequest::new(1, 12)).await.unwrap();
        assert_eq!(usize::try_from(page.total).unwrap(), page.rows.len());
        page.rows.into_iter().map(|row| row.object.id).collect::<Vec<_>>()
    };
    assert_eq!(list(&mut tx, ObjectFilter::default()).await, ["11", "12", "10"]);
    let plugins = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    let filter = ObjectFilter { owner_ids: plugins(&["5", "9"]), ..ObjectFilter::default() };
    assert_eq!(list(&mut tx, filter).await, ["11", "10"]);
    let filter = ObjectFilter { keyword: Keyword::parse("i!th"), ..ObjectFilter::default() };
    assert_eq!(list(&mut tx, filter).await, ["10"]);
    let filter = ObjectFilter { enabled: Some(false), ..ObjectFilter::default() };
    assert_eq!(list(&mut tx, filter).await, ["12"]);
    let filter = ObjectFilter { granted_to: Some("1".to_owned()), ..ObjectFilter::default() };
    assert_eq!(list(&mut tx, filter).await, ["11"]);
    let filter = ObjectFilter { namespace_id: Some("other".to_owned()), ..ObjectFilter::default() };
    assert_eq!(list(&mut tx, filter).await, [""; 0]);
}

async fn an_edit_replaces_all_but_the_namespace(test: TestStore) {
    let mut uow = test.begin().await;
    let id = add_selector(&mut uow, "s").await;
    uow.commit().await.unwrap();
    test.clock.forward(3);

    let mut uow = test.begin().await;
    let before = conditioned::find_for_update::<Selector>(&mut uow, &id).await.unwrap().unwrap();
    let wanted = Selector {
        name: Some("s2".to_owned()),
        selector_type: 0,
        enabled: false,
        ..before.object.clone()
    };
    let elsewhere = Selector { namespace_id: Some("other".to_owned()), ..wanted.clone() };
    assert_eq!(selector::update(&mut uow, &elsewhere, &[]).await.unwrap(), 0);
    assert_eq!(
        conditioned::find::<Selector>(&mut uow, &id).await.unwrap().unwrap(),
        before,
        "untouched"
    );
    assert_eq!(selector::update(&mut uow, &wanted, &[]).await.unwrap(), 1);
    assert_eq!(
        conditioned::set_enabled::<Selector>(&mut uow, &[&*id, "nope"], true).await.unwrap(),
        1
    );
    assert_eq!(selector::set_handle(&mut uow, &id, Some("[{}]")).await.unwrap(), 1);
    assert_eq!(selector::set_handle(&mut uow, "nope", None).await.unwrap(), 0);
    uow.commit().await.unwrap();

    let mut tx = test.store.read().await.unwrap();
    let after = conditioned::find::<Selector>(&mut tx, &id).await.unwrap().unwrap();
    let expected = Selector {
        enabled: true,
        handle: Some("[{}]".to_owned()),
        condition_list: Some(Vec::new()),
        ..wanted
    };
    assert_eq!(after.object, expected);
    assert_eq!((after.created_ms, after.updated_ms), (before.created_ms, before.created_ms + 3));
}

async fn ids_of_conditions_are_kept_where_given(test: TestStore) {
    let mut uow = test.begin().await;
    let id = add_selector(&mut uow, "s").await;
    let kept = conditioned::conditions::<Selector>(&mut uow, &id).await.unwrap()[0].id.clone();
    let list = [
        NewCondition { id: None, condition: condition("/new") },
        NewCondition { id: Some(kept.clone()), condition: condition("/kept") },
    ];
    let wanted = new_selector(&id, "s", 1);
    selector::update(&mut uow, &wanted, &list).await.unwrap();
    let rows = conditioned::conditions::<Selector>(&mut uow, &id).await.unwrap();
    assert_eq!(rows[0].condition, condition("/new"));
    assert_eq!((&rows[1].id, &rows[1].condition), (&kept, &condition("/kept")));
    assert_ne!(rows[0].id, kept);
}

/// C-10: three rules with two conditions each, three upstreams, a grant; then the same name again.
async fn a_delete_leaves_no_row_behind(test: TestStore) {
    let mut uow = test.begin().await;
    let id = add_selector(&mut uow, "orders").await;
    let mut ids = vec![id.clone()];
    for n in 0..3 {
        ids.push(add_rule(&mut uow, &id, &format!("r{n}")).await);
    }
    ids.push(bind(&mut uow, &id, &["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"]).await);
    data_permission::grant(&mut uow, "1", Level::Selector, &id).await.unwrap();
    data_permission::grant(&mut uow, "1", Level::Rule, &ids[1]).await.unwrap();
    let bound = binding::find_of(&mut uow, binding::Bound::Selector(&id)).await.unwrap().unwrap();
    ids.push(bound.discovery.id);
    uow.commit().await.unwrap();

    let mut uow = test.begin().await;
    let removed = selector::delete(&mut uow, &[&*id, "nope"]).await.unwrap();
    assert_eq!(removed.selectors.len(), 1);
    assert_eq!(removed.selectors[0].conditions().len(), 1);
    assert_eq!(removed.rules.len(), 3);
    assert!(removed.rules.iter().all(|rule| rule.conditions().len() == 2));
    assert_eq!(removed.bindings[0].upstreams.upstreams().len(), 3);
    removed.record(&mut uow);
    uow.commit().await.unwrap();

    for gone in &ids {
        let left: Vec<_> = test
            .mentions(gone)
            .await
            .into_iter()
            .filter(|(table, _)| table != "config_change")
            .collect();
        assert_eq!(left, [], "{gone}");
    }
    let sets = test.sets(NS, 0).await;
    let log: Vec<_> =
        sets[0].rows.iter().map(|row| (row.group().unwrap(), row.operation, row.event)).collect();
    let deleted = |group| (group, Operation::Delete, Some(Event::Delete));
    assert_eq!(
        log,
        [
            deleted(Group::ProxySelector),
            deleted(Group::DiscoverUpstream),
            deleted(Group::Rule),
            deleted(Group::Rule),
            deleted(Group::Rule),
            deleted(Group::Selector),
        ]
    );
    assert!(sets[0].rows.iter().all(|row| row.before.is_some() && row.after.is_none()));

    let mut uow = test.begin().await;
    let again = add_selector(&mut uow, "orders").await;
    bind(&mut uow, &again, &["127.0.0.1:1"]).await;
    uow.commit().await.unwrap();
}

async fn a_new_object_is_granted_as_the_reference_does(test: TestStore) {
    let mut uow = test.begin().await;
    let mut users = Vec::new();
    for name in ["lina", "omar"] {
        let new = NewUser {
            user_name: name.to_owned(),
            password: "h".to_owned(),
            role: 1,
            enabled: true,
        };
        let id = user::insert(&mut uow, &new).await.unwrap();
        namespace::add_member(&mut uow, NS, &id).await.unwrap();
        users.push(id);
    }
    let [lina, omar] = &users[..] else { panic!() };
    // Without any grant of the creator: to everyone in the namespace.
    let kind = Level::Selector;
    data_permission::grant_created(&mut uow, lina, NS, kind, "a").await.unwrap();
    assert!(data_permission::is_granted(&mut uow, lina, kind, "a").await.unwrap());
    assert!(data_permission::is_granted(&mut uow, omar, kind, "a").await.unwrap());
    assert!(!data_permission::is_granted(&mut uow, omar, Level::Rule, "a").await.unwrap());
    // With one: to the creator alone.
    data_permission::grant_created(&mut uow, lina, NS, kind, "b").await.unwrap();
    assert_eq!(data_permission::granted(&mut uow, lina, kind).await.unwrap(), ["a", "b"]);
    assert_eq!(data_permission::granted(&mut uow, omar, kind).await.unwrap(), ["a"]);
    // In a namespace without users: to nobody.
    data_permission::grant_created(&mut uow, "1", "empty", kind, "c").await.unwrap();

    assert!(!data_permission::grant(&mut uow, lina, kind, "a").await.unwrap());
    assert!(data_permission::revoke(&mut uow, lina, kind, "a").await.unwrap());
    assert!(!data_permission::revoke(&mut uow, lina, kind, "a").await.unwrap());
    uow.commit().await.unwrap();
}

async fn a_selector_needs_its_plugin_and_namespace(test: TestStore) {
    for (plugin, namespace) in [("nope", NS), ("5", "nope")] {
        let mut uow = test.begin().await;
        let selector = Selector {
            plugin_id: Some(plugin.to_owned()),
            namespace_id: Some(namespace.to_owned()),
            ..new_selector("1", "s", 1)
        };
        let refused = selector::insert(&mut uow, &selector, &[]).await.unwrap_err();
        assert!(matches!(refused, Error::Reference { .. }), "{refused}");
    }
}
