//! A gateway that polls our own admin.

use std::time::Duration;

use serde_json::{Value, json};

use super::admin::OurAdmin;
use super::{eventually, is_gone, polling, served_by};
use crate::support::{LIMIT, gateway, get, stop, until, upstream};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_take_effect_and_the_version_in_force_is_known() {
    let (mut admin, u1, u2) = (OurAdmin::start().await, upstream("U1"), upstream("U2"));
    let gateway = polling(&admin.url(), "").await;
    until(&gateway, |ready, _| ready).await;
    let first = admin.route("first", &u1).await;
    eventually(&gateway, "/first/x", served_by("U1")).await;
    admin.route("second", &u2).await;
    eventually(&gateway, "/second/x", served_by("U2")).await;
    admin.delete(&first).await;
    eventually(&gateway, "/first/x", is_gone).await;
    assert!(served_by("U2")(&get(&gateway, "/second/x").await));
    // The admin knows which version is in force, and it is the one.
    let told = async {
        loop {
            let list = admin.call("GET", "/v1/gateways", &Value::Null).await;
            let row = &list["rows"][0];
            let version = gateway.store.load_full().position.version;
            if row["state"] == "inForce" && row["version"] == version && version > 0 {
                assert_eq!((&row["kind"], &row["transport"]), (&json!("longmen"), &json!("http")));
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LIMIT, told).await.expect("the admin is told");
    stop(gateway).await;
    admin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_deleted_while_the_admin_was_away_is_gone_after_it() {
    let (mut admin, u1) = (OurAdmin::start().await, upstream("U1"));
    let [kept, deleted] = ["kept", "deleted"];
    admin.route(kept, &u1).await;
    let selector = admin.route(deleted, &u1).await;
    let gateway = polling(&admin.url(), "").await;
    eventually(&gateway, "/deleted/x", served_by("U1")).await;
    eventually(&gateway, "/kept/x", served_by("U1")).await;
    admin.stop().await;
    assert!(served_by("U1")(&get(&gateway, "/deleted/x").await), "served without an admin");
    // Deleted on an admin at another address, of the same database.
    let port = admin.port;
    admin.start_at(0).await;
    admin.delete(&selector).await;
    admin.stop().await;
    assert!(served_by("U1")(&get(&gateway, "/deleted/x").await), "nobody has told yet");
    admin.start_at(port).await;
    eventually(&gateway, "/deleted/x", is_gone).await;
    assert!(served_by("U1")(&get(&gateway, "/kept/x").await));
    // And it goes on from there.
    admin.route("later", &u1).await;
    eventually(&gateway, "/later/x", served_by("U1")).await;
    stop(gateway).await;
    admin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_is_over_is_replaced() {
    let (mut admin, u1) = (OurAdmin::with_tokens_of(Duration::from_secs(2)).await, upstream("U1"));
    admin.route("first", &u1).await;
    let gateway = polling(&admin.url(), "").await;
    eventually(&gateway, "/first/x", served_by("U1")).await;
    // Longer than a token lives.
    tokio::time::sleep(Duration::from_millis(2500)).await;
    admin.route("second", &u1).await;
    eventually(&gateway, "/second/x", served_by("U1")).await;
    stop(gateway).await;
    admin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sync_token_serves_without_a_log_in() {
    let (mut admin, u1) = (OurAdmin::start().await, upstream("U1"));
    admin.route("first", &u1).await;
    let token = std::fs::read_to_string(&admin.running().state().config().sync.token_path).unwrap();
    let gateway = gateway(&format!(
        "  compat: standard\n  sync:\n    token: \"{}\"\n    http:\n      url: {}\n",
        token.trim(),
        admin.url()
    ))
    .await;
    eventually(&gateway, "/first/x", served_by("U1")).await;
    stop(gateway).await;
    admin.stop().await;
}
