//! Instances that come and go, with people editing in between.

use std::time::Duration;

use longmen_core::model::DEFAULT_NAMESPACE;
use longmen_db::Actor;
use longmen_db::repository::namespace_plugin;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::rows::rows;
use super::{api, instance, send};
use crate::scene::{DIVIDE, Scene, object, outline, with};

/// Nothing takes longer, or it never comes.
const DEADLINE: Duration = Duration::from_secs(20);

const PATHS: [&str; 4] = ["/http/a", "/http/b/**", "/http/%7Bid%7D/c", "/http/d"];

/// All that an instance sends from its start on.
async fn start(scene: &Scene, port: u16, address_first: bool) {
    if address_first {
        send(scene, "register-uri", instance(port, "REGISTER")).await;
    }
    for path in PATHS {
        send(scene, "register-metadata", api(path)).await;
    }
    if !address_first {
        send(scene, "register-uri", instance(port, "REGISTER")).await;
    }
    send(scene, "register-uri", instance(port, "HEARTBEAT")).await;
}

/// All that an instance sends when it stops, and a heartbeat that comes too late.
async fn stop(scene: &Scene, port: u16) {
    send(scene, "offline", instance(port, "OFFLINE")).await;
    send(scene, "register-uri", instance(port, "DELETED")).await;
    send(scene, "register-uri", instance(port, "HEARTBEAT")).await;
}

/// Three instances, ten restarts, all at once: the rows of one registration, and each instance once.
pub(super) async fn instances_and_restarts_at_once_end_in_the_same_rows(scene: &Scene) {
    const RESTARTS: u16 = 10;
    let life = async |port: u16| {
        for restart in 0..RESTARTS {
            start(scene, port, (port + restart).is_multiple_of(2)).await;
            if restart + 1 < RESTARTS {
                stop(scene, port).await;
            }
        }
    };
    tokio::join!(life(8181), life(8182), life(8183));
    let made = rows(scene).await;
    assert_eq!(
        made.selectors,
        ["contextPath /http uri startsWith /http/ ", "divide /http uri startsWith /http/ ",]
    );
    assert_eq!(made.rules.len(), PATHS.len() + 1, "{:?}", made.rules);
    assert_eq!(made.meta_data.len(), PATHS.len(), "{:?}", made.meta_data);
    let urls = [8181, 8182, 8183].map(|port| {
        format!("divide /http http:// 127.0.0.1:{port} 0 50 {{\"warmupTime\":\"10\"}}")
    });
    assert_eq!(made.upstreams, urls);
    let variable = made.rules.iter().find(|rule| rule.contains("%7B")).unwrap();
    assert!(variable.contains(" uri match /http/**/c "), "{variable}");
}

/// The divide selector of `/http`, and the id of its discovery handler.
async fn bound(scene: &Scene) -> (String, String) {
    let list = format!(
        "/selector?pluginId=5&name=/http&namespaceId={DEFAULT_NAMESPACE}&currentPage=1&pageSize=12"
    );
    let id = scene.get(&list).await["dataList"][0]["id"].as_str().unwrap().to_owned();
    let shown = scene.get(&format!("/selector/{id}")).await;
    (id, shown["discoveryHandler"]["id"].as_str().unwrap().to_owned())
}

/// The upstreams as the console shows them, `url status weight`.
async fn shown(scene: &Scene, id: &str) -> Vec<String> {
    let shown = scene.get(&format!("/selector/{id}")).await;
    let list = shown["discoveryUpstreams"].as_array().unwrap();
    let one = |one: &Value| {
        format!("{} {} {}", one["url"].as_str().unwrap(), one["status"], one["weight"])
    };
    list.iter().map(one).collect()
}

/// As the console saves a list: every row is sent and gets a new id.
async fn save(scene: &Scene, handler: &str, list: &[(u16, i32, i32)]) {
    let one = |(port, status, weight): &(u16, i32, i32)| {
        json!({"protocol": "http://", "url": format!("127.0.0.1:{port}"), "status": status,
               "weight": weight, "props": "{\"warmupTime\":\"10\"}",
               "namespaceId": DEFAULT_NAMESPACE, "discoveryHandlerId": handler})
    };
    let list: Vec<Value> = list.iter().map(one).collect();
    scene.ok("PUT", &format!("/discovery-upstream/{handler}"), list.into()).await;
}

pub(super) async fn what_a_person_configured_stays(scene: &Scene) {
    for port in [8181, 8182, 8183] {
        start(scene, port, false).await;
    }
    let (id, handler) = bound(scene).await;
    // A person changes the weight of one, takes one out, adds one, and leaves one as it was.
    save(scene, &handler, &[(8181, 0, 7), (8182, 1, 50), (8183, 0, 50), (9000, 0, 1)]).await;

    for port in [8181, 8182, 8183] {
        send(scene, "register-uri", instance(port, "HEARTBEAT")).await;
        send(scene, "register-uri", instance(port, "REGISTER")).await;
    }
    assert_eq!(
        shown(scene, &id).await,
        ["127.0.0.1:8181 0 7", "127.0.0.1:8182 1 50", "127.0.0.1:8183 0 50", "127.0.0.1:9000 0 1"]
    );

    for port in [8181, 8182, 8183, 9000] {
        stop(scene, port).await;
    }
    assert_eq!(
        shown(scene, &id).await,
        ["127.0.0.1:8181 1 7", "127.0.0.1:8182 1 50", "127.0.0.1:9000 1 1"],
        "only what registered itself goes"
    );

    for port in [8181, 8182, 8183] {
        start(scene, port, true).await;
    }
    assert_eq!(
        shown(scene, &id).await,
        ["127.0.0.1:8181 0 7", "127.0.0.1:8182 1 50", "127.0.0.1:9000 1 1", "127.0.0.1:8183 0 50"],
        "what a person took out stays out"
    );

    // What a person made of a rule or deleted stays so until the service says otherwise.
    let rules =
        format!("/rule?selectorId={id}&namespaceId={DEFAULT_NAMESPACE}&currentPage=1&pageSize=12");
    let rule = scene.get(&rules).await["dataList"][0]["id"].as_str().unwrap().to_owned();
    let mut edited = scene.get(&format!("/rule/{rule}")).await;
    edited["namespaceId"] = DEFAULT_NAMESPACE.into();
    edited["handle"] = "{\"timeout\":9}".into();
    scene.ok("PUT", &format!("/rule/{rule}"), edited).await;
    start(scene, 8181, false).await;
    let kept = scene.get(&format!("/rule/{rule}")).await;
    assert_eq!(kept["handle"], "{\"timeout\":9}");

    let gone = json!({"ids": [id], "namespaceId": DEFAULT_NAMESPACE});
    scene.ok("DELETE", "/selector/batch", gone).await;
    send(scene, "register-uri", instance(8181, "HEARTBEAT")).await;
    let made = rows(scene).await;
    assert!(made.selectors.iter().all(|one| !one.starts_with("divide")), "{:?}", made.selectors);
    assert!(made.upstreams.is_empty());
    start(scene, 8181, false).await;
    assert_eq!(rows(scene).await.upstreams.len(), 1, "a start brings all of it back");
}

pub(super) async fn a_good_bye_is_told_to_stock_gateways(scene: &Scene) {
    start(scene, 8181, false).await;
    start(scene, 8182, false).await;
    let version = scene.version().await;
    stop(scene, 8181).await;
    let told = scene.changes_after(version).await;
    assert_eq!(scene.version().await, version + 1, "one change set");
    assert_eq!(outline(&told), ["DISCOVER_UPSTREAM update UPDATE"; 2]);
    let list = |at: usize| -> Vec<String> {
        let list = object(&told[at].after)["upstreamDataList"].as_array().unwrap().clone();
        list.iter().map(|one| format!("{} {}", one["url"], one["status"])).collect()
    };
    assert_eq!(list(0), ["\"127.0.0.1:8181\" 1", "\"127.0.0.1:8182\" 0"]);
    assert_eq!(list(1), ["\"127.0.0.1:8182\" 0"]);

    let version = scene.version().await;
    stop(scene, 8182).await;
    let told = scene.changes_after(version).await;
    assert_eq!(outline(&told), ["DISCOVER_UPSTREAM update UPDATE"]);
    assert_eq!(object(&told[0].after)["upstreamDataList"], json!([]));
}

/// The Go SDK waits a second for the answer.
pub(super) async fn a_caller_who_leaves_is_served_all_the_same(scene: &Scene) {
    let mut wake = scene.store().wake_up();
    // Nobody else writes meanwhile.
    let mut uow = scene.store().begin(Actor::system()).await.unwrap();
    let link = namespace_plugin::find_by_plugin(&mut uow, DEFAULT_NAMESPACE, DIVIDE).await;
    let ids = [link.unwrap().unwrap().id];
    namespace_plugin::find_many_for_update(&mut uow, &ids).await.unwrap();

    let body = api("/http/a").to_string();
    let request = format!(
        "POST /shenyu-client/register-metadata HTTP/1.1\r\nHost: a\r\nX-Access-Token: {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        scene.token(),
        body.len()
    );
    let mut caller = TcpStream::connect(scene.admin.running().addr).await.unwrap();
    caller.write_all(request.as_bytes()).await.unwrap();
    // Long enough to be read; what is waited for below is the work that began then.
    let early = tokio::time::timeout(Duration::from_millis(500), caller.read_u8()).await;
    assert!(early.is_err(), "answered before it was stored");
    caller.shutdown().await.unwrap();
    let mut left = Vec::new();
    let seen = tokio::time::timeout(DEADLINE, caller.read_to_end(&mut left)).await;
    seen.expect("the admin saw that the caller left").unwrap();
    assert!(left.is_empty(), "answered before it was stored");

    drop(uow);
    let stored = async {
        while rows(scene).await.rules.len() < 2 {
            let _ = tokio::time::timeout(Duration::from_millis(100), wake.next()).await;
        }
    };
    tokio::time::timeout(DEADLINE, stored).await.expect("it was stored all the same");
}

/// As the SDKs send them (sync.md, T32 to T34).
pub(super) async fn other_protocols_are_stored(scene: &Scene) {
    for (kind, ext, port, protocol) in [
        ("dubbo", Some("{\"group\":\"\",\"version\":\"v1\"}"), 20888, None),
        ("grpc", Some("{\"timeout\":5000,\"methodType\":\"UNARY\"}"), 38080, None),
        ("sofa", Some("{\"loadbalance\":\"hash\",\"retries\":3,\"timeout\":-1}"), 12200, None),
        ("tars", Some("{\"methodInfo\":[]}"), 21715, None),
        ("websocket", None, 8189, Some("ws://")),
    ] {
        let path =
            if kind == "websocket" { "/websocket/".to_owned() } else { format!("/{kind}/m") };
        let shape = json!({
            "contextPath": format!("/{kind}"), "path": path, "ruleName": path, "rpcType": kind,
            "serviceName": "com.acme.S", "methodName": kind, "rpcExt": ext,
            "registerMetaData": false,
        });
        let address = json!({"contextPath": format!("/{kind}"), "rpcType": kind, "port": port,
                             "protocol": protocol});
        for _ in 0..2 {
            send(scene, "register-metadata", with(api("/x"), shape.clone())).await;
            send(scene, "register-uri", with(instance(1, "REGISTER"), address.clone())).await;
        }
    }
    let made = rows(scene).await;
    let plugins: Vec<&str> =
        made.selectors.iter().map(|one| one.split(' ').next().unwrap()).collect();
    assert_eq!(plugins, ["contextPath", "dubbo", "grpc", "sofa", "tars", "websocket"]);
    let rules = [
        "contextPath /websocket /websocket uri pathPattern /websocket/** \
         {\"addPrefixed\":false,\"contextPath\":\"/websocket\"}",
        "dubbo /dubbo /dubbo/m uri = /dubbo/m \
         {\"retries\":0,\"loadBalance\":\"random\",\"timeout\":3000}",
        "grpc /grpc /grpc/m uri = /grpc/m ",
        "sofa /sofa /sofa/m uri = /sofa/m \
         {\"retries\":0,\"loadBalance\":\"random\",\"timeout\":3000}",
        "tars /tars /tars/m uri = /tars/m ",
        "websocket /websocket /websocket/ uri startsWith /websocket/ \
         {\"loadBalance\":\"random\",\"retry\":0,\"timeout\":3000}",
    ];
    assert_eq!(made.rules, rules);
    assert_eq!(made.meta_data.len(), 4, "websocket asks for none: {:?}", made.meta_data);
    assert_eq!(
        made.upstreams,
        [
            "dubbo /dubbo - 127.0.0.1:20888 0 50 {\"warmupTime\":\"10\"}",
            "grpc /grpc - 127.0.0.1:38080 0 50 {\"warmupTime\":\"10\"}",
            "sofa /sofa - 127.0.0.1:12200 0 50 {\"warmupTime\":\"10\"}",
            "tars /tars - 127.0.0.1:21715 0 50 {\"warmupTime\":\"10\"}",
            "websocket /websocket ws:// 127.0.0.1:8189 0 50 {\"warmupTime\":\"10\"}",
        ]
    );
    // Stock gateways read these two in the settings of the selector.
    for (kind, listed) in [("dubbo", true), ("tars", true), ("grpc", false), ("sofa", false)] {
        let selector = made.selectors.iter().find(|one| one.starts_with(kind)).unwrap();
        assert_eq!(selector.contains("\"upstreamUrl\":\"127.0.0.1:"), listed, "{selector}");
    }
    // A method that moved keeps its description.
    let moved = json!({"contextPath": "/sofa", "path": "/sofa/n", "ruleName": "/sofa/n",
                       "rpcType": "sofa", "serviceName": "com.acme.S", "methodName": "sofa"});
    send(scene, "register-metadata", with(api("/x"), moved)).await;
    assert_eq!(rows(scene).await.meta_data.len(), 4);
}

pub(super) async fn what_cannot_be_stored_is_left_out(scene: &Scene) {
    let version = scene.version().await;
    for members in [
        json!({"appName": ""}),
        json!({"path": " "}),
        json!({"ruleName": null}),
        json!({"rpcType": "springCloud"}),
        json!({"namespaceId": ""}),
        json!({"namespaceId": "nowhere"}),
        json!({"contextPath": "x".repeat(5_000)}),
    ] {
        send(scene, "register-metadata", with(api("/http/a"), members)).await;
    }
    for members in [
        json!({"contextPath": ""}),
        json!({"host": null}),
        json!({"port": 0}),
        json!({"port": null}),
        json!({"rpcType": "motan"}),
        json!({"namespaceId": "nowhere"}),
    ] {
        send(scene, "register-uri", with(instance(8181, "REGISTER"), members)).await;
    }
    send(scene, "register-uri", instance(8181, "HEARTBEAT")).await;
    send(scene, "offline", instance(8181, "OFFLINE")).await;
    send(scene, "register-apiDoc", json!({})).await;
    assert_eq!(scene.version().await, version, "something was stored");

    let odd = scene.text("POST", "/shenyu-client/register-uri", &instance(1, "GONE")).await;
    assert!(odd.text.contains("eventType: \\\"GONE\\\" is none"), "{}", odd.text);
    // 2.6.1 knows no namespaces.
    let mut old = api("/http/a");
    old.as_object_mut().unwrap().remove("namespaceId");
    send(scene, "register-metadata", old).await;
    assert_eq!(rows(scene).await.meta_data.len(), 1);
}
