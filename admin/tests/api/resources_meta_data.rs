//! Metadata.

use longmen_core::model::DEFAULT_NAMESPACE;
use serde_json::{Value, json};

use crate::scene::{Scene, object, on_both_stores, outline, with};

on_both_stores!(
    metadata_lives,
    paths_are_unique_in_their_namespace,
    protocol_settings_are_those_of_the_service,
    edits_of_one_service_form_a_chain,
    texts_that_rows_are_found_by_have_a_limit,
);

const SAVE: &str = "/meta-data/createOrUpdate";

fn meta_data(path: &str) -> Value {
    json!({"appName": "shop", "path": path, "pathDesc": "find", "rpcType": "dubbo",
           "serviceName": "com.acme.Shop", "methodName": "find", "parameterTypes": "int",
           "rpcExt": "{\"timeout\":1000}", "enabled": true, "namespaceId": DEFAULT_NAMESPACE})
}

async fn create(scene: &Scene, body: Value) -> String {
    let version = scene.version().await;
    assert_eq!(scene.call("POST", SAVE, body).await["message"], "create success");
    let rows = scene.changes_after(version).await;
    assert_eq!(outline(&rows), ["META_DATA create CREATE"]);
    rows[0].object_id.clone()
}

async fn metadata_lives(scene: &Scene) {
    let id = create(scene, meta_data("/shop/find")).await;
    let version = scene.version().await;
    let edited = with(
        meta_data("/shop/find"),
        json!({"id": id, "pathDesc": "new", "enabled": false, "contextPath": "/shop"}),
    );
    assert_eq!(scene.call("POST", SAVE, edited).await["message"], "update success");
    let rows = scene.changes_after(version).await;
    assert_eq!(outline(&rows), ["META_DATA update UPDATE"]);
    let after = object(&rows[0].after);
    assert_eq!(after["namespaceId"], DEFAULT_NAMESPACE, "told, unlike by the reference");
    assert_eq!((&after["contextPath"], &after["enabled"]), (&json!("/shop"), &json!(true)));

    let shown = scene.get(&format!("/meta-data/{id}")).await;
    assert_eq!((&shown["pathDesc"], &shown["enabled"]), (&json!("new"), &json!(true)));
    assert_eq!(scene.get("/meta-data/nope").await["id"], Value::Null);

    let switch = |ids: Value, namespace: &str| json!({"ids": ids, "enabled": false, "namespaceId": namespace});
    let body = switch(json!([id, "nope"]), DEFAULT_NAMESPACE);
    assert_eq!(
        scene.call("POST", "/meta-data/batchEnabled", body).await["message"],
        "enable success"
    );
    let other = scene.other_namespace().await;
    for body in [switch(json!(["nope"]), DEFAULT_NAMESPACE), switch(json!([id]), &other)] {
        assert_eq!(scene.refused("POST", "/meta-data/batchEnabled", body).await, "ID NOT EXIST!");
    }

    let version = scene.version().await;
    let answer = scene.call("POST", "/meta-data/syncData", json!({})).await;
    assert_eq!(answer, json!({"code": 200, "message": "", "data": null}));
    assert_eq!(outline(&scene.changes_after(version).await), ["META_DATA refresh REFRESH"]);

    let groups = scene.get("/meta-data/findAllGroup").await;
    assert_eq!(groups["shop"][0]["id"], id.as_str());
    assert_eq!(scene.get("/meta-data/findAll").await.as_array().unwrap().len(), 1);
    let body = json!({"ids": [id], "namespaceId": other});
    assert_eq!(scene.ok("DELETE", "/meta-data/batchDeleted", body).await, 0);
    let version = scene.version().await;
    let body = json!({"ids": [id], "namespaceId": DEFAULT_NAMESPACE});
    assert_eq!(scene.ok("DELETE", "/meta-data/batchDeleted", body).await, 1);
    assert_eq!(outline(&scene.changes_after(version).await), ["META_DATA delete DELETE"]);
}

async fn paths_are_unique_in_their_namespace(scene: &Scene) {
    const TAKEN: &str = "The path already exists and can't be added repeatedly!";
    let other = scene.other_namespace().await;
    create(scene, meta_data("/a")).await;
    let b = create(scene, meta_data("/b")).await;
    assert_eq!(scene.refused("POST", SAVE, meta_data("/a")).await, TAKEN);
    assert_eq!(scene.refused("POST", SAVE, with(meta_data("/a"), json!({"id": b}))).await, TAKEN);

    // The reference looks at all namespaces when metadata is changed; ours at its own.
    let elsewhere = with(meta_data("/a"), json!({"namespaceId": other}));
    assert_eq!(scene.call("POST", SAVE, elsewhere.clone()).await["message"], "create success");
    let elsewhere = with(elsewhere, json!({"id": b, "path": "/c"}));
    let text = scene.refused("POST", SAVE, elsewhere).await;
    assert_eq!(text, format!("namespaceId: {other} has no metadata {b}, expected its namespace"));
    assert_eq!(scene.get(&format!("/meta-data/{b}")).await["path"], "/b");

    assert_eq!(
        scene.refused("POST", SAVE, json!({"id": "nope", "namespaceId": "nope"})).await,
        "Request error! invalid argument [appName: must not be blank| path: must not be blank| \
         rpcType: must not be blank| serviceName: must not be blank| methodName: must not be blank| \
         enabled: must not be null| id: meta data is not existed| \
         namespaceId: namespaceId is not existed]"
    );
}

async fn protocol_settings_are_those_of_the_service(scene: &Scene) {
    let a = create(scene, meta_data("/a")).await;
    let b = create(scene, meta_data("/b")).await;
    create(scene, with(meta_data("/c"), json!({"serviceName": "com.acme.Other"}))).await;
    let version = scene.version().await;
    let edited = with(meta_data("/a"), json!({"id": a, "rpcExt": "{\"timeout\":5}"}));
    scene.ok("POST", SAVE, edited).await;
    let rows = scene.changes_after(version).await;
    assert_eq!(outline(&rows), ["META_DATA update UPDATE", "META_DATA update UPDATE"]);
    assert_eq!([rows[0].object_id.as_str(), rows[1].object_id.as_str()], [a.as_str(), b.as_str()]);
    assert_eq!(object(&rows[1].before)["rpcExt"], "{\"timeout\":1000}");
    assert_eq!(scene.get(&format!("/meta-data/{b}")).await["rpcExt"], "{\"timeout\":5}");
}

/// Edits that each touch all of a service, from two sides at once: none stands in another's way, and
/// the history of each object is one line.
async fn edits_of_one_service_form_a_chain(scene: &Scene) {
    const ROUNDS: u32 = 15;
    let mut ids = Vec::new();
    for path in ["/a", "/b", "/c"] {
        ids.push(create(scene, meta_data(path)).await);
    }
    let version = scene.version().await;
    let edit = async |id: &str, path: &str, side: u32| {
        for round in 0..ROUNDS {
            let ext = format!("{{\"timeout\":{}}}", side * 1000 + round);
            let body = with(meta_data(path), json!({"id": id, "rpcExt": ext}));
            let answer = scene.call("POST", SAVE, body).await;
            assert_eq!(answer["message"], "update success", "{path} round {round}");
        }
    };
    tokio::join!(edit(&ids[0], "/a", 1), edit(&ids[1], "/b", 2), edit(&ids[2], "/c", 3));
    let rows = scene.changes_after(version).await;
    for id in &ids {
        let mut last = json!("{\"timeout\":1000}");
        for row in rows.iter().filter(|row| row.object_id == *id) {
            assert_eq!(object(&row.before)["rpcExt"], last, "{id}");
            last = object(&row.after)["rpcExt"].clone();
        }
        assert_eq!(scene.get(&format!("/meta-data/{id}")).await["rpcExt"], last, "{id}");
    }
}

async fn texts_that_rows_are_found_by_have_a_limit(scene: &Scene) {
    let long = |first: &str| format!("{first}{}", "x".repeat(9_000));
    let body = with(meta_data("/a"), json!({"path": long("/"), "serviceName": long("s")}));
    assert_eq!(
        scene.refused("POST", SAVE, body).await,
        format!(
            "Request error! invalid argument [path: \"/{x}\"… has 9001 bytes, expected at most 1024| \
             serviceName: \"s{x}\"… has 9001 bytes, expected at most 1024]",
            x = "x".repeat(31)
        )
    );
    let most = format!("/{}", "ö".repeat(511));
    create(scene, with(meta_data(&most), json!({"serviceName": "s".repeat(1024)}))).await;
}
