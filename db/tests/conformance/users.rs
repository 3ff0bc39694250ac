//! Users, roles, permissions and the operation log.

use longmen_db::repository::operation_log::{self, OperationFilter};
use longmen_db::repository::user::{self, NewUser};
use longmen_db::repository::{permission, role};
use longmen_db::{Keyword, PageRequest, Pruned, Retention, prune};

use crate::support::{TestStore, on_both_stores};

on_both_stores!(
    users_log_in_and_change_passwords,
    permissions_come_from_roles,
    operations_are_logged_and_listed,
);

fn new_user(name: &str) -> NewUser {
    NewUser { user_name: name.to_owned(), password: "h1".to_owned(), role: 1, enabled: true }
}

async fn users_log_in_and_change_passwords(test: TestStore) {
    let mut uow = test.begin().await;
    let id = user::insert(&mut uow, &new_user("lina")).await.unwrap();
    uow.commit().await.unwrap();
    test.clock.forward(7);

    let mut uow = test.begin().await;
    assert!(user::find_by_name(&mut uow, "LINA").await.unwrap().is_none(), "as spelled");
    let before = user::find_by_name(&mut uow, "lina").await.unwrap().unwrap();
    assert_eq!((before.id.as_str(), before.client_id.as_deref()), (id.as_str(), None));
    assert_eq!(before.password_ms, Some(before.created_ms));
    assert!(!format!("{before:?} {:?}", new_user("x")).contains("h1"), "no hash in logs");
    assert_eq!(user::set_client_id(&mut uow, &id, "c1").await.unwrap(), 1);
    // The hash is upgraded only where the password is still the one that was checked.
    assert_eq!(user::upgrade_hash(&mut uow, &id, "stale", "h2").await.unwrap(), 0);
    assert_eq!(user::upgrade_hash(&mut uow, &id, "h1", "h2").await.unwrap(), 1);
    let after = user::find(&mut uow, &id).await.unwrap().unwrap();
    assert_eq!((after.password.as_str(), after.client_id.as_deref()), ("h2", Some("c1")));
    assert_eq!((after.password_ms, after.updated_ms), (before.password_ms, before.updated_ms + 7));
    assert_eq!(user::set_password(&mut uow, &id, "h3").await.unwrap(), 1);
    assert_eq!(user::set_enabled(&mut uow, &id, false).await.unwrap(), 1);
    let after = user::find(&mut uow, &id).await.unwrap().unwrap();
    assert_eq!((after.password.as_str(), after.enabled), ("h3", false));
    assert_eq!(after.password_ms, Some(before.created_ms + 7));
    for gone in [
        user::set_client_id(&mut uow, "nope", "c").await,
        user::set_password(&mut uow, "nope", "h").await,
        user::set_enabled(&mut uow, "nope", true).await,
    ] {
        assert_eq!(gone.unwrap(), 0);
    }
    let taken = user::insert(&mut uow, &new_user("lina")).await.unwrap_err();
    assert!(taken.is_unique_violation(), "{taken}");
}

async fn permissions_come_from_roles(test: TestStore) {
    let mut uow = test.begin().await;
    let id = user::insert(&mut uow, &new_user("lina")).await.unwrap();
    role::assign(&mut uow, &id, role::DEFAULT_ROLE).await.unwrap();
    assert!(permission::of_user(&mut uow, &id).await.unwrap().is_empty());
    let ops = role::insert(&mut uow, "ops", None).await.unwrap();
    role::assign(&mut uow, &id, &ops).await.unwrap();
    role::assign(&mut uow, &id, &ops).await.unwrap();
    let edit = permission::find_resource_by_perms(&mut uow, "system:plugin:edit").await.unwrap();
    let edit = edit.unwrap();
    role::grant(&mut uow, &ops, &edit.id).await.unwrap();
    role::grant(&mut uow, &ops, &edit.id).await.unwrap();
    // A menu carries no permission string.
    role::grant(&mut uow, &ops, &edit.parent_id).await.unwrap();
    uow.commit().await.unwrap();

    let mut tx = test.store.read().await.unwrap();
    assert_eq!(permission::of_user(&mut tx, &id).await.unwrap(), ["system:plugin:edit"]);
    assert_eq!(permission::resources_of_user(&mut tx, &id).await.unwrap().len(), 2);
    assert!(permission::find_resource_by_perms(&mut tx, "nope").await.unwrap().is_none());
    assert_eq!(role::of_user(&mut tx, &id).await.unwrap().len(), 2);
    assert_eq!(role::all(&mut tx).await.unwrap().len(), 3);
    assert_eq!(role::find(&mut tx, &ops).await.unwrap().unwrap().role_name, "ops");
    assert!(role::find(&mut tx, "nope").await.unwrap().is_none());
}

async fn operations_are_logged_and_listed(test: TestStore) {
    let start = test.store.now_ms();
    for n in 0..15 {
        let mut uow = test.begin().await;
        let kind = if n % 2 == 0 { "CREATE:Selector" } else { "DELETE:Rule" };
        operation_log::insert(&mut uow, "green", kind, &format!("entry {n}")).await.unwrap();
        uow.commit().await.unwrap();
        test.clock.forward(10);
    }
    let mut tx = test.store.read().await.unwrap();
    let request = PageRequest::new(1, 12);
    let page = operation_log::page(&mut tx, &OperationFilter::default(), request).await.unwrap();
    assert_eq!((page.total, page.rows.len()), (15, 12));
    assert_eq!(
        (page.rows[0].context.as_str(), page.rows[0].operator.as_str()),
        ("entry 14", "lina")
    );
    for (filter, expected) in [
        (OperationFilter { operator: Some("omar".to_owned()), ..OperationFilter::default() }, 0),
        (OperationFilter { operator: Some("lina".to_owned()), ..OperationFilter::default() }, 15),
        (
            OperationFilter {
                operation_type: Some("DELETE:Rule".to_owned()),
                ..OperationFilter::default()
            },
            7,
        ),
        (
            OperationFilter { keyword: Keyword::parse("ENTRY 1!10"), ..OperationFilter::default() },
            5,
        ),
        (
            OperationFilter {
                from_ms: Some(start + 20),
                to_ms: Some(start + 40),
                ..OperationFilter::default()
            },
            3,
        ),
    ] {
        let page = operation_log::page(&mut tx, &filter, request).await.unwrap();
        assert_eq!(page.total, expected, "{filter:?}");
    }
    drop(tx);
    let keep = Retention { dispatch_sets: 0, dispatch_ms: 100, history_ms: 100 };
    let pruned = prune(&test.store, keep).await.unwrap();
    assert_eq!(pruned, Pruned { changes: 0, operations: 5 }, "those before start + 50");
    let mut tx = test.store.read().await.unwrap();
    let page = operation_log::page(&mut tx, &OperationFilter::default(), request).await.unwrap();
    assert_eq!(page.total, 10);
}
