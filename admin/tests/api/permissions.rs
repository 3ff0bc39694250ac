//! Nobody gets in who may not.

use longmen_admin::{api, permission::Permission};

use crate::support::TestAdmin;

/// Every route that is not public refuses a call without a token, and one with a bad token.
#[tokio::test]
async fn every_route_asks_for_a_token() {
    let admin = TestAdmin::start().await;
    let routes = api::routes();
    let mut open = Vec::new();
    for route in routes.all() {
        let path = route.path.replace(['{', '}', '*'], "");
        let method = route.method.as_str();
        if matches!(route.permission, Permission::Public | Permission::Own(_)) {
            open.push(format!("{method} {}", route.path));
            continue;
        }
        for token in [None, Some("x.y.z"), Some("eyJhbGciOiJub25lIn0.eyJ1c2VyTmFtZSI6ImFkbWluIn0.")]
        {
            let headers: Vec<_> = token
                .map(|token| ("X-Access-Token".to_owned(), token.to_owned()))
                .into_iter()
                .collect();
            let answer = admin.call(method, &path, &headers, Some("{}".to_owned())).await;
            assert_eq!(answer.status, 401, "{method} {path} {token:?}: {}", answer.text);
        }
    }
    // Whoever makes a route public says so here, too.
    let expected = [
        "GET /v3/api-docs",
        "GET /",
        "GET /swagger-ui.html",
        "GET /swagger-ui/{*file}",
        "GET /actuator/health",
        "GET /platform/login",
        "GET /platform/secretInfo",
    ];
    assert_eq!(open, expected);
    admin.stop().await;
}
