//! In which order a call is checked, and what it is told.

use serde_json::{Value, json};

use crate::support::{PASSWORD, TestAdmin};

const BUSY: &str = "The system is busy, please try again later";
const WRONG_KIND: &str = "request body: line 1 column 54, field enabled: the text \"yes?\" where a \
                          boolean belongs";

fn failure(message: &str) -> Value {
    json!({"code": 500, "message": message, "data": null})
}

/// Binding and field rules, then the permission, then parameter rules.
#[tokio::test]
async fn checks_come_in_the_reference_s_order() {
    let admin = TestAdmin::start().await;
    admin.add_user("lina", "Secret#123").await;
    let lina = admin.token("lina", "Secret%23123").await;
    let root = admin.token("admin", PASSWORD).await;
    let denied = json!({"code": 601, "message": "token has no permission", "data": null});
    let link = "/namespace-plugin/1801816010882822183";
    let settings = json!({"pluginId": "5", "name": "divide", "sort": 1, "enabled": true,
                          "namespaceId": "649330b6-c2d7-4edc-be8e-8a54df9eb385"});
    for (method, path, body, for_lina, for_root) in [
        // A field rule comes before the permission.
        (
            "PUT",
            link,
            Some(json!({"pluginId": "5", "name": " ", "sort": -1, "enabled": "yes?"})),
            failure(WRONG_KIND),
            failure(WRONG_KIND),
        ),
        (
            "PUT",
            link,
            Some(json!({"pluginId": "5", "name": " ", "sort": -1})),
            failure(
                "Request error! invalid argument [name: must not be blank| sort: must be greater \
                 than or equal to 0| enabled: must not be null| namespaceId: must not be blank]",
            ),
            failure(
                "Request error! invalid argument [name: must not be blank| sort: must be greater \
                 than or equal to 0| enabled: must not be null| namespaceId: must not be blank]",
            ),
        ),
        // So do missing parameters and such of the wrong type.
        (
            "GET",
            "/namespace/findPageByQuery",
            None,
            failure("currentPage parameter is missing"),
            failure("currentPage parameter is missing"),
        ),
        (
            "GET",
            "/plugin-handle?currentPage=1&pageSize=abc",
            None,
            failure("pageSize should be of type java.lang.Integer"),
            failure("pageSize should be of type java.lang.Integer"),
        ),
        // Rules on parameters come after it.
        (
            "PUT",
            "/namespace-plugin/nope",
            Some(settings),
            denied.clone(),
            failure("updatePlugin.id: namespace plugin relation is not exist"),
        ),
        (
            "DELETE",
            "/plugin-handle/batch",
            Some(json!([])),
            denied.clone(),
            failure("deletePluginHandles.ids: must not be empty"),
        ),
        (
            "GET",
            "/plugin-template/nope",
            None,
            denied,
            failure("detailPlugin.id: plugin is not existed"),
        ),
    ] {
        assert_eq!(admin.api(&lina, method, path, body.clone()).await, for_lina, "{method} {path}");
        assert_eq!(admin.api(&root, method, path, body).await, for_root, "{method} {path}");
    }
    admin.stop().await;
}

#[tokio::test]
async fn what_cannot_be_served_is_told() {
    let admin = TestAdmin::start().await;
    let token = admin.token("admin", PASSWORD).await;
    for (method, path, body, message) in [
        ("GET", "/no/such/path", None, BUSY),
        ("POST", "/namespace/insertOrUpdate", None, BUSY),
        (
            "DELETE",
            "/namespace/list",
            None,
            "DELETE method is not supported for this request. Supported methods are GET ",
        ),
        (
            "DELETE",
            "/plugin-template",
            None,
            "DELETE method is not supported for this request. Supported methods are GET POST ",
        ),
        // A fixed path does not hide the methods of one with parameters.
        ("GET", "/plugin-template/batch", None, "detailPlugin.id: plugin is not existed"),
        (
            "POST",
            "/plugin-template/batch",
            None,
            "POST method is not supported for this request. Supported methods are GET PUT DELETE ",
        ),
        ("GET", "/plugin-handle/all/5/x", None, "type should be of type java.lang.Integer"),
        (
            "POST",
            "/namespace/insertOrUpdate",
            Some(json!({"name": "x".repeat(256), "description": null})),
            "Request error! invalid argument [name: The maximum length is 255| description: \
             namespace description not null]",
        ),
    ] {
        let answer = admin.api(&token, method, path, body).await;
        assert_eq!(answer, failure(message), "{method} {path}");
    }
    admin.stop().await;
}

/// Strings stand for numbers and booleans, unknown members are passed over.
#[tokio::test]
async fn bodies_are_read_leniently() {
    let admin = TestAdmin::start().await;
    let token = admin.token("admin", PASSWORD).await;
    let body = json!({"pluginId": 5, "name": "divide", "config": "{}", "sort": "203",
        "enabled": "true", "namespaceId": "649330b6-c2d7-4edc-be8e-8a54df9eb385",
        "unknown": {"a": [1]}});
    let path = "/namespace-plugin/1801816010882822183";
    let answer = admin.api(&token, "PUT", path, Some(body)).await;
    assert_eq!(answer, json!({"code": 200, "message": "update success", "data": null}));
    let shown = admin.api(&token, "GET", path, None).await;
    assert_eq!(shown["data"]["sort"], 203);
    assert_eq!(shown["data"]["config"], "{}");
    assert_eq!(shown["data"]["pluginRelId"], Value::Null);
    admin.stop().await;
}

/// A body past the limit is refused by its size, not by running out of memory.
#[tokio::test]
async fn bodies_have_a_limit() {
    let admin = TestAdmin::with(|config| config.server.request_max_bytes = 1000).await;
    let token = admin.token("admin", PASSWORD).await;
    let body = json!({"name": "x".repeat(2000), "description": ""});
    let answer = admin.api(&token, "POST", "/namespace/insertOrUpdate", Some(body)).await;
    assert_eq!(answer, failure("request body is larger than 1000 bytes"));
    admin.stop().await;
}

/// Paging: odd pages and sizes, search texts that look like patterns (field cases C-33, C-34).
#[tokio::test]
async fn namespaces_are_paged_and_searched() {
    let admin = TestAdmin::start().await;
    let token = admin.token("admin", PASSWORD).await;
    for name in ["50%", "a_b", "back\\slash", "it's", "emoji 🐉", "plain", "PLAIN"] {
        let body = json!({"name": name, "description": ""});
        let made = admin.api(&token, "POST", "/namespace/insertOrUpdate", Some(body)).await;
        assert_eq!(made["code"], 200, "{made}");
    }
    let found = async |query: &str| -> (i64, Vec<String>) {
        let path = format!("/namespace/findPageByQuery?{query}");
        let answer = admin.api(&token, "GET", &path, None).await;
        let rows = answer["data"]["dataList"].as_array().unwrap_or_else(|| panic!("{answer}"));
        let names = rows.iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect();
        (answer["data"]["page"]["totalCount"].as_i64().unwrap(), names)
    };
    for (text, total) in
        [("%25", 1), ("_", 1), ("%5C", 1), ("'", 1), ("%F0%9F%90%89", 1), ("plain", 2), ("zz", 0)]
    {
        let (count, _) = found(&format!("name={text}&currentPage=1&pageSize=12")).await;
        assert_eq!(count, total, "{text}");
    }
    for query in ["currentPage=0&pageSize=0", "currentPage=-1&pageSize=-3"] {
        assert_eq!(found(query).await.1.len(), 8, "{query}");
    }
    let mut walked = Vec::new();
    for page in 1..=3 {
        let (total, names) = found(&format!("currentPage={page}&pageSize=3")).await;
        assert_eq!(total, 8);
        walked.extend(names);
    }
    walked.sort();
    walked.dedup();
    assert_eq!(walked.len(), 8);
    admin.stop().await;
}

#[tokio::test]
async fn health_is_open_and_names_the_store() {
    let admin = TestAdmin::start().await;
    let answer = admin.call("GET", "/actuator/health", &[], None).await;
    assert_eq!(answer.status, 200);
    let json = answer.json.unwrap();
    assert_eq!(json["status"], "UP");
    assert_eq!(json["components"]["db"]["status"], "UP");
    admin.running().state().store().close().await;
    let answer = admin.call("GET", "/actuator/health", &[], None).await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.json.unwrap()["status"], "DOWN");
    admin.stop().await;
}

/// Everything is found below the configured prefix, and nothing beside it.
#[tokio::test]
async fn a_context_path_comes_before_every_path() {
    let admin = TestAdmin::with(|config| config.server.context_path = "/gw".to_owned()).await;
    let open = admin.call("GET", "/gw/platform/secretInfo", &[], None).await;
    assert_eq!(open.json.unwrap()["code"], 200);
    assert_eq!(admin.call("GET", "/gw/namespace/list", &[], None).await.status, 401);
    let path = format!("/gw/platform/login?userName=admin&password={PASSWORD}");
    let login = admin.call("GET", &path, &[], None).await.json.unwrap();
    let token = login["data"]["token"].as_str().unwrap();
    let detail = admin.api(token, "GET", "/gw/plugin-template/5", None).await;
    assert_eq!(detail["data"]["name"], "divide");
    let beside = admin.call("GET", "/platform/secretInfo", &[], None).await;
    assert_eq!(
        beside.json.unwrap(),
        failure(
            "GET /platform/secretInfo: nothing answers here, expected a path below /gw \
             (server.servlet.context-path)"
        )
    );
    for page in ["/gw", "/gw/"] {
        let page = admin.call("GET", page, &[], None).await;
        assert!(page.text.contains("<base href=\"/gw/swagger-ui/\">"), "{}", page.text);
    }
    let script = admin.call("GET", "/gw/swagger-ui/swagger-initializer.js", &[], None).await;
    assert!(script.text.contains("/gw/v3/api-docs"), "{}", script.text);
    admin.stop().await;
}
