//! Questions that are held, and what ends that.

use std::time::{Duration, Instant};

use longmen_core::model::DEFAULT_NAMESPACE;
use serde_json::{Value, json};

use super::poller::{DEADLINE, Poller, answer, held, until};
use crate::scene::{Scene, rule, selector};
use crate::support::TestAdmin;

/// Longer than an edit takes to be told on a busy machine, and far below any hold or poll of the
/// log that a lost wake-up would wait for in a row.
const A_MOMENT: Duration = Duration::from_millis(900);

pub(super) async fn edits_by_rest_wake_within_a_moment(scene: &Scene) {
    let mut poller = Poller::of(scene).await;
    let mut times = Vec::new();
    let mut id = String::new();
    for step in 0..6 {
        let asking = poller.ask_and_be_held(&scene.admin).await;
        let expected: &[&str] = match step {
            0 => {
                id = scene.selector("woken").await;
                &["SELECTOR"]
            }
            1 => {
                scene.rule(&id, "woken").await;
                &["RULE"]
            }
            2 => {
                scene.bind(&id, "woken", &[9481]).await;
                &["DISCOVER_UPSTREAM"]
            }
            3 => {
                let found = scene.get("/namespace-plugin?currentPage=1&pageSize=12&name=divide&namespaceId=649330b6-c2d7-4edc-be8e-8a54df9eb385").await;
                let one = &found["dataList"][0]["id"];
                let switched = json!({"ids": [one], "enabled": false,
                    "namespaceId": DEFAULT_NAMESPACE});
                scene.ok("POST", "/namespace-plugin/enabled", switched).await;
                &["PLUGIN"]
            }
            4 => {
                let mut body = selector("woken");
                body["sort"] = 7.into();
                scene.ok("PUT", &format!("/selector/{id}"), body).await;
                &["SELECTOR"]
            }
            _ => {
                scene
                    .ok(
                        "DELETE",
                        "/selector/batch",
                        json!({"ids": [id], "namespaceId": DEFAULT_NAMESPACE}),
                    )
                    .await;
                &["RULE", "SELECTOR", "DISCOVER_UPSTREAM"]
            }
        };
        let committed = Instant::now();
        let named = answer(asking).await;
        times.push(committed.elapsed());
        assert_eq!(named, expected, "step {step}");
        let groups: Vec<&'static str> = expected.to_vec();
        let before = poller.has.clone();
        let data = poller.fetch(&groups).await;
        for group in groups {
            assert!(poller.has[group].1 > before[group].1, "{group}: the time grows");
            assert!(data[group]["data"].is_array());
        }
        if step == 5 {
            assert_eq!(data["SELECTOR"]["data"], json!([]));
        }
    }
    times.sort_unstable();
    println!("answered after a commit: {times:?}");
    assert!(times[times.len() / 2] < A_MOMENT, "{times:?}");
}

pub(super) async fn a_change_between_fetch_and_question_is_found_at_once(scene: &Scene) {
    let mut poller = Poller::of(scene).await;
    let id = scene.selector("between").await;
    scene.rule(&id, "between").await;
    // Named together, though they were two changes: nothing is left for another round.
    assert_eq!(poller.ask().await, ["RULE", "SELECTOR"]);
    let data = poller.fetch(&["RULE", "SELECTOR"]).await;
    assert_eq!(data["RULE"]["data"][0]["selectorId"], id.as_str());
    // What was changed and changed back differs in nothing.
    let mut body = rule(&id, "between");
    let rule_id = data["RULE"]["data"][0]["id"].as_str().unwrap().to_owned();
    for sort in [9, 1] {
        body["sort"] = sort.into();
        scene.ok("PUT", &format!("/rule/{rule_id}"), body.clone()).await;
    }
    let asking = poller.ask_and_be_held(&scene.admin).await;
    scene
        .ok("DELETE", "/rule/batch", json!({"ids": [rule_id], "namespaceId": DEFAULT_NAMESPACE}))
        .await;
    assert_eq!(answer(asking).await, ["RULE"]);
}

pub(super) async fn another_namespace_wakes_nobody(scene: &Scene) {
    let other = scene.other_namespace().await;
    let mut there = Poller::new(&scene.admin, scene.token());
    there.namespace.clone_from(&other);
    let all = there.fetch_all().await;
    assert_eq!(all["SELECTOR"]["data"], json!([]));
    let asking = there.ask_and_be_held(&scene.admin).await;
    let mut here = Poller::of(scene).await;
    let waiting = here.ask_and_be_held(&scene.admin).await;
    scene.selector("here").await;
    assert_eq!(answer(waiting).await, ["SELECTOR"]);
    here.fetch(&["SELECTOR"]).await;
    assert!(!asking.is_finished() && held(&scene.admin) == 1);
    asking.abort();
    until(|| held(&scene.admin) == 0).await;
}

/// A gateway that was told times by an admin whose clock is ahead takes nothing over that is not
/// later still.
pub(super) async fn times_grow_beyond_what_another_admin_told(scene: &Scene) {
    let mut poller = Poller::of(scene).await;
    let ahead = poller.has["RULE"].1 + 3_600_000;
    poller.has.insert("RULE", ("0".repeat(32), ahead));
    assert_eq!(poller.ask().await, ["RULE"]);
    poller.fetch(&["RULE"]).await;
    assert!(poller.has["RULE"].1 > ahead, "{:?} {ahead}", poller.has["RULE"]);
    // The same digest from there, with a later time: nothing to do, and the next change is later.
    let further = poller.has["SELECTOR"].1 + 7_200_000;
    poller.has.get_mut("SELECTOR").unwrap().1 = further;
    let asking = poller.ask_and_be_held(&scene.admin).await;
    scene.selector("later").await;
    assert_eq!(answer(asking).await, ["SELECTOR"]);
    poller.fetch(&["SELECTOR"]).await;
    assert!(poller.has["SELECTOR"].1 > further);
}

pub(super) async fn a_gateway_is_listed_with_what_it_has(scene: &Scene) {
    let poller = Poller::of(scene).await;
    let asking = poller.ask_and_be_held(&scene.admin).await;
    let headers = [("X-Access-Token".to_owned(), scene.token().to_owned())];
    // Written into the table of all admins once in a while.
    let listed = async |state: &str| -> Value {
        let waiting = async {
            loop {
                let answer = scene.admin.call("GET", "/v1/gateways", &headers, None).await;
                let row = answer.json.unwrap()["rows"][0].take();
                if row["state"] == state {
                    return row;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(DEADLINE, waiting).await.expect(state)
    };
    let row = listed("inForce").await;
    assert_eq!((&row["address"], &row["kind"]), (&json!("127.0.0.1:9195"), &json!("stock")));
    assert_eq!((&row["connected"], &row["transport"]), (&json!(true), &json!("http")), "{row}");
    assert_eq!(row["version"], scene.version().await);
    scene.selector("newer").await;
    answer(asking).await;
    listed("behind").await;
}

#[tokio::test]
async fn what_is_held_ends_with_its_time_its_client_and_the_admin() {
    let admin = TestAdmin::with(|config| {
        config.sync.http.hold = Duration::from_millis(300);
        config.sync.http.max_held = 1;
    })
    .await;
    let scene = Scene::of(admin).await;
    let poller = Poller::of(&scene).await;
    let begun = Instant::now();
    assert!(poller.ask().await.is_empty());
    assert!(begun.elapsed() >= Duration::from_millis(300), "{:?}", begun.elapsed());
    scene.stop().await;

    let admin = TestAdmin::with(|config| config.sync.http.max_held = 2).await;
    let scene = Scene::of(admin).await;
    let poller = Poller::of(&scene).await;
    let first = poller.ask_and_be_held(&scene.admin).await;
    let second = poller.ask_and_be_held(&scene.admin).await;
    let headers = [("X-Access-Token".to_owned(), scene.token().to_owned())];
    let full = scene.admin.call("POST", &poller.question(), &headers, None).await;
    assert_eq!(full.status, 503, "{}", full.text);
    assert!(full.text.contains("2 requests are held already"), "{}", full.text);
    // What differs needs no room.
    let mut behind = poller.clone();
    behind.has.insert("RULE", ("0".repeat(32), 0));
    assert_eq!(behind.ask().await, ["RULE"]);
    // A client that goes leaves nothing behind.
    first.abort();
    until(|| held(&scene.admin) == 1).await;
    let third = poller.ask_and_be_held(&scene.admin).await;
    // A stop answers at once what is held.
    let begun = Instant::now();
    scene.stop().await;
    assert!(second.await.unwrap().is_empty() && third.await.unwrap().is_empty());
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}
