//! The recorded answers to a gateway that asks for everything, replayed.

use longmen_core::sync::{MYSELF, RUNNING_MODE};
use serde_json::Value;

use super::as_recorded_seed;
use super::gateway::Gateway;
use crate::compare::{Bindings, Order};
use crate::golden;
use crate::support::TestAdmin;

/// Plays the `>` lines of a recording and compares the `<` lines, in order.
async fn play(file: &str, admin: &TestAdmin, namespace: &str) {
    let mut gateway = Gateway::stock_of(admin.running(), namespace).await;
    let lines = golden::lines(file);
    for line in &lines {
        let text = line["text"].as_str().unwrap();
        if line["dir"] == ">" {
            gateway.say(text).await;
            continue;
        }
        let wanted: Value = serde_json::from_str(text).unwrap();
        let mut got = gateway.json().await;
        as_recorded_seed(&mut got);
        let same = Bindings::default().value(&wanted, &got, Order::Counts, "");
        assert_eq!(same, Ok(()), "{file}");
    }
    assert_eq!(gateway.so_far().await, Vec::<Value>::new(), "{file}: more than recorded");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fresh_database_answers_as_recorded() {
    let admin = TestAdmin::start().await;
    let namespace = longmen_core::model::DEFAULT_NAMESPACE;
    play("websocket/full-refresh-fresh.jsonl", &admin, namespace).await;
    admin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_without_plugins_answers_as_recorded() {
    let admin = TestAdmin::start().await;
    let file = "websocket/full-refresh-empty-namespace.jsonl";
    play(file, &admin, "a-namespace-without-plugins").await;
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
