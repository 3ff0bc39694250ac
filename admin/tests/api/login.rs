//! Logging in, and how long a token is good for.

use std::{fs, os::unix::fs::PermissionsExt as _};

use longmen_admin::auth::{Claims, issue, legacy_hash};
use longmen_core::config::Secret;
use longmen_db::{
    Actor,
    repository::{role, user},
};
use serde_json::{Value, json};

use crate::support::{PASSWORD, TestAdmin};

/// A call that any valid token may make.
const ANY: &str = "/platform/enum";

async fn status(admin: &TestAdmin, token: &str) -> u16 {
    let headers = [("X-Access-Token".to_owned(), token.to_owned())];
    admin.call("GET", ANY, &headers, None).await.status
}

async fn set_enabled(admin: &TestAdmin, id: &str, enabled: bool) {
    let mut uow = admin.running().state().store().begin(Actor::system()).await.unwrap();
    assert_eq!(user::set_enabled(&mut uow, id, enabled).await.unwrap(), 1);
    uow.commit().await.unwrap();
}

/// Tokens do not outlive their account: disabled, enabled again, re-passworded (field case C-24).
#[tokio::test]
async fn a_token_ends_with_its_account() {
    let admin = TestAdmin::start().await;
    let id = admin.add_user("lina", "Secret#123").await;
    let token = admin.token("lina", "Secret%23123").await;
    assert_eq!(status(&admin, &token).await, 200);

    set_enabled(&admin, &id, false).await;
    assert_eq!(status(&admin, &token).await, 401);
    let refused = admin.log_in("lina", "Secret%23123", "").await;
    assert_eq!(refused, json!({"code": 500, "message": "the user is disabled", "data": null}));

    set_enabled(&admin, &id, true).await;
    assert_eq!(status(&admin, &token).await, 200);
    let change = json!({"userName": "lina", "password": "Other#4567", "oldPassword": "Secret#123"});
    let path = format!("/dashboardUser/modify-password/{id}");
    let changed = admin.api(&token, "PUT", &path, Some(change)).await;
    assert_eq!(changed, json!({"code": 200, "message": "update success", "data": 1}));
    assert_eq!(status(&admin, &token).await, 401);
    let wrong = admin.log_in("lina", "Secret%23123", "").await;
    assert_eq!(wrong["message"], "username or password error");
    let token = admin.token("lina", "Other%234567").await;
    assert_eq!(status(&admin, &token).await, 200);
    admin.stop().await;
}

/// Nothing that a stranger can guess signs a token (field case C-24).
#[tokio::test]
async fn forged_tokens_are_refused() {
    let admin = TestAdmin::start().await;
    let good = admin.token("admin", PASSWORD).await;
    let claims = |exp| Claims { user_name: "admin".to_owned(), client_id: None, exp };
    let later = admin.running().state().now_ms() / 1000 + 3600;
    let mut forged = vec![
        "x".to_owned(),
        "a.b.c".to_owned(),
        format!("{}.", good.rsplit_once('.').unwrap().0),
        format!("eyJhbGciOiJub25lIn0.{}.", good.split('.').nth(1).unwrap()),
        format!("eyJ0eXAiOiJKV1QiLCJhbGciOiJub25lIn0.{}.AAAA", good.split('.').nth(1).unwrap()),
    ];
    for key in ["admin", PASSWORD, "key", "shenyu", "secret", &legacy_hash(PASSWORD), "$argon2id$"]
    {
        forged.push(issue(&claims(later), key).unwrap());
    }
    let mut tx = admin.running().state().store().read().await.unwrap();
    let stored = user::find_by_name(&mut tx, "admin").await.unwrap().unwrap();
    drop(tx);
    forged.push(issue(&claims(later - 7200), &stored.password).unwrap());
    let unknown = Claims { user_name: "nobody".to_owned(), ..claims(later) };
    forged.push(issue(&unknown, &stored.password).unwrap());
    for token in forged {
        assert_eq!(status(&admin, &token).await, 401, "{token}");
    }
    // The key is right, so this one is good: the check above was not refused for another reason.
    assert_eq!(status(&admin, &issue(&claims(later), &stored.password).unwrap()).await, 200);
    admin.stop().await;
}

/// A console's second log-in ends the first; clients that do not name themselves are left alone.
#[tokio::test]
async fn the_last_console_counts() {
    let admin = TestAdmin::start().await;
    let token = |answer: Value| answer["data"]["token"].as_str().unwrap().to_owned();
    let sdk = admin.token("admin", PASSWORD).await;
    let first = token(admin.log_in("admin", PASSWORD, "&clientId=one").await);
    assert_eq!(status(&admin, &first).await, 200);
    let second = admin.log_in("admin", PASSWORD, "&clientId=two").await;
    assert_eq!(second["data"]["clientId"], "one", "the answer shows the one before");
    assert_eq!(status(&admin, &first).await, 401);
    assert_eq!(status(&admin, &token(second)).await, 200);
    assert_eq!(status(&admin, &sdk).await, 200);
    admin.stop().await;
}

#[tokio::test]
async fn a_token_may_come_as_header_query_or_cookie() {
    let admin = TestAdmin::start().await;
    let token = admin.token("admin", PASSWORD).await;
    let query = format!("{ANY}?X-Access-Token={token}");
    assert_eq!(admin.call("GET", &query, &[], None).await.status, 200);
    let cookie = [("Cookie".to_owned(), format!("a=b; X-Access-Token={token}"))];
    assert_eq!(admin.call("GET", ANY, &cookie, None).await.status, 200);
    assert_eq!(admin.call("GET", ANY, &[], None).await.status, 401);
    // A good query parameter does not help a bad header: the first that is not blank counts.
    let bad = [("X-Access-Token".to_owned(), "bad".to_owned())];
    assert_eq!(admin.call("GET", &query, &bad, None).await.status, 401);
    admin.stop().await;
}

/// A hash of the reference is taken once and replaced, without ending other log-ins' tokens.
#[tokio::test]
async fn an_old_hash_is_replaced_at_the_first_log_in() {
    let admin = TestAdmin::start().await;
    let id = admin.add_user("old", "Secret#123").await;
    let stored = async || {
        let mut tx = admin.running().state().store().read().await.unwrap();
        user::find(&mut tx, &id).await.unwrap().unwrap().password
    };
    assert_eq!(stored().await, legacy_hash("Secret#123"));
    assert_eq!(admin.log_in("old", "wrong", "").await["code"], 500);
    assert_eq!(stored().await, legacy_hash("Secret#123"));
    let (one, two) =
        tokio::join!(admin.token("old", "Secret%23123"), admin.token("old", "Secret%23123"));
    assert!(stored().await.starts_with("$argon2id$"));
    assert_eq!(status(&admin, &one).await, 200);
    assert_eq!(status(&admin, &two).await, 200);
    admin.stop().await;
}

#[tokio::test]
async fn encrypted_passwords_are_opened_when_a_key_is_configured() {
    use longmen_admin::config::AesConfig;

    let (key, iv) = (Secret::new("2095132720951327"), Secret::new("6075877187097700"));
    let admin = TestAdmin::with(|config| config.security.aes = Some(AesConfig { key, iv })).await;
    // `123456`, encrypted with that key.
    let encrypted = admin.log_in("admin", "bbiB8zbUo3z3oA0VqEB%2FIA%3D%3D", "").await;
    assert_eq!(encrypted["code"], 200, "{encrypted}");
    assert_eq!(admin.log_in("admin", PASSWORD, "").await["code"], 200);
    admin.stop().await;
}

/// The first start makes a password, for its owner's eyes only; the second keeps it.
#[tokio::test]
async fn the_first_password_is_made_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("deeper").join("admin-password");
    let database = folder.path().join("data").join("longmen.db");
    let start = async || {
        TestAdmin::with(|config| {
            config.security.admin_password = None;
            config.security.admin_password_path.clone_from(&file);
            config.store = longmen_admin::config::StoreConfig::Sqlite { path: database.clone() };
        })
        .await
    };
    let admin = start().await;
    let generated = admin.running().generated_password.clone().unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), format!("{}\n", generated.password));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!format!("{generated:?}").contains(&generated.password));
    assert_eq!(admin.log_in("admin", &generated.password, "").await["code"], 200);
    assert_eq!(admin.log_in("admin", PASSWORD, "").await["code"], 500);
    admin.stop().await;

    let admin = start().await;
    assert_eq!(admin.running().generated_password, None);
    assert_eq!(admin.log_in("admin", &generated.password, "").await["code"], 200);
    admin.stop().await;
}

/// The super user cannot use what is his alone before he has set a password of his own.
#[tokio::test]
async fn the_first_password_must_be_changed() {
    let admin = TestAdmin::start().await;
    let token = admin.token("admin", PASSWORD).await;
    let check = "/dashboardUser/check/password";
    let fault = admin.api(&token, "GET", check, None).await;
    assert_eq!(
        fault["message"],
        "The password is the default password and you must complete the change once"
    );
    // A log-in with a client id writes the user's row; the password is still the first one.
    admin.log_in("admin", PASSWORD, "&clientId=console").await;
    assert_eq!(admin.api(&token, "GET", check, None).await, fault);
    let change = json!({"userName": "admin", "password": "Adm1n#Pass", "oldPassword": PASSWORD});
    admin.api(&token, "PUT", "/dashboardUser/modify-password/1", Some(change)).await;
    let token = admin.token("admin", "Adm1n%23Pass").await;
    let fine = admin.api(&token, "GET", check, None).await;
    assert_eq!(fine, json!({"code": 200, "message": "ok", "data": true}));
    admin.stop().await;
}

/// Nobody changes another's password, by id or by name.
#[tokio::test]
async fn passwords_of_others_are_out_of_reach() {
    let admin = TestAdmin::start().await;
    admin.add_user("lina", "Secret#123").await;
    let token = admin.token("lina", "Secret%23123").await;
    for name in ["admin", "lina"] {
        let change = json!({"userName": name, "password": "Adm1n#Pass", "oldPassword": PASSWORD});
        let path = "/dashboardUser/modify-password/1";
        let refused = admin.api(&token, "PUT", path, Some(change)).await;
        assert_eq!(refused["message"], "can not modify other user password", "as {name}");
    }
    assert_eq!(admin.log_in("admin", PASSWORD, "").await["code"], 200);
    admin.stop().await;
}

/// What a role gains or loses counts from the next call on.
#[tokio::test]
async fn permissions_follow_the_roles() {
    let admin = TestAdmin::start().await;
    let id = admin.add_user("lina", "Secret#123").await;
    let token = admin.token("lina", "Secret%23123").await;
    let path = "/namespace/list";
    assert_eq!(admin.api(&token, "GET", path, None).await["code"], 601);
    admin.grant(&id, "ops", &["system:namespace:list"]).await;
    assert_eq!(admin.api(&token, "GET", path, None).await["code"], 200);
    let other = admin.api(&token, "GET", "/plugin-template/5", None).await;
    assert_eq!(other["code"], 601);
    // The role of super users grants what is the super user's own to nobody else.
    let mut uow = admin.running().state().store().begin(Actor::system()).await.unwrap();
    role::assign(&mut uow, &id, role::SUPER_ROLE).await.unwrap();
    uow.commit().await.unwrap();
    assert_eq!(admin.api(&token, "GET", "/plugin-template/5", None).await["code"], 200);
    let menu = admin.api(&token, "GET", "/permission/getUserPermissionByToken", None).await;
    let buttons = menu["data"]["currentAuth"].as_array().unwrap();
    let has = |perms: &str| buttons.iter().any(|button| button["perms"] == perms);
    assert!(has("system:plugin:edit") && !has("system:role:add"), "{}", buttons.len());
    admin.stop().await;
}
