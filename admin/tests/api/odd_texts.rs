//! Texts that the two stores would treat differently: refused alike, before they reach either.

use longmen_core::model::DEFAULT_NAMESPACE;
use serde_json::{Value, json};

use crate::scene::{DIVIDE, Scene, binding, on_both_stores, rule, selector, with};
use crate::support::PASSWORD;

on_both_stores!(
    nul_is_refused_wherever_it_comes_in,
    a_token_of_an_odd_name_is_none,
    keys_have_a_limit,
    long_lists_of_ids_are_refused_where_they_narrow_a_page,
);

/// `{"userName":"li\u0000na"}`, signed with nothing.
const ODD_TOKEN: &str = "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9.eyJ1c2VyTmFtZSI6ImxpXHUwMDAwbmEiLCJleHAiOjk5OTk5OTk5OTl9.AAAA";

/// The text of a refused call.
async fn told(scene: &Scene, method: &str, path: &str, body: Value) -> String {
    let answer = scene.call(method, path, body).await;
    assert_eq!(answer["code"], 500, "{method} {path}: {answer}");
    answer["message"].as_str().unwrap().to_owned()
}

/// The answer to a form.
async fn form(scene: &Scene, path: &str, body: &str) -> String {
    let token = scene.admin.token("admin", PASSWORD).await;
    let headers = [
        ("X-Access-Token".to_owned(), token),
        ("Content-Type".to_owned(), "application/x-www-form-urlencoded".to_owned()),
    ];
    let answer = scene.admin.call("POST", path, &headers, Some(body.to_owned())).await;
    answer.json.unwrap()["message"].as_str().unwrap().to_owned()
}

async fn nul_is_refused_wherever_it_comes_in(scene: &Scene) {
    const REST: &str = "holds the character U+0000, expected a text without it";
    let id = scene.selector("orders").await;
    let page = "currentPage=1&pageSize=12";
    let odd_rule = with(
        rule(&id, "r"),
        json!({"ruleConditions": [{"paramType": "uri", "operator": "=", "paramName": "/",
                                   "paramValue": "/a\0"}]}),
    );
    let nothing = Value::Null;
    for (method, path, body, field) in [
        ("GET", format!("/selector?name=a%00b&{page}"), nothing.clone(), "name: \"a\\0b\""),
        ("GET", "/selector/a%00b".to_owned(), nothing.clone(), "id: \"a\\0b\""),
        ("GET", format!("/plugin-handle?pluginId=%00&{page}"), nothing, "pluginId: \"\\0\""),
        ("POST", "/selector".to_owned(), selector("a\0b"), "name: \"a\\0b\""),
        ("POST", "/rule".to_owned(), odd_rule, "ruleConditions[0].paramValue: \"/a\\0\""),
        (
            "DELETE",
            "/rule/batch".to_owned(),
            json!({"ids": ["a", "b\0"], "namespaceId": DEFAULT_NAMESPACE}),
            "ids[1]: \"b\\0\"",
        ),
        ("DELETE", "/proxy-selector/batch".to_owned(), json!(["b\0"]), "[0]: \"b\\0\""),
        (
            "PUT",
            "/dashboardUser/modify-password/1".to_owned(),
            json!({"userName": "admin", "password": "Secret#123\0", "oldPassword": PASSWORD}),
            "password: the value",
        ),
    ] {
        let version = scene.version().await;
        let text = told(scene, method, &path, body).await;
        assert_eq!(text, format!("{field} {REST}"), "{method} {path}");
        assert_eq!(scene.version().await, version, "{method} {path}");
    }
    let text = form(scene, "/plugin-template", "name=a%00&role=Mock&sort=1&enabled=true").await;
    assert_eq!(text, format!("name: \"a\\0\" {REST}"));
    for (user, password, field) in
        [("a%00", "x", "userName: \"a\\0\""), ("admin", "x%00", "password: the value")]
    {
        let answer = scene.admin.log_in(user, password, "").await;
        assert_eq!(answer["message"], format!("{field} {REST}"));
    }
    // Two characters that only look like it.
    scene.ok("POST", "/selector", selector("a\\u0000b")).await;
}

async fn a_token_of_an_odd_name_is_none(scene: &Scene) {
    let answer = scene.call_as(ODD_TOKEN, "GET", "/selector/1", Value::Null).await;
    assert_eq!(answer, json!({"code": 600, "message": "token is error"}));
}

async fn keys_have_a_limit(scene: &Scene) {
    let long = "x".repeat(9_000);
    let rest = format!("\"{}\"… has 9000 bytes, expected at most 1024", "x".repeat(32));
    let violated = |field: &str| format!("Request error! invalid argument [{field}: {rest}]");
    let template = format!("name={long}&role=Mock&sort=1&enabled=true");
    assert_eq!(form(scene, "/plugin-template", &template).await, violated("name"));
    let menu = json!({"name": long, "role": "Mock", "sort": 1, "enabled": true});
    let path = format!("/plugin-template/createPluginResource/{DIVIDE}");
    assert_eq!(told(scene, "PUT", &path, menu).await, violated("name"));
    let field = json!({"pluginId": DIVIDE, "field": long, "dataType": 2, "type": 2, "sort": 1});
    assert_eq!(told(scene, "POST", "/plugin-handle", field).await, violated("field"));

    let id = scene.selector("orders").await;
    let handler = scene.bind(&id, "orders", &[1]).await;
    let upstream = json!({"discoveryHandlerId": handler, "namespaceId": DEFAULT_NAMESPACE,
                          "url": long, "status": 0, "weight": 1, "props": "{}"});
    let text = told(scene, "POST", "/discovery-upstream", upstream).await;
    assert_eq!(text, format!("url: {rest}"));
    let other = scene.selector("others").await;
    let mut bound = binding(&other, "others", &[1]);
    bound["discoveryUpstreams"][0]["url"] = long.into();
    let text = told(scene, "POST", "/proxy-selector/binding", bound).await;
    assert_eq!(text, format!("discoveryUpstreams[0].url: {rest}"));
}

async fn long_lists_of_ids_are_refused_where_they_narrow_a_page(scene: &Scene) {
    let ids = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
    for (path, member) in
        [("/selector/list/search", "plugin"), ("/rule/list/search/adaptor", "selectors")]
    {
        let search =
            |count| json!({"pageNum": 1, "pageSize": 12, "condition": {member: ids(count)}});
        let text = told(scene, "POST", path, search(4097)).await;
        let rule = format!("condition.{member}: 4097 ids, expected at most 4096");
        assert_eq!(text, format!("Request error! invalid argument [{rule}]"));
        scene.ok("POST", path, search(4096)).await;
    }
}
