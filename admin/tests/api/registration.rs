//! Services that register themselves, as the SDKs of the reference do it.

mod lives;
mod probes;
mod recordings;
mod rows;

use longmen_core::model::DEFAULT_NAMESPACE;
use serde_json::{Value, json};

use crate::scene::{Scene, object, on_both_stores, outline, with};
use lives::{
    a_caller_who_leaves_is_served_all_the_same, a_good_bye_is_told_to_stock_gateways,
    instances_and_restarts_at_once_end_in_the_same_rows, other_protocols_are_stored,
    what_a_person_configured_stays, what_cannot_be_stored_is_left_out,
};
use recordings::the_recorded_clients_are_served;
use rows::rows;

on_both_stores!(
    an_api_and_an_instance_make_a_route,
    the_same_again_changes_nothing,
    the_recorded_clients_are_served,
    instances_and_restarts_at_once_end_in_the_same_rows,
    what_a_person_configured_stays,
    a_good_bye_is_told_to_stock_gateways,
    a_caller_who_leaves_is_served_all_the_same,
    other_protocols_are_stored,
    what_cannot_be_stored_is_left_out,
);

/// An API as the Java SDK sends it (sync.md, T28).
fn api(path: &str) -> Value {
    json!({
        "appName": "orders", "contextPath": "/http", "path": path, "pathDesc": "find an order",
        "rpcType": "http", "serviceName": "com.acme.OrderController", "methodName": "findById",
        "ruleName": path, "parameterTypes": "java.lang.String", "enabled": true,
        "pluginNames": [], "registerMetaData": true, "timeMillis": 1_753_000_500_123_u64,
        "addPrefixed": false, "namespaceId": DEFAULT_NAMESPACE,
    })
}

/// An instance as the Java SDK sends it.
fn instance(port: u16, event: &str) -> Value {
    json!({
        "protocol": "http://", "appName": "orders", "contextPath": "/http", "rpcType": "http",
        "host": "127.0.0.1", "port": port, "eventType": event, "namespaceId": DEFAULT_NAMESPACE,
    })
}

/// Sends a registration, which must be taken.
async fn send(scene: &Scene, path: &str, body: Value) {
    let answer = scene.text("POST", &format!("/shenyu-client/{path}"), &body).await;
    assert_eq!(answer.text, "success", "{path} {body}");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers["content-type"], "text/plain;charset=UTF-8");
}

async fn an_api_and_an_instance_make_a_route(scene: &Scene) {
    let version = scene.version().await;
    send(scene, "register-metadata", api("/http/order/findById")).await;
    let made = scene.changes_after(version).await;
    assert_eq!(
        outline(&made),
        [
            "SELECTOR create UPDATE",
            "SELECTOR create UPDATE",
            "RULE create UPDATE",
            "META_DATA create CREATE",
            "RULE create UPDATE",
        ]
    );
    assert_eq!(scene.version().await, version + 1, "one change set");
    assert_eq!((made[0].actor.as_str(), made[0].source.as_str()), ("admin (orders)", "sdk"));
    let selector = object(&made[0].after);
    assert_eq!((&selector["pluginName"], &selector["name"]), (&json!("divide"), &json!("/http")));
    assert_eq!(
        selector["conditionList"],
        json!([{"paramType": "uri", "operator": "startsWith", "paramName": "/",
                "paramValue": "/http/"}])
    );

    let version = scene.version().await;
    send(scene, "register-uri", instance(8189, "REGISTER")).await;
    let told = scene.changes_after(version).await;
    assert_eq!(outline(&told), ["DISCOVER_UPSTREAM update UPDATE"]);
    let list = object(&told[0].after);
    assert_eq!((&list["selectorId"], &list["selectorName"]), (&selector["id"], &json!("/http")));
    let upstream = &list["upstreamDataList"][0];
    assert_eq!(
        (&upstream["protocol"], &upstream["url"], &upstream["status"], &upstream["weight"]),
        (&json!("http://"), &json!("127.0.0.1:8189"), &json!(0), &json!(50))
    );

    let id = selector["id"].as_str().unwrap();
    let shown = scene.get(&format!("/selector/{id}")).await;
    assert_eq!(shown["discoveryUpstreams"][0]["url"], "127.0.0.1:8189");
    assert_eq!(shown["discoveryVO"]["discoveryName"], "divide_default_discovery");
    let list =
        format!("/rule?selectorId={id}&namespaceId={DEFAULT_NAMESPACE}&currentPage=1&pageSize=9");
    let rules = scene.get(&list).await;
    assert_eq!(rules["dataList"][0]["name"], "/http/order/findById");
}

async fn the_same_again_changes_nothing(scene: &Scene) {
    send(scene, "register-metadata", api("/http/a")).await;
    send(scene, "register-uri", instance(8189, "REGISTER")).await;
    let (once, version) = (rows(scene).await, scene.version().await);
    for _ in 0..3 {
        send(scene, "register-uri", instance(8189, "REGISTER")).await;
        send(scene, "register-metadata", api("/http/a")).await;
        send(scene, "register-uri", instance(8189, "HEARTBEAT")).await;
    }
    assert_eq!(rows(scene).await, once);
    assert_eq!(scene.version().await, version, "gateways were told something");
    assert_eq!((once.selectors.len(), once.rules.len(), once.upstreams.len()), (2, 2, 1));

    let other = with(api("/http/a"), json!({"methodName": "find"}));
    send(scene, "register-metadata", other).await;
    assert_eq!(outline(&scene.changes_after(version).await), ["META_DATA update UPDATE"]);
}
