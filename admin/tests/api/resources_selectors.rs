//! Selectors and rules: writes and what they leave in the change log.

use longmen_core::model::{DEFAULT_NAMESPACE, Level};
use serde_json::{Value, json};

use crate::scene::{Scene, object, on_both_stores, outline, rule, selector, with};

on_both_stores!(
    a_selector_lives,
    a_rule_lives,
    batches_switch_and_delete,
    another_namespace_changes_nothing,
    a_selector_takes_along_what_is_its_own,
    what_no_gateway_could_use_is_refused,
    references_are_checked,
    a_rule_moves_to_another_selector,
    condition_ids_stay_with_their_selector,
);

async fn a_selector_lives(scene: &Scene) {
    let version = scene.version().await;
    let id = scene.selector("orders").await;
    let rows = scene.changes_after(version).await;
    assert_eq!(outline(&rows), ["SELECTOR create UPDATE"]);
    assert_eq!((rows[0].object_id.as_str(), rows[0].before.as_ref()), (id.as_str(), None));
    assert_eq!(object(&rows[0].after)["pluginName"], "divide");

    let version = scene.version().await;
    let edited = with(
        selector("orders"),
        json!({"sort": 7, "selectorConditions": [
        {"paramType": "header", "operator": "=", "paramName": "x", "paramValue": " 1 "}]}),
    );
    assert_eq!(scene.ok("PUT", &format!("/selector/{id}"), edited).await, 1);
    let rows = scene.changes_after(version).await;
    assert_eq!(outline(&rows), ["SELECTOR update UPDATE"]);
    assert_eq!(object(&rows[0].before)["conditionList"][0]["paramValue"], "/orders/");
    let after = object(&rows[0].after);
    assert_eq!(after["conditionList"][0]["paramValue"], "1", "values are trimmed");
    assert_eq!((&after["sort"], rows[0].actor.as_str()), (&json!(7), "admin"));

    let shown = scene.get(&format!("/selector/{id}")).await;
    assert_eq!(shown["sort"], 7);
    assert_eq!(shown["selectorConditions"][0]["selectorId"], id.as_str());
    assert_eq!(shown["discoveryHandler"], Value::Null);

    // A create that names an id is an edit.
    let named = with(selector("renamed"), json!({"id": id}));
    assert_eq!(scene.ok("POST", "/selector", named).await, id.as_str());
    assert_eq!(scene.get(&format!("/selector/{id}")).await["name"], "renamed");
    let log = scene.get("/operation-record/log/list").await;
    let types: Vec<&str> =
        log.as_array().unwrap().iter().filter_map(|row| row["operationType"].as_str()).collect();
    assert_eq!(types, ["UPDATE:Selector", "UPDATE:Selector", "CREATE:Selector"]);
}

async fn a_rule_lives(scene: &Scene) {
    let selector_id = scene.selector("orders").await;
    let version = scene.version().await;
    let id = scene.rule(&selector_id, "all").await;
    let rows = scene.changes_after(version).await;
    assert_eq!(outline(&rows), ["RULE create UPDATE"]);
    let after = object(&rows[0].after);
    assert_eq!((&after["pluginName"], &after["loged"]), (&json!("divide"), &json!(true)));
    assert_eq!(after["conditionDataList"].as_array().unwrap().len(), 2);

    let version = scene.version().await;
    let edited = with(rule(&selector_id, "all"), json!({"sort": 1001, "handle": null}));
    assert_eq!(scene.ok("PUT", &format!("/rule/{id}"), edited).await, 1);
    assert_eq!(outline(&scene.changes_after(version).await), ["RULE update UPDATE"]);
    let shown = scene.get(&format!("/rule/{id}")).await;
    assert_eq!((&shown["sort"], &shown["handle"]), (&json!(1001), &Value::Null));
    assert_eq!(shown["ruleConditions"][1]["ruleId"], id.as_str());
    assert!(shown.get("namespaceId").is_none());
    assert_eq!(
        scene.refused("GET", "/rule/nope", Value::Null).await,
        "detailRule.id: rule is not existed"
    );
    assert_eq!(
        scene.refused("PUT", "/rule/nope", rule(&selector_id, "all")).await,
        "updateRule.id: rule is not existed"
    );
}

async fn batches_switch_and_delete(scene: &Scene) {
    let (a, b) = (scene.selector("a").await, scene.selector("b").await);
    let version = scene.version().await;
    let body = json!({"ids": [b, a, b], "enabled": false, "namespaceId": DEFAULT_NAMESPACE});
    let answer = scene.call("POST", "/selector/batchEnabled", body).await;
    assert_eq!(answer, json!({"code": 200, "message": "enable success", "data": null}));
    let rows = scene.changes_after(version).await;
    assert_eq!(outline(&rows), ["SELECTOR update UPDATE", "SELECTOR update UPDATE"]);
    assert_eq!([rows[0].object_id.as_str(), rows[1].object_id.as_str()], [b.as_str(), a.as_str()]);
    let body = json!({"ids": [a, "nope"], "enabled": true});
    assert_eq!(
        scene.refused("POST", "/selector/batchEnabled", body).await,
        "ids: nope is not there, expected ids of selectors"
    );
    assert_eq!(scene.get(&format!("/selector/{a}")).await["enabled"], false);

    let (r, s) = (scene.rule(&a, "r").await, scene.rule(&a, "s").await);
    let body = json!({"ids": [r, s], "enabled": false});
    scene.ok("POST", "/rule/batchEnabled", body).await;
    let version = scene.version().await;
    let body = json!({"ids": [s, r, "nope"], "namespaceId": DEFAULT_NAMESPACE});
    assert_eq!(scene.ok("DELETE", "/rule/batch", body).await, 2);
    let rows = scene.changes_after(version).await;
    assert_eq!(outline(&rows), ["RULE delete DELETE", "RULE delete DELETE"]);
    assert_eq!(object(&rows[0].before)["conditionDataList"].as_array().unwrap().len(), 2);

    for ids in [json!([]), json!(["nope"])] {
        let body = json!({"ids": ids, "namespaceId": DEFAULT_NAMESPACE});
        let text = scene.refused("DELETE", "/selector/batch", body).await;
        assert!(text.starts_with("ids: "), "{text}");
    }
    let body = json!({"ids": [], "namespaceId": DEFAULT_NAMESPACE});
    assert_eq!(scene.ok("DELETE", "/rule/batch", body).await, 0);
}

async fn another_namespace_changes_nothing(scene: &Scene) {
    let other = scene.other_namespace().await;
    let id = scene.selector("orders").await;
    let rule_id = scene.rule(&id, "all").await;
    let version = scene.version().await;
    let body = with(
        selector("taken"),
        json!({"namespaceId": other, "selectorConditions": [
            {"paramType": "header", "operator": "=", "paramName": "x", "paramValue": "1"}]}),
    );
    assert_eq!(scene.ok("PUT", &format!("/selector/{id}"), body).await, 0);
    let body = with(rule(&id, "taken"), json!({"namespaceId": other}));
    assert_eq!(scene.ok("PUT", &format!("/rule/{rule_id}"), body).await, 0);
    let body = json!({"ids": [rule_id], "namespaceId": other});
    assert_eq!(scene.ok("DELETE", "/rule/batch", body.clone()).await, 0);
    let body = with(body, json!({"ids": [id], "enabled": false}));
    scene.refused("POST", "/selector/batchEnabled", body.clone()).await;
    scene.refused("DELETE", "/selector/batch", body).await;

    let shown = scene.get(&format!("/selector/{id}")).await;
    assert_eq!((&shown["name"], &shown["enabled"]), (&json!("orders"), &json!(true)));
    assert_eq!(shown["selectorConditions"][0]["paramValue"], "/orders/");
    assert_eq!(scene.version().await, version);
}

/// C-10: nothing of a deleted selector is left, and its name can be used again.
async fn a_selector_takes_along_what_is_its_own(scene: &Scene) {
    let (user_id, _) = scene.user("lina", &[]).await;
    let id = scene.selector("orders").await;
    let mut rules = Vec::new();
    for name in ["r1", "r2", "r3"] {
        rules.push(scene.rule(&id, name).await);
    }
    scene.bind(&id, "orders", &[9481, 9482, 9483]).await;
    let kept = scene.selector("kept").await;
    let granted = granted(scene, &user_id).await;
    assert_eq!(granted.len(), 5, "two selectors and three rules");

    let version = scene.version().await;
    let body = json!({"ids": [id], "namespaceId": DEFAULT_NAMESPACE});
    assert_eq!(scene.ok("DELETE", "/selector/batch", body).await, 1);
    let rows = scene.changes_after(version).await;
    assert_eq!(
        outline(&rows),
        [
            "PROXY_SELECTOR delete DELETE",
            "DISCOVER_UPSTREAM delete DELETE",
            "RULE delete DELETE",
            "RULE delete DELETE",
            "RULE delete DELETE",
            "SELECTOR delete DELETE",
        ]
    );
    let lists = object(&rows[1].before)["upstreamDataList"].clone();
    assert_eq!(lists.as_array().unwrap().len(), 3);
    assert_eq!(self::granted(scene, &user_id).await, [kept]);
    let find = format!("/discovery?pluginName=divide&level=0&namespaceId={DEFAULT_NAMESPACE}");
    assert_eq!(scene.get(&find).await, Value::Null);
    for rule_id in rules {
        scene.refused("GET", &format!("/rule/{rule_id}"), Value::Null).await;
    }

    let again = scene.selector("orders").await;
    let list = format!(
        "/rule?selectorId={again}&namespaceId={DEFAULT_NAMESPACE}&currentPage=1&pageSize=12"
    );
    assert_eq!(scene.get(&list).await["page"]["totalCount"], 0);
    assert_eq!(scene.get(&format!("/selector/{again}")).await["discoveryUpstreams"], Value::Null);
}

async fn granted(scene: &Scene, user_id: &str) -> Vec<String> {
    use longmen_db::repository::data_permission::granted;
    let mut tx = scene.store().read().await.unwrap();
    let mut all = granted(&mut tx, user_id, Level::Selector).await.unwrap();
    all.extend(granted(&mut tx, user_id, Level::Rule).await.unwrap());
    all
}

async fn what_no_gateway_could_use_is_refused(scene: &Scene) {
    let id = scene.selector("orders").await;
    for (condition, text) in [
        (json!({"operator": "=", "paramValue": " /x"}), "The URI must start with '/'"),
        (
            json!({"operator": "=", "paramValue": "/x "}),
            "The URI cannot contain whitespaces. Current value: /x ",
        ),
        (
            json!({"operator": "match", "paramValue": "  "}),
            "The URI condition value cannot be empty.",
        ),
        (json!({"operator": "isBlank", "paramValue": "/x"}), "The URI must be blank"),
        (
            json!({"operator": "pathPattern", "paramValue": "/a/**/c"}),
            "No more pattern data allowed after {*...} or ** pattern element",
        ),
        (
            json!({"operator": "regex", "paramValue": "["}),
            "error parsing regexp: missing closing ]: `[`",
        ),
    ] {
        let mut condition = with(json!({"paramType": "uri", "paramName": "/"}), condition);
        let body = with(selector("x"), json!({"selectorConditions": [condition.take()]}));
        let sent = body["selectorConditions"][0].clone();
        assert_eq!(scene.refused("POST", "/selector", body.clone()).await, text, "{sent}");
        assert_eq!(scene.refused("PUT", &format!("/selector/{id}"), body).await, text);
        let body = with(rule(&id, "x"), json!({"ruleConditions": [sent]}));
        assert_eq!(scene.refused("POST", "/rule", body).await, text);
    }
    for (members, start) in [
        (json!({"paramType": "uri", "operator": ">"}), "condition 0: operator is \">\", expected "),
        (
            json!({"paramType": "moon", "operator": "="}),
            "condition 0: paramType is \"moon\", expected ",
        ),
    ] {
        let condition = with(json!({"paramName": "/", "paramValue": "/1"}), members);
        let body = with(selector("x"), json!({"selectorConditions": [condition]}));
        let text = scene.refused("POST", "/selector", body).await;
        assert!(text.starts_with(start), "{text}");
    }
    let body = with(rule(&id, "x"), json!({"handle": "not json"}));
    let text = scene.refused("POST", "/rule", body).await;
    assert!(text.starts_with("handle: `not json` is no JSON text"), "{text}");
    let body = with(selector("x"), json!({"handle": "[{"}));
    assert!(scene.refused("POST", "/selector", body).await.starts_with("handle: `[{`"));
    // C-28: what means "nothing set" is taken.
    for handle in [Value::Null, json!(""), json!("{}"), json!("null")] {
        let body = with(rule(&id, "ok"), json!({"handle": handle}));
        assert_eq!(scene.ok("POST", "/rule", body).await, 1, "{handle}");
    }
}

async fn references_are_checked(scene: &Scene) {
    let other = scene.other_namespace().await;
    let id = scene.selector("orders").await;
    for (body, text) in [
        (json!({"pluginId": "nope"}), "pluginId: plugin is not existed"),
        (json!({"namespaceId": "nope"}), "namespaceId: namespaceId is not existed"),
        (json!({"id": "nope"}), "id: selector is not existed"),
    ] {
        assert_eq!(
            scene.refused("POST", "/selector", with(selector("x"), body)).await,
            format!("Request error! invalid argument [{text}]")
        );
    }
    assert_eq!(
        scene
            .refused(
                "PUT",
                &format!("/selector/{id}"),
                with(selector("x"), json!({"pluginId": "26"}))
            )
            .await,
        "pluginId: 26 is not the plugin of this selector, expected 5 (divide)"
    );
    assert_eq!(
        scene.refused("POST", "/rule", rule("nope", "x")).await,
        "Request error! invalid argument [selectorId: selector is not existed]"
    );
    assert_eq!(
        scene.refused("POST", "/rule", with(rule(&id, "x"), json!({"namespaceId": other}))).await,
        format!(
            "namespaceId: {other} is not the namespace of the selector {id}, expected {DEFAULT_NAMESPACE}"
        )
    );
    assert_eq!(
        scene.refused("POST", "/selector", Value::Null).await,
        "The system is busy, please try again later"
    );
}

async fn a_rule_moves_to_another_selector(scene: &Scene) {
    let (from, to) = (scene.selector("from").await, scene.selector("to").await);
    let id = scene.rule(&from, "r").await;
    let version = scene.version().await;
    assert_eq!(scene.ok("PUT", &format!("/rule/{id}"), rule(&to, "r")).await, 1);
    let rows = scene.changes_after(version).await;
    assert_eq!(outline(&rows), ["RULE delete DELETE", "RULE create UPDATE"]);
    assert_eq!(object(&rows[0].before)["selectorId"], from.as_str());
    assert_eq!(object(&rows[1].after)["selectorId"], to.as_str());
}

async fn condition_ids_stay_with_their_selector(scene: &Scene) {
    let (a, b) = (scene.selector("a").await, scene.selector("b").await);
    let shown = scene.get(&format!("/selector/{a}")).await;
    let condition = shown["selectorConditions"][0].clone();
    let edited = with(selector("a"), json!({"selectorConditions": [condition]}));
    assert_eq!(scene.ok("PUT", &format!("/selector/{a}"), edited.clone()).await, 1);
    assert_eq!(scene.ok("PUT", &format!("/selector/{b}"), edited).await, 1);
    let id_of = async |id: &str| {
        scene.get(&format!("/selector/{id}")).await["selectorConditions"][0]["id"].clone()
    };
    assert_eq!(id_of(&a).await, condition["id"]);
    assert_ne!(id_of(&b).await, condition["id"]);
}
