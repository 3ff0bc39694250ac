//! Objects written to the store as the REST handlers write them: the rows, and what is recorded.

use longmen_admin::RunningAdmin;
use longmen_core::model::{DEFAULT_NAMESPACE, Rule, Selector};
use longmen_core::sync::{Event, Group};
use longmen_db::repository::{rule, selector};
use longmen_db::{Actor, Change, Operation, Store, UnitOfWork};

/// Begins a unit of work on an admin's store.
pub(crate) async fn begin(admin: &RunningAdmin) -> UnitOfWork {
    begin_in(admin.state().store()).await
}

pub(crate) async fn begin_in(store: &Store) -> UnitOfWork {
    store.begin(Actor::system()).await.unwrap()
}

/// Commits, and returns the version that the default namespace then has.
pub(crate) async fn commit(uow: UnitOfWork) -> u64 {
    let versions = uow.commit().await.unwrap();
    versions.iter().find(|new| new.namespace_id == DEFAULT_NAMESPACE).unwrap().version
}

fn change(group: Group, id: &str, operation: Operation) -> Change {
    let event = if operation == Operation::Delete { Event::Delete } else { Event::Update };
    Change::new(DEFAULT_NAMESPACE, group, id, operation).stock_event(event)
}

/// Adds a selector of divide without conditions.
pub(crate) async fn add_selector(uow: &mut UnitOfWork, name: &str) -> Selector {
    let selector = Selector {
        plugin_id: Some("5".into()),
        plugin_name: "divide".into(),
        id: uow.next_id().unwrap(),
        name: Some(name.into()),
        enabled: true,
        sort: Some(1),
        handle: Some("[]".into()),
        condition_list: Some(Vec::new()),
        namespace_id: Some(DEFAULT_NAMESPACE.into()),
        ..Selector::default()
    };
    selector::insert(uow, &selector, &[]).await.unwrap();
    uow.record(change(Group::Selector, &selector.id, Operation::Create).after(&selector));
    selector
}

/// Deletes a selector that nothing belongs to.
pub(crate) async fn delete_selector(uow: &mut UnitOfWork, selector: &Selector) {
    selector::delete(uow, &[selector.id.as_str()]).await.unwrap();
    uow.record(change(Group::Selector, &selector.id, Operation::Delete).before(selector));
}

/// Adds a rule to a selector.
pub(crate) async fn add_rule(
    uow: &mut UnitOfWork,
    selector: &Selector,
    name: &str,
    handle: &str,
) -> Rule {
    let rule = Rule {
        plugin_name: "divide".into(),
        selector_id: selector.id.clone(),
        id: uow.next_id().unwrap(),
        name: Some(name.into()),
        enabled: true,
        sort: Some(1),
        handle: Some(handle.into()),
        condition_list: Some(Vec::new()),
        namespace_id: Some(DEFAULT_NAMESPACE.into()),
        ..Rule::default()
    };
    rule::insert(uow, &rule, &[]).await.unwrap();
    uow.record(change(Group::Rule, &rule.id, Operation::Create).after(&rule));
    rule
}

/// Changes a rule's handle.
pub(crate) async fn change_rule(uow: &mut UnitOfWork, rule: &Rule, handle: &str) -> Rule {
    let after = Rule { handle: Some(handle.into()), ..rule.clone() };
    assert_eq!(rule::update(uow, &after, &[]).await.unwrap(), 1);
    uow.record(change(Group::Rule, &rule.id, Operation::Update).before(rule).after(&after));
    after
}

/// Deletes a rule.
pub(crate) async fn delete_rule(uow: &mut UnitOfWork, rule: &Rule) {
    rule::delete(uow, &[rule.id.as_str()]).await.unwrap();
    uow.record(change(Group::Rule, &rule.id, Operation::Delete).before(rule));
}
