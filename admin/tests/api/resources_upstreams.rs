//! Bindings, upstreams and raw ports.

use longmen_core::model::DEFAULT_NAMESPACE;
use serde_json::{Value, json};

use crate::scene::{Scene, binding, object, on_both_stores, outline, with};

on_both_stores!(
    a_binding_announces_itself_and_its_upstreams,
    upstreams_are_written_and_told,
    a_list_is_written_whole_or_not_at_all,
    bindings_are_checked,
    a_raw_port_lives,
);

fn upstream(handler: &str, port: u16) -> Value {
    json!({"protocol": "http://", "url": format!("127.0.0.1:{port}"), "status": 0, "weight": 50,
           "props": "{}", "namespaceId": DEFAULT_NAMESPACE, "discoveryHandlerId": handler})
}

async fn urls(scene: &Scene, selector_id: &str) -> Vec<String> {
    let shown = scene.get(&format!("/selector/{selector_id}")).await;
    let list = shown["discoveryUpstreams"].as_array().unwrap();
    list.iter().map(|row| row["url"].as_str().unwrap().to_owned()).collect()
}

async fn a_binding_announces_itself_and_its_upstreams(scene: &Scene) {
    let id = scene.selector("orders").await;
    let version = scene.version().await;
    let mut body = binding(&id, "orders", &[9481]);
    body["discoveryUpstreams"][0].as_object_mut().unwrap().remove("props");
    let answer = scene.call("POST", "/proxy-selector/binding", body).await;
    assert_eq!(answer, json!({"code": 200, "message": "create success", "data": null}));
    let rows = scene.changes_after(version).await;
    assert_eq!(outline(&rows), ["PROXY_SELECTOR create CREATE", "DISCOVER_UPSTREAM create UPDATE"]);
    assert_eq!(
        object(&rows[0].after),
        json!({"id": id, "name": "orders", "pluginName": "divide", "namespaceId": DEFAULT_NAMESPACE})
    );
    let list = object(&rows[1].after);
    assert_eq!((&list["selectorId"], &list["selectorName"]), (&json!(id), &json!("orders")));
    let shown = scene.get(&format!("/selector/{id}")).await;
    let row = &shown["discoveryUpstreams"][0];
    assert_eq!((&row["props"], &row["weight"]), (&json!("{}"), &json!(50)));
    let started: i64 = row["startupTime"].as_str().unwrap().parse().unwrap();
    assert!(started > 1_700_000_000_000, "the time of the call counts, not what was sent");
    assert_eq!(shown["discoveryVO"]["discoveryName"], "local");
    let pushed = &list["upstreamDataList"][0];
    assert_eq!(pushed["id"], row["id"]);
    let text = longmen_db::date_text(started, scene.store().time_zone());
    assert_eq!(pushed["dateCreated"], text.as_str());
}

async fn upstreams_are_written_and_told(scene: &Scene) {
    let id = scene.selector("orders").await;
    let handler = scene.bind(&id, "orders", &[9481]).await;
    let put = format!("/discovery-upstream/{handler}");

    let version = scene.version().await;
    let body = json!([upstream(&handler, 9481), upstream(&handler, 9483)]);
    let answer = scene.call("PUT", &put, body).await;
    assert_eq!(answer, json!({"code": 200, "message": null, "data": 0}));
    let rows = scene.changes_after(version).await;
    assert_eq!(outline(&rows), ["DISCOVER_UPSTREAM update UPDATE"]);
    assert_eq!(object(&rows[0].before)["upstreamDataList"].as_array().unwrap().len(), 1);
    assert_eq!(object(&rows[0].after)["upstreamDataList"].as_array().unwrap().len(), 2);

    scene.ok("PUT", &put, json!([])).await;
    assert_eq!(urls(scene, &id).await, Vec::<String>::new());
    let list = json!([upstream(&handler, 9484), upstream(&handler, 9485)]);
    let version = scene.version().await;
    assert_eq!(scene.call("POST", "/discovery-upstream/batch", list).await["message"], "");
    assert_eq!(outline(&scene.changes_after(version).await), ["DISCOVER_UPSTREAM update UPDATE"]);
    let answer = scene.call("POST", "/discovery-upstream", upstream(&handler, 9486)).await;
    assert_eq!(answer["message"], "create success");
    assert_eq!(urls(scene, &id).await, ["127.0.0.1:9484", "127.0.0.1:9485", "127.0.0.1:9486"]);

    let shown = scene.get(&format!("/selector/{id}")).await;
    let row_id = shown["discoveryUpstreams"][0]["id"].clone();
    let edited = with(upstream(&handler, 9481), json!({"id": row_id, "status": 1, "weight": 0}));
    let answer = scene.call("POST", "/discovery-upstream", edited).await;
    assert_eq!(answer["message"], "update success");

    // Stock admins push nothing for a delete; our own gateways get the shorter list.
    let version = scene.version().await;
    let answer = scene.call("DELETE", "/discovery-upstream/batch", json!([row_id, "nope"])).await;
    assert_eq!(answer, json!({"code": 200, "message": "delete success", "data": null}));
    let rows = scene.changes_after(version).await;
    assert_eq!(outline(&rows), ["DISCOVER_UPSTREAM update -"]);
    assert_eq!(object(&rows[0].after)["upstreamDataList"].as_array().unwrap().len(), 2);

    let version = scene.version().await;
    let fetch = format!("/proxy-selector/fetch/{handler}");
    let answer = scene.call("PUT", &fetch, Value::Null).await;
    assert_eq!(answer, json!({"code": 200, "message": "", "data": null}));
    assert_eq!(outline(&scene.changes_after(version).await), ["DISCOVER_UPSTREAM update UPDATE"]);
}

/// C-09: what fails half-way leaves nothing behind, neither rows nor changes.
async fn a_list_is_written_whole_or_not_at_all(scene: &Scene) {
    let id = scene.selector("orders").await;
    let twice = binding(&id, "orders", &[9481, 9482, 9481]);
    let text = scene.refused("POST", "/proxy-selector/binding", twice).await;
    assert!(text.to_lowercase().contains("unique"), "{text}");
    assert_eq!(scene.get(&format!("/selector/{id}")).await["discoveryVO"], Value::Null);
    let find = format!("/discovery?pluginName=divide&level=0&namespaceId={DEFAULT_NAMESPACE}");
    assert_eq!(scene.get(&find).await, Value::Null);

    let handler = scene.bind(&id, "orders", &[9481]).await;
    let list =
        json!([upstream(&handler, 9482), upstream(&handler, 9483), upstream(&handler, 9482)]);
    scene.refused("PUT", &format!("/discovery-upstream/{handler}"), list.clone()).await;
    scene.refused("POST", "/discovery-upstream/batch", list).await;
    scene.refused("POST", "/discovery-upstream", upstream(&handler, 9481)).await;
    assert_eq!(urls(scene, &id).await, ["127.0.0.1:9481"]);
}

async fn bindings_are_checked(scene: &Scene) {
    let other = scene.other_namespace().await;
    let id = scene.selector("orders").await;
    let bind = "/proxy-selector/binding";
    let base = binding(&id, "orders", &[9481]);
    let discovery = |kind: &str| json!({"discoveryType": kind, "serverList": ""});
    for (members, text) in [
        (
            json!({"type": null}),
            "Request error! invalid argument [type: must not be blank]".to_owned(),
        ),
        (
            json!({"selectorId": "nope"}),
            "selectorId: \"nope\" is not there, expected the id of a selector".to_owned(),
        ),
        (
            json!({"namespaceId": other}),
            format!(
                "namespaceId: {other} is not the namespace of the selector {id}, expected \
                 {DEFAULT_NAMESPACE}"
            ),
        ),
        (
            json!({"pluginName": "websocket"}),
            format!(
                "pluginName: websocket is not the plugin of the selector {id}, expected divide"
            ),
        ),
        (
            json!({"discovery": discovery("moon")}),
            "shenyu discovery mode current didn't support moon".to_owned(),
        ),
        (
            json!({"discovery": discovery("nacos")}),
            "discovery.discoveryType: nacos is not served by this admin, expected local".to_owned(),
        ),
        (
            json!({"discovery": {"id": "nope"}}),
            format!("discovery.id: nope is not there, expected a discovery of {DEFAULT_NAMESPACE}"),
        ),
        (
            json!({"discoveryUpstreams": [{"url": "a:1"}, {"url": "a:99999"}]}),
            "discoveryUpstreams[1].url: \"a:99999\" is no address, expected host:port with a port \
             from 1 to 65535"
                .to_owned(),
        ),
    ] {
        assert_eq!(scene.refused("POST", bind, with(base.clone(), members)).await, text);
    }
    let handler = scene.bind(&id, "orders", &[9481]).await;
    let text = scene.refused("POST", bind, base).await;
    assert!(text.contains(&format!("{id} is bound already, by the discovery handler {handler}")));

    let elements = json!([{"url": "a:1", "namespaceId": DEFAULT_NAMESPACE}]);
    let text = scene.refused("PUT", "/discovery-upstream/nope", elements.clone()).await;
    let expected = [
        "discoveryHandlerId: discovery upstream is not existed",
        "discoveryUpstreamDTO[0].discoveryHandlerId: discoveryHandlerId can't be null",
        "discoveryUpstreamDTO[0].status: status can't be null",
        "discoveryUpstreamDTO[0].weight: weight can't be null",
        "discoveryUpstreamDTO[0].props: props can't be null",
    ]
    .map(|text| format!("updateDiscoveryUpstream.{text}"));
    assert_eq!(text, expected.join(", "));
    let text = scene.refused("POST", "/discovery-upstream/batch", elements).await;
    assert!(text.starts_with("createDiscoveryUpstreamList.discoveryUpstreamDTOList[0]."), "{text}");
    let text = scene.refused("POST", "/discovery-upstream", upstream("nope", 9481)).await;
    assert_eq!(
        text,
        "discoveryHandlerId: nope is not there, expected the id of a discovery handler"
    );
    let elsewhere = with(upstream(&handler, 9482), json!({"namespaceId": other}));
    let text = scene.refused("POST", "/discovery-upstream", elsewhere).await;
    assert!(text.starts_with(&format!("namespaceId: {other} is not the namespace of orders")));
    assert_eq!(
        scene.refused("DELETE", "/discovery-upstream/batch", json!([])).await,
        "deleteDiscoveryUpstream.ids: must not be empty"
    );
}

async fn a_raw_port_lives(scene: &Scene) {
    let body = with(
        binding("", "mysql", &[9481]),
        json!({"pluginName": "tcp", "type": "tcp", "forwardPort": 9499,
               "props": "{\"loadBalance\":\"roundRobin\"}"}),
    );
    let version = scene.version().await;
    let create = "/proxy-selector/addProxySelector";
    assert_eq!(scene.call("POST", create, body.clone()).await["message"], "create success");
    let rows = scene.changes_after(version).await;
    assert_eq!(outline(&rows), ["PROXY_SELECTOR create CREATE", "DISCOVER_UPSTREAM create UPDATE"]);
    assert_eq!(object(&rows[0].after)["props"], json!({"loadBalance": "roundRobin"}));
    let id = rows[0].object_id.clone();

    let edited = with(body.clone(), json!({"forwardPort": 9498}));
    let version = scene.version().await;
    let answer = scene.call("PUT", &format!("/proxy-selector/{id}"), edited).await;
    assert_eq!(answer["message"], "update success");
    let rows = scene.changes_after(version).await;
    // Stock gateways are told the upstreams alone.
    assert_eq!(outline(&rows), ["PROXY_SELECTOR update -", "DISCOVER_UPSTREAM update UPDATE"]);
    let started = longmen_db::date_text(0, scene.store().time_zone());
    assert_eq!(object(&rows[1].after)["upstreamDataList"][0]["dateCreated"], started.as_str());

    let list = format!("/proxy-selector?namespaceId={DEFAULT_NAMESPACE}&currentPage=1&pageSize=12");
    let listed = scene.get(&list).await;
    assert_eq!(listed["page"]["totalCount"], 1);
    assert_eq!(listed["dataList"][0]["forwardPort"], 9498);
    assert_eq!(listed["dataList"][0]["discovery"]["name"], "mysql");
    assert_eq!(listed["dataList"][0]["discoveryUpstreams"][0]["startupTime"], "0");
    let none = scene.get(&format!("{list}&name=nope")).await;
    assert_eq!(none["dataList"], json!([]));

    for (members, text) in [
        (json!({"forwardPort": 0}), "forwardPort: 0 is no port, expected one from 1 to 65535"),
        (
            json!({"forwardPort": null}),
            "forwardPort: null is no port, expected one from 1 to 65535",
        ),
        (
            json!({"props": "[]"}),
            "props: \"[]\" is no JSON object, expected one such as {\"loadBalance\":\"random\"}",
        ),
    ] {
        assert_eq!(scene.refused("POST", create, with(body.clone(), members)).await, text);
    }
    let unknown = scene.refused("PUT", "/proxy-selector/nope", body).await;
    assert_eq!(unknown, "id: nope is not there, expected the id of a proxy selector");

    let version = scene.version().await;
    let answer = scene.call("DELETE", "/proxy-selector/batch", json!([id])).await;
    assert_eq!(answer["message"], "delete success");
    let rows = scene.changes_after(version).await;
    assert_eq!(outline(&rows), ["PROXY_SELECTOR delete DELETE", "DISCOVER_UPSTREAM delete -"]);
    assert_eq!(scene.get(&list).await["page"]["totalCount"], 0);
}
