//! What is refused, and how: never by a quick 200.

use serde_json::{Value, json};

use super::poller::Poller;
use crate::scene::Scene;
use crate::support::TestAdmin;

async fn polled() -> Scene {
    Scene::of(TestAdmin::start().await).await
}

#[tokio::test]
async fn a_log_in_s_token_and_the_sync_token_let_in_and_nothing_else_does() {
    let scene = polled().await;
    let poller = Poller::of(&scene).await;
    let sync_token =
        std::fs::read_to_string(&scene.admin.running().state().config().sync.token_path).unwrap();
    let differing = Poller {
        has: poller.has.keys().map(|group| (*group, (String::new(), 0))).collect(),
        ..poller.clone()
    };
    let calls =
        [("GET", "/configs/fetch?groupKeys=RULE".to_owned()), ("POST", differing.question())];
    for (method, path) in &calls {
        for (name, value, status) in [
            ("X-Access-Token", scene.token(), 200),
            ("X-Sync-Token", sync_token.trim(), 200),
            ("X-Access-Token", "x.y.z", 401),
            ("X-Sync-Token", "another", 401),
            ("X-Access-Token", sync_token.trim(), 401),
            ("Accept", "*/*", 401),
        ] {
            let headers = [(name.to_owned(), value.to_owned())];
            let answer = scene.admin.call(method, path, &headers, None).await;
            assert_eq!(answer.status, status, "{method} {path} {name}: {}", answer.text);
            if status == 401 {
                assert_eq!(answer.json, Some(json!({"code": 600, "message": "token is error"})));
            }
        }
        // Also in the query, as the reference takes it.
        let with = format!("{path}&X-Access-Token={}", scene.token());
        assert_eq!(scene.admin.call(method, &with, &[], None).await.status, 200);
    }
    // A user without any role may poll, as with the reference.
    scene.admin.add_user("lina", "Secret#123").await;
    let token = scene.admin.token("lina", "Secret%23123").await;
    let headers = [("X-Access-Token".to_owned(), token)];
    let answer = scene.admin.call("GET", &calls[0].1, &headers, None).await;
    assert_eq!(answer.status, 200);
    scene.stop().await;
}

#[tokio::test]
async fn where_polling_is_off_nobody_is_told_that_nothing_changed() {
    let off = TestAdmin::with(|config| config.sync.http.enabled = false).await;
    let scene = Scene::of(off).await;
    let mut poller = Poller::new(&scene.admin, scene.token());
    poller.has.insert("RULE", (String::new(), 0));
    let headers = [("X-Access-Token".to_owned(), scene.token().to_owned())];
    for (method, path) in [("GET", "/configs/fetch?groupKeys=RULE"), ("POST", &poller.question())] {
        let answer = scene.admin.call(method, path, &headers, None).await;
        assert_eq!(answer.status, 404, "{method} {path}");
        assert!(answer.text.contains("shenyu.sync.http.enabled"), "{}", answer.text);
        assert_eq!(scene.admin.call(method, path, &[], None).await.status, 401);
    }
    scene.stop().await;
}

#[tokio::test]
async fn what_cannot_be_answered_has_a_status_of_its_own() {
    let scene = polled().await;
    let poller = Poller::of(&scene).await;
    let headers = [("X-Access-Token".to_owned(), scene.token().to_owned())];
    let call = async |method: &str, path: &str, body: Option<String>| {
        let answer = scene.admin.call(method, path, &headers, body).await;
        let json = answer.json.clone().unwrap_or(Value::Null);
        (answer.status, json["message"].as_str().unwrap_or_default().to_owned())
    };
    let question = poller.question();
    let without = question.replacen("SELECTOR=", "OTHER=", 1);
    let two_commas = question.replacen("RULE=", "RULE=a,b,", 1);
    let nowhere = question.replacen("namespaceId=", "namespaceId=nope&was=", 1);
    for (method, path, body, status, message) in [
        (
            "GET",
            "/configs/fetch?groupKeys=RULE&namespaceId=nope",
            None,
            404,
            "namespace is not exist",
        ),
        ("GET", "/configs/fetch?namespaceId=", None, 400, "groupKeys is missing"),
        ("GET", "/configs/fetch?groupKeys=NOPE", None, 400, "ConfigGroupEnum.NOPE"),
        ("POST", &without, None, 400, "group param invalid:null"),
        ("POST", &two_commas, None, 400, "group param invalid:a,b,"),
        ("POST", &nowhere, None, 404, "namespace is not exist"),
        ("POST", "/configs/listener", Some("x".repeat(20_000)), 413, "at most 16384 bytes"),
    ] {
        let (got, text) = call(method, path, body).await;
        assert_eq!(got, status, "{method} {path}: {text}");
        assert!(text.contains(message), "{method} {path}: {text}");
    }
    scene.stop().await;
}

/// Seven groups and no namespace: what gateways of 2.6.1 send.
#[tokio::test]
async fn older_gateways_are_served_from_the_default_namespace() {
    let scene = polled().await;
    let id = scene.selector("older").await;
    let mut poller = Poller::of(&scene).await;
    poller.has.remove("AI_PROXY_API_KEY");
    let headers = [("X-Access-Token".to_owned(), scene.token().to_owned())];
    let seven: Vec<String> = poller.has.keys().map(|group| format!("groupKeys={group}")).collect();
    let path = format!("/configs/fetch?{}", seven.join("&"));
    let answer = scene.admin.call("GET", &path, &headers, None).await.json.unwrap();
    assert_eq!(answer["data"].as_object().unwrap().len(), 7);
    assert_eq!(answer["data"]["SELECTOR"]["data"][0]["id"], id.as_str());
    poller.has.insert("RULE", ("0".repeat(32), 0));
    let question = poller.question();
    let (question, _) = question.split_once("&namespaceId").unwrap();
    let answer = scene.admin.call("POST", question, &headers, None).await;
    assert_eq!(answer.json.unwrap()["data"], json!(["RULE"]));
    scene.stop().await;
}

/// Gateways of ours learn at which version an answer stands; nobody else does.
#[tokio::test]
async fn only_gateways_of_ours_are_told_the_version() {
    let scene = polled().await;
    scene.selector("marked").await;
    let mut headers = vec![("X-Access-Token".to_owned(), scene.token().to_owned())];
    let path = "/configs/fetch?groupKeys=SELECTOR";
    let stock = scene.admin.call("GET", path, &headers, None).await.json.unwrap();
    assert_eq!(stock.get("longmen"), None);
    headers.push(("X-Longmen-Sync".to_owned(), "1".to_owned()));
    let ours = scene.admin.call("GET", path, &headers, None).await.json.unwrap();
    assert_eq!(ours["longmen"]["version"], scene.version().await);
    assert_eq!(ours["data"], stock["data"]);
    scene.stop().await;
}
