//! Nobody gets in who may not: a walk over the table of routes.

use longmen_admin::{
    api,
    permission::Permission,
    router::{Route, Routes},
};
use longmen_db::GLOBAL;
use serde_json::{Value, json};

use crate::{
    golden,
    support::{PASSWORD, TestAdmin},
};

/// Routes that ask for no token. Whoever makes another one public says so here, too.
const OPEN: &[&str] = &[
    "GET /v3/api-docs",
    "GET /",
    "GET /swagger-ui.html",
    "GET /swagger-ui/{*file}",
    "GET /actuator/health",
    "GET /platform/login",
    "GET /platform/secretInfo",
    "GET /websocket",
];

/// A token of nobody, one without signature, and one of another key.
const BAD_TOKENS: [Option<&str>; 4] = [
    None,
    Some("x.y.z"),
    Some("eyJhbGciOiJub25lIn0.eyJ1c2VyTmFtZSI6ImFkbWluIn0."),
    Some("eyJhbGciOiJIUzI1NiJ9.eyJ1c2VyTmFtZSI6ImFkbWluIiwiZXhwIjo5OTk5OTk5OTk5fQ.AAAA"),
];

/// A path of the route, every parameter filled in.
fn path_of(route: &Route) -> String {
    let segments: Vec<&str> = route
        .path
        .split('/')
        .map(|segment| if segment.starts_with('{') { "5" } else { segment })
        .collect();
    segments.join("/")
}

#[tokio::test]
async fn every_route_asks_for_a_token() {
    let admin = TestAdmin::start().await;
    let routes: Routes = api::routes();
    let mut open = Vec::new();
    for route in routes.all() {
        let (method, path) = (route.method.as_str(), path_of(route));
        if matches!(route.permission, Permission::Public | Permission::Own(_)) {
            open.push(format!("{method} {}", route.path));
            continue;
        }
        for token in BAD_TOKENS {
            let header = token.map(|token| ("X-Access-Token".to_owned(), token.to_owned()));
            let headers: Vec<_> = header.into_iter().collect();
            let answer = admin.call(method, &path, &headers, Some("{}".to_owned())).await;
            assert_eq!(answer.status, 401, "{method} {path} {token:?}: {}", answer.text);
            let json = answer.json.unwrap();
            if route.path.starts_with("/v1/") {
                assert_eq!(
                    (&json["code"], &json["message"]),
                    (&json!("unauthorized"), &json!("token is error"))
                );
            } else {
                assert_eq!(json, json!({"code": 600, "message": "token is error"}));
            }
        }
    }
    open.sort_unstable();
    let mut expected = OPEN.to_vec();
    expected.sort_unstable();
    assert_eq!(open, expected);
    admin.stop().await;
}

/// A user without any permission is refused by every route that asks for one, with every body that
/// would do; and nothing was written.
#[tokio::test]
async fn every_permission_is_asked_for() {
    let admin = TestAdmin::start().await;
    admin.add_user("lina", "Secret#123").await;
    let token = admin.token("lina", "Secret%23123").await;
    let store = admin.running().state().store();
    let versions = async || {
        let mut tx = store.read().await.unwrap();
        let default = longmen_core::model::DEFAULT_NAMESPACE;
        let one = longmen_db::current_version(&mut tx, default).await.unwrap();
        (one, longmen_db::current_version(&mut tx, GLOBAL).await.unwrap())
    };
    let recordings = golden::admin_rest();
    let selector = a_selector(&admin, &recordings).await;
    let before = versions().await;
    let mut checked = 0;
    for route in api::routes().all() {
        if !matches!(route.permission, Permission::AnyOf(_)) {
            continue;
        }
        let (method, path) = (route.method.as_str(), path_of(route));
        let path = format!(
            "{path}?currentPage=1&pageSize=12&id=5&namespaceId=5&name=x&role=x\
                            &sort=1&enabled=true"
        );
        let mut refused = false;
        for body in bodies(route, &recordings, &selector) {
            let answer = admin.api(&token, method, &path, Some(body.clone())).await;
            assert_ne!(answer["code"], 200, "{method} {path} {body} let a stranger in");
            refused |= answer["code"] == 601;
        }
        assert!(
            refused,
            "{method} {path}: no body got as far as the permission; add one to `bodies`"
        );
        checked += 1;
    }
    assert!(checked > 20, "only {checked} routes ask for a permission");
    assert_eq!(versions().await, before, "something was written");
    admin.stop().await;
}

/// Bodies that are well-formed for the route: those recorded for its resource, and the usual ones.
fn bodies(route: &Route, recordings: &[golden::Recording], selector: &str) -> Vec<Value> {
    let namespace = longmen_core::model::DEFAULT_NAMESPACE;
    let mut bodies = vec![
        json!(["5"]),
        json!({"ids": ["5"], "enabled": true, "namespaceId": namespace}),
        json!({"namespaceId": namespace, "name": "x", "role": "x", "sort": 1, "enabled": true}),
    ];
    let recorded = recordings.iter().filter(|recording| {
        let path = recording.request.path.split('?').next().unwrap_or_default();
        path.split('/').nth(1) == route.path.split('/').nth(1)
    });
    bodies.extend(
        recorded
            .filter_map(|recording| recording.request.body.as_deref())
            .map(|body| fill(&body.replace("<uuid1>", namespace), selector))
            .filter_map(|body| serde_json::from_str(&body).ok()),
    );
    bodies
}

/// Where ids are asked for, that of a selector is the one that must exist.
fn fill(body: &str, selector: &str) -> String {
    let mut filled = String::new();
    let mut rest = body;
    while let Some((before, after)) = rest.split_once("<id") {
        filled.push_str(before);
        filled.push_str(selector);
        rest = after.split_once('>').map_or("", |(_, rest)| rest);
    }
    filled + rest
}

async fn a_selector(admin: &TestAdmin, recordings: &[golden::Recording]) -> String {
    let recorded = recordings.iter().find(|recording| recording.id == "selector-create").unwrap();
    let body = serde_json::from_str(recorded.request.body.as_deref().unwrap()).unwrap();
    let token = admin.token("admin", PASSWORD).await;
    let made = admin.api(&token, "POST", "/selector", Some(body)).await;
    made["data"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
}
