//! The recorded answers to a gateway that asks for everything, replayed.

use longmen_core::sync::{MYSELF, RUNNING_MODE};
use serde_json::Value;

use super::gateway::Gateway;
use crate::compare::{Bindings, Order};
use crate::golden;
use crate::support::TestAdmin;

/// Plays the `>` lines of a recording and compares the `<` lines, in order.
async fn play(file: &str, admin: &TestAdmin, namespace: &str, adjust: fn(&mut Value)) {
    let mut gateway = Gateway::stock_of(admin.running(), namespace).await;
    let lines = golden::lines(file);
    for line in &lines {
        let text = line["text"].as_str().unwrap();
        if line["dir"] == ">" {
            gateway.say(text).await;
            continue;
        }
        let mut wanted: Value = serde_json::from_str(text).unwrap();
        adjust(&mut wanted);
        let mut got = gateway.json().await;
        in_id_order(&mut wanted);
        in_id_order(&mut got);
        let same = Bindings::default().value(&wanted, &got, Order::Counts, "");
        assert_eq!(same, Ok(()), "{file}");
    }
    assert_eq!(gateway.so_far().await, Vec::<Value>::new(), "{file}: more than recorded");
}

/// Lists that the reference reads without ORDER BY have no order to compare.
pub(super) fn in_id_order(frame: &mut Value) {
    let plugins = frame["groupType"] == "PLUGIN";
    if let Some(objects) = frame["data"].as_array_mut().filter(|_| plugins) {
        objects.sort_by_key(|object| object["id"].as_str().map(str::to_owned));
    }
}

/// The recorded admin ran on H2, whose seed is not quite that of the other stores
/// (golden/README.md): plugin 66 is missing, `aiProxy` has another sort.
pub(crate) fn as_seeded(frame: &mut Value) {
    // Only a whole list tells of the seed.
    let whole = frame["data"].as_array().is_some_and(|plugins| plugins.len() > 40);
    if frame["groupType"] != "PLUGIN" || !whole {
        return;
    }
    let plugins = frame["data"].as_array_mut().expect("a list of plugins");
    for plugin in plugins.iter_mut() {
        match plugin["name"].as_str() {
            Some("aiProxy") => plugin["sort"] = 199.into(),
            Some("aiPrompt") => plugin["sort"] = 171.into(),
            // The same settings, written with blanks in the other seeds.
            Some("loggingHuaweiLts") => {
                let text = plugin["config"].as_str().unwrap();
                let text = text.replacen("{\"totalSizeInBytes\":", "{ \"totalSizeInBytes\": ", 1);
                plugin["config"] = text.into();
            }
            _ => {}
        }
    }
    plugins.push(serde_json::json!({"role": "Ai", "pluginJar": "", "id": "66",
        "name": "aiResponseTransformer", "enabled": false, "sort": 66,
        "namespaceId": longmen_core::model::DEFAULT_NAMESPACE}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fresh_database_answers_as_recorded() {
    let admin = TestAdmin::start().await;
    let namespace = longmen_core::model::DEFAULT_NAMESPACE;
    play("websocket/full-refresh-fresh.jsonl", &admin, namespace, as_seeded).await;
    admin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_without_plugins_answers_as_recorded() {
    let admin = TestAdmin::start().await;
    let file = "websocket/full-refresh-empty-namespace.jsonl";
    play(file, &admin, "a-namespace-without-plugins", |_| {}).await;
    admin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_questions_get_two_whole_answers_and_nobody_else_hears_them() {
    let admin = TestAdmin::start().await;
    let mut asking = Gateway::stock(admin.running()).await;
    let mut passive = Gateway::stock(admin.running()).await;
    for word in [MYSELF, MYSELF, RUNNING_MODE] {
        asking.say(word).await;
    }
    let (first, second) = (asking.json().await, asking.json().await);
    assert_eq!(first["groupType"], "PLUGIN");
    assert_eq!(first, second);
    assert_eq!(asking.json().await["eventType"], RUNNING_MODE);
    assert_eq!(passive.so_far().await, Vec::<Value>::new());
    admin.stop().await;
}
