//! With an admin of ours a gateway goes on from the version in its file.

use std::time::Instant;

use longmen_core::model::DEFAULT_NAMESPACE;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::Scene;
use crate::stopping::process::Process;
use crate::support::{LIMIT, upstream};
use crate::whole_path::admin;

/// Asks until the gateway is confirmed and stands at `wanted` or later; says where it stands.
async fn stands(scene: &Scene, process: &Process, wanted: u64) -> Value {
    let begun = Instant::now();
    loop {
        let sync = scene.get("/actuator/info").await.1["sync"].clone();
        let version = sync["version"].as_u64().unwrap_or_default();
        if version >= wanted && sync.get("snapshotOf").is_none() && sync["ready"] == true {
            return sync;
        }
        assert!(begun.elapsed() < LIMIT, "{sync}, expected {wanted}: {}", process.log());
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_what_was_missed_is_sent_and_what_was_deleted_is_gone() {
    let (scene, origin, ours) = (Scene::new().await, upstream("U2"), admin(false).await);
    let url = format!("ws://{}/websocket", ours.admin.addr);
    ours.route("/stays", &[&origin]).await;
    let (gone, _) = ours.route("/goes", &[&origin]).await;
    let mut process = scene.start(&url, &[]);
    process.address().await;
    let before = stands(&scene, &process, 1).await;
    assert_eq!(scene.get("/goes/a").await.0, 200, "{}", process.log());
    process.says("full refresh in force").await;
    process.signal(Signal::TERM);
    assert_eq!(process.ended().await.code(), Some(0), "{}", process.log());

    let ids = json!({"ids": [gone], "namespaceId": DEFAULT_NAMESPACE});
    ours.call("DELETE", "/selector/batch", &ids).await;
    ours.route("/new", &[&origin]).await;

    let process = scene.start(&url, &[]);
    process.address().await;
    let after = stands(&scene, &process, before["version"].as_u64().unwrap() + 2).await;
    assert_eq!(after["epoch"], before["epoch"]);
    let statuses =
        (scene.get("/stays/a").await.0, scene.get("/goes/a").await.0, scene.get("/new/a").await.0);
    assert_eq!(statuses, (200, 404, 200), "{}", process.log());
    assert!(!process.log().contains("full refresh in force"), "{}", process.log());
}
