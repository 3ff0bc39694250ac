//! Lists: paging, search text, who sees what, and who may write.

use std::collections::BTreeSet;

use longmen_core::model::{DEFAULT_NAMESPACE, Level};
use longmen_db::Actor;
use longmen_db::repository::data_permission;
use serde_json::{Value, json};

use crate::scene::{DIVIDE, Scene, binding, on_both_stores, rule, selector, with};

on_both_stores!(
    pages_hold_every_row_once,
    search_text_is_literal,
    users_see_what_they_are_granted,
    writes_need_their_permission,
);

fn page(list: &Value) -> (i64, i64) {
    (
        list["page"]["totalCount"].as_i64().unwrap(),
        list["dataList"].as_array().unwrap().len() as i64,
    )
}

/// C-34: equal sort values and times; rows are added while a client walks the pages.
async fn pages_hold_every_row_once(scene: &Scene) {
    const ROWS: usize = 55;
    let id = scene.selector("orders").await;
    let mut made = BTreeSet::new();
    for n in 0..ROWS {
        made.insert(scene.rule(&id, &format!("r{n}")).await);
    }
    let list = format!("/rule?selectorId={id}&namespaceId={DEFAULT_NAMESPACE}");
    let mut seen = Vec::new();
    for current in 1..=6 {
        let part = scene.get(&format!("{list}&currentPage={current}&pageSize=10")).await;
        assert!(part["page"]["totalCount"].as_i64().unwrap() >= ROWS as i64);
        for row in part["dataList"].as_array().unwrap() {
            seen.push(row["id"].as_str().unwrap().to_owned());
        }
        // Of equal sort, so behind all that were there.
        scene.rule(&id, &format!("late{current}")).await;
    }
    let walked: BTreeSet<String> = seen.iter().cloned().collect();
    assert_eq!(walked.len(), seen.len(), "no row came twice");
    assert!(walked.is_superset(&made), "no row was skipped");

    for (paging, total, rows) in [
        ("currentPage=0&pageSize=0", 61, 12),
        ("currentPage=-1&pageSize=-5", 61, 12),
        ("currentPage=1&pageSize=100000", 61, 61),
        ("currentPage=9999&pageSize=50", 61, 0),
    ] {
        let part = scene.get(&format!("{list}&{paging}")).await;
        assert_eq!(page(&part), (total, rows), "{paging}");
    }
    for (paging, text) in [
        ("pageSize=12", "currentPage parameter is missing"),
        ("currentPage=1", "pageSize parameter is missing"),
        ("currentPage=1&pageSize=abc", "pageSize should be of type java.lang.Integer"),
    ] {
        assert_eq!(scene.refused("GET", &format!("{list}&{paging}"), Value::Null).await, text);
    }
    assert_eq!(
        scene.refused("GET", "/rule?currentPage=1&pageSize=12", Value::Null).await,
        "queryRules.namespaceId: namespaceId is not existed"
    );
}

/// C-33: `%`, `_`, `'`, `\` and letters of all scripts stand for themselves.
async fn search_text_is_literal(scene: &Scene) {
    for name in ["50%_off", "50xyoff", "o'brien", "back\\slash", "订单😀", "Orders"] {
        scene.ok("POST", "/selector", with(selector("x"), json!({"name": name}))).await;
    }
    for (keyword, found) in [
        ("50%_", 1),
        ("%", 1),
        ("_", 1),
        ("'", 1),
        ("\\", 1),
        ("订单😀", 1),
        ("orders", 1),
        ("o", 4),
        ("o!off", 2),
        ("!o", 2),
        ("", 6),
    ] {
        let body = json!({"pageNum": 1, "pageSize": 1000, "condition": {
            "keyword": keyword, "plugin": [DIVIDE], "namespaceId": DEFAULT_NAMESPACE}});
        let listed = scene.ok("POST", "/selector/list/search/adaptor", body.clone()).await;
        assert_eq!(page(&listed), (found, found), "{keyword}");
        let listed = scene.ok("POST", "/selector/list/search", body).await;
        assert_eq!(listed["total"], found, "{keyword}");
    }
    let body = json!({"pageNum": 1, "pageSize": 2, "condition": {"switchStatus": false}});
    assert_eq!(scene.ok("POST", "/rule/list/search", body).await["total"], 0);
    let ids: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
    let body = json!({"pageNum": 1, "pageSize": 2, "condition": {"selectors": ids}});
    assert_eq!(page(&scene.ok("POST", "/rule/list/search/adaptor", body).await), (0, 0));
    let body = json!({"ids": ids, "namespaceId": DEFAULT_NAMESPACE});
    assert_eq!(scene.ok("DELETE", "/rule/batch", body).await, 0);
}

async fn users_see_what_they_are_granted(scene: &Scene) {
    let early = scene.selector("early").await;
    let (lina, lina_token) = scene.user("lina", &["system:plugin:edit"]).await;
    let (_, omar_token) = scene.user("omar", &[]).await;
    let list = format!("/selector?pluginId={DIVIDE}&currentPage=1&pageSize=12");
    let seen = async |token: &str| {
        let listed = scene.call_as(token, "GET", &list, Value::Null).await;
        page(&listed["data"]).0
    };
    assert_eq!(page(&scene.get(&list).await).0, 1);
    assert_eq!((seen(&lina_token).await, seen(&omar_token).await), (0, 0));

    // Made by a user without grants: all users of the namespace get it.
    scene.selector("shared").await;
    assert_eq!((seen(&lina_token).await, seen(&omar_token).await), (1, 1));
    // Made by one with grants: theirs alone.
    let made = scene.call_as(&lina_token, "POST", "/selector", selector("own")).await;
    let own = made["data"].as_str().unwrap().to_owned();
    assert_eq!((seen(&lina_token).await, seen(&omar_token).await), (2, 1));
    let made = scene.call_as(&lina_token, "POST", "/rule", rule(&own, "r")).await;
    assert_eq!(made["data"], 1);
    let body = json!({"pageNum": 1, "pageSize": 10, "condition": {}});
    for (token, total) in [(&lina_token, 1), (&omar_token, 0)] {
        let found = scene.call_as(token, "POST", "/rule/list/search", body.clone()).await;
        assert_eq!(found["data"]["total"], total);
    }
    let mut uow = scene.store().begin(Actor::system()).await.unwrap();
    data_permission::grant(&mut uow, &lina, Level::Selector, &early).await.unwrap();
    uow.commit().await.unwrap();
    assert_eq!(seen(&lina_token).await, 3);
}

async fn writes_need_their_permission(scene: &Scene) {
    let id = scene.selector("orders").await;
    let rule_id = scene.rule(&id, "r").await;
    let handler = scene.bind(&id, "orders", &[9481]).await;
    let batch = json!({"ids": [id], "enabled": true, "namespaceId": DEFAULT_NAMESPACE});
    let upstream = json!({"url": "a:1", "status": 0, "weight": 1, "props": "{}",
        "namespaceId": DEFAULT_NAMESPACE, "discoveryHandlerId": handler});
    let meta = json!({"appName": "a", "path": "/p", "rpcType": "http", "serviceName": "s",
        "methodName": "m", "enabled": true, "namespaceId": DEFAULT_NAMESPACE});
    let calls = [
        ("POST", "/selector".to_owned(), selector("x")),
        ("PUT", format!("/selector/{id}"), selector("x")),
        ("POST", "/selector/batchEnabled".to_owned(), batch.clone()),
        ("DELETE", "/selector/batch".to_owned(), batch.clone()),
        ("POST", "/rule".to_owned(), rule(&id, "x")),
        ("PUT", format!("/rule/{rule_id}"), rule(&id, "x")),
        ("POST", "/rule/batchEnabled".to_owned(), batch.clone()),
        ("DELETE", "/rule/batch".to_owned(), batch.clone()),
        ("POST", "/proxy-selector/binding".to_owned(), binding(&id, "x", &[])),
        ("POST", "/proxy-selector/addProxySelector".to_owned(), binding(&id, "x", &[])),
        ("PUT", format!("/proxy-selector/{id}"), binding(&id, "x", &[])),
        ("PUT", format!("/proxy-selector/fetch/{handler}"), Value::Null),
        ("DELETE", "/proxy-selector/batch".to_owned(), json!([id])),
        ("POST", "/discovery-upstream".to_owned(), upstream.clone()),
        ("POST", "/discovery-upstream/batch".to_owned(), json!([upstream])),
        ("PUT", format!("/discovery-upstream/{handler}"), json!([])),
        ("DELETE", "/discovery-upstream/batch".to_owned(), json!([id])),
        ("GET", "/meta-data/findAll".to_owned(), Value::Null),
        ("GET", "/meta-data/x".to_owned(), Value::Null),
        ("POST", "/meta-data/createOrUpdate".to_owned(), meta),
        ("POST", "/meta-data/batchEnabled".to_owned(), batch.clone()),
        ("DELETE", "/meta-data/batchDeleted".to_owned(), batch),
        ("POST", "/meta-data/syncData".to_owned(), json!({})),
    ];
    let (_, token) = scene.user("reader", &["system:plugin:list"]).await;
    let version = scene.version().await;
    for (method, path, body) in calls {
        let answer = scene.call_as(&token, method, &path, body).await;
        assert_eq!(answer["code"], 601, "{method} {path}: {answer}");
    }
    assert_eq!(scene.version().await, version);
    // A bad body is told first, also to who may not write.
    let answer = scene.call_as(&token, "POST", "/selector", json!({})).await;
    assert_eq!(answer["code"], 500, "{answer}");
}
