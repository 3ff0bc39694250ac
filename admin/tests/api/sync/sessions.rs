//! Sessions under change, cuts and slow readers.

use std::time::{Duration, Instant};

use longmen_core::model::DEFAULT_NAMESPACE;
use longmen_core::sync::{ClientMessage, Event, Group, MYSELF, Payload};
use longmen_db::repository::namespace_plugin;
use longmen_db::repository::plugin::{self, NewPlugin};
use longmen_db::{Change, Operation, Retention, Since, prune, renew_epoch, since};
use serde_json::json;

use super::gateway::{Gateway, Set};
use super::objects::{
    add_rule, add_selector, begin, change_rule, commit, delete_rule, delete_selector,
};
use crate::support::{PASSWORD, TestAdmin};

/// The objects of one group in a set, by id.
fn ids(set: &Set, group: Group) -> Vec<String> {
    let mut ids = Vec::new();
    for frame in set.frames.iter().filter(|frame| frame.payload.group() == group) {
        match &frame.payload {
            Payload::Selector(list) => ids.extend(list.iter().map(|object| object.id.clone())),
            Payload::Rule(list) => ids.extend(list.iter().map(|object| object.id.clone())),
            other => panic!("{other:?}"),
        }
    }
    ids
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_of_ours_gets_everything_then_each_change_as_one_set() {
    let admin = TestAdmin::start().await;
    let running = admin.running();
    let mut uow = begin(running).await;
    let selector = add_selector(&mut uow, "first").await;
    let version = commit(uow).await;

    let mut gateway = Gateway::ours(running, "", 0).await;
    let all = gateway.set().await;
    assert!(all.mark.refresh && all.mark.last);
    assert_eq!(all.mark.version, version);
    assert!(all.frames.iter().all(|frame| frame.event == Event::Myself));
    assert_eq!(ids(&all, Group::Selector), [selector.id.as_str()]);
    assert!(ids(&all, Group::Rule).is_empty());

    let mut uow = begin(running).await;
    let rule = add_rule(&mut uow, &selector, "r", "{}").await;
    let other = add_selector(&mut uow, "second").await;
    let version = commit(uow).await;
    let set = gateway.set().await;
    assert!(!set.mark.refresh);
    assert_eq!((set.mark.version, set.mark.epoch.as_str()), (version, all.mark.epoch.as_str()));
    assert_eq!(ids(&set, Group::Rule), [rule.id.as_str()]);
    assert_eq!(ids(&set, Group::Selector), [other.id.as_str()]);
    admin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_deleted_while_the_link_was_cut_is_gone_after_it() {
    let admin = TestAdmin::start().await;
    let running = admin.running();
    let mut uow = begin(running).await;
    let (kept, gone) = (add_selector(&mut uow, "kept").await, add_selector(&mut uow, "gone").await);
    let (stays, goes) = (
        add_rule(&mut uow, &kept, "stays", "{}").await,
        add_rule(&mut uow, &kept, "goes", "{}").await,
    );
    commit(uow).await;
    let mut gateway = Gateway::ours(running, "", 0).await;
    let before = gateway.set().await.mark;
    drop(gateway);

    let mut uow = begin(running).await;
    delete_selector(&mut uow, &gone).await;
    commit(uow).await;
    let mut uow = begin(running).await;
    delete_rule(&mut uow, &goes).await;
    let version = commit(uow).await;

    // It resumes: only what it missed, in order.
    let mut gateway = Gateway::ours(running, &before.epoch, before.version).await;
    let sets = gateway.sets_to(version).await;
    assert_eq!(sets.len(), 2);
    assert!(sets.iter().all(|set| set.frames.iter().all(|f| f.event == Event::Delete)));
    assert_eq!(ids(&sets[0], Group::Selector), [gone.id.as_str()]);
    assert_eq!(ids(&sets[1], Group::Rule), [goes.id.as_str()]);

    // A gateway that cannot resume gets a refresh without them, whatever the reason.
    for (epoch, version) in [("", 0), ("another", before.version), (&*before.epoch, 1 << 40)] {
        let mut gateway = Gateway::ours(running, epoch, version).await;
        let all = gateway.set().await;
        assert!(all.mark.refresh, "{epoch} {version}");
        assert_eq!(ids(&all, Group::Selector), [kept.id.as_str()]);
        assert_eq!(ids(&all, Group::Rule), [stays.id.as_str()]);
    }
    admin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_emptied_group_is_empty_in_the_refresh_and_a_current_gateway_hears_so() {
    let admin = TestAdmin::start().await;
    let running = admin.running();
    let mut uow = begin(running).await;
    let selector = add_selector(&mut uow, "only").await;
    commit(uow).await;
    let mut uow = begin(running).await;
    delete_selector(&mut uow, &selector).await;
    let version = commit(uow).await;

    let mut gateway = Gateway::ours(running, "", 0).await;
    let all = gateway.set().await;
    assert!(all.mark.refresh && ids(&all, Group::Selector).is_empty());
    // What is not in a refresh is gone: the mark says where it ends, with empty groups too.
    assert_eq!(all.mark.version, version);

    let mut current = Gateway::ours(running, &all.mark.epoch, version).await;
    let none = current.set().await;
    assert!(none.frames.is_empty() && !none.mark.refresh && none.mark.last);
    assert_eq!(none.mark.version, version);
    admin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stock_answer_comes_between_the_changes_before_and_after_it() {
    let admin = TestAdmin::start().await;
    let running = admin.running();
    let mut uow = begin(running).await;
    let selector = add_selector(&mut uow, "s").await;
    let mut rule = add_rule(&mut uow, &selector, "r", "0").await;
    commit(uow).await;
    let mut gateway = Gateway::stock(running).await;
    let mut last = 0_u64;
    for round in 1..=50_u64 {
        let asks = gateway.say(MYSELF);
        let writes = async {
            let mut uow = begin(running).await;
            rule = change_rule(&mut uow, &rule, &round.to_string()).await;
            commit(uow).await
        };
        tokio::join!(asks, writes);
        // Handles count up: whatever the interleaving, no older one may follow a newer one.
        let mut answered = false;
        while !(answered && last == round) {
            let frame = gateway.json().await;
            if frame["groupType"] != "RULE" {
                continue;
            }
            answered |= frame["eventType"] == MYSELF;
            let handle: u64 = frame["data"][0]["handle"].as_str().unwrap().parse().unwrap();
            assert!(handle >= last, "{handle} after {last} in round {round}");
            last = handle;
        }
    }
    admin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_does_not_read_is_closed_and_the_others_get_every_change() {
    // More than the buffers of both sockets and the queue together hold.
    const CHANGES: u64 = 96;
    let admin = TestAdmin::with(|config| config.sync.websocket.queue_size = 16).await;
    let running = admin.running();
    let mut quick = Gateway::ours(running, "", 0).await;
    quick.set().await;
    let mut uow = begin(running).await;
    let selector = add_selector(&mut uow, "s").await;
    let mut rule = add_rule(&mut uow, &selector, "r", "{}").await;
    let first = commit(uow).await;
    // Once one has heard of it, sessions that open later do not hear of it as a change.
    assert_eq!(quick.set().await.mark.version, first);

    let mut slow = Gateway::stock(running).await;
    let mut stock = Gateway::stock(running).await;
    for change in 1..=CHANGES {
        let mut uow = begin(running).await;
        rule = change_rule(&mut uow, &rule, &"x".repeat(256 * 1024)).await;
        let version = commit(uow).await;
        assert_eq!(version, first + change);
        assert_eq!(quick.set().await.mark.version, version);
        assert_eq!(stock.json().await["groupType"], "RULE");
    }
    // It had not read a byte: it is cut off before it has everything.
    let mut read = 0;
    let ended = loop {
        match slow.hear().await {
            super::gateway::Heard::Text(_) => read += 1,
            super::gateway::Heard::Closed(frame) => break frame.map(|frame| frame.code.into()),
        }
    };
    assert!(read < CHANGES, "the slow gateway read {read} changes");
    assert!(matches!(ended, None | Some(1013_u16)), "{ended:?}");
    admin.stop().await;
}

/// With a poll far away, so that only a wake-up can bring a change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_are_pushed_and_not_polled() {
    const CHANGES: usize = 100;
    let hour = Duration::from_secs(3600);
    let admin = TestAdmin::with(|config| config.sync.poll_interval = hour).await;
    let running = admin.running();
    let mut ours = Gateway::ours(running, "", 0).await;
    ours.set().await;
    let mut stock = Gateway::stock(running).await;
    let mut delays = Vec::with_capacity(CHANGES);
    for change in 0..CHANGES {
        let mut uow = begin(running).await;
        add_selector(&mut uow, &format!("s{change}")).await;
        commit(uow).await;
        let committed = Instant::now();
        ours.set().await;
        stock.json().await;
        delays.push(committed.elapsed());
    }
    delays.sort_unstable();
    println!("commit to both frames: p50 {:?}, p99 {:?}", delays[50], delays[98]);
    admin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_vanishes_costs_the_others_nothing() {
    let admin = TestAdmin::start().await;
    let running = admin.running();
    let mut stays = Gateway::ours(running, "", 0).await;
    stays.set().await;
    for round in 0..10 {
        let mut leaves = Gateway::ours(running, "", 0).await;
        leaves.set().await;
        let mut uow = begin(running).await;
        add_selector(&mut uow, &format!("s{round}")).await;
        drop(leaves);
        let version = commit(uow).await;
        assert_eq!(stays.set().await.mark.version, version);
    }
    admin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledgements_and_reports_are_kept() {
    let admin = TestAdmin::start().await;
    let running = admin.running();
    let mut ours = Gateway::ours(running, "", 0).await;
    let mark = ours.set().await.mark;
    let ack = ClientMessage::Ack { epoch: mark.epoch.clone(), version: 7, faults: Vec::new() };
    ours.say(&ack.to_text()).await;
    ours.say(r#"{"bootstrapInstanceInfo":"{\"arch\":\"amd64\"}"}"#).await;
    let mut stock = Gateway::stock(running).await;
    stock.say(r#"{"bootstrapInstanceInfo":{"arch":"arm64"}}"#).await;
    // Messages of one session are read in order: its answer says that the others were read.
    ours.so_far().await;
    stock.so_far().await;
    let seen = running.state().publisher().gateways().connected(DEFAULT_NAMESPACE);
    let [first, second] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((first.kind, first.address().as_str()), ("longmen", "127.0.0.1:9195"));
    assert_eq!((first.epoch.as_deref(), first.version), (Some(&*mark.epoch), Some(7)));
    assert_eq!(first.info.as_deref(), Some(r#"{"arch":"amd64"}"#));
    assert_eq!((second.kind, second.version), ("stock", None));
    assert_eq!(second.info.as_deref(), Some(r#"{"arch":"arm64"}"#));

    let token = admin.token("admin", PASSWORD).await;
    let list = admin.api(&token, "GET", "/v1/gateways", None).await;
    assert_eq!(list["total"], 2);
    let row = &list["rows"][0];
    assert_eq!((&row["kind"], &row["version"]), (&"longmen".into(), &7.into()));
    // It says that it is ahead of what there is: not behind, in any case.
    assert_eq!((&row["connected"], &row["lag"]), (&true.into(), &0.into()));
    assert!(list["rows"][1].get("lag").is_none());
    admin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_epoch_makes_everyone_start_anew() {
    let admin = TestAdmin::start().await;
    let running = admin.running();
    let mut ours = Gateway::ours(running, "", 0).await;
    let before = ours.set().await.mark;
    let mut stock = Gateway::stock(running).await;
    stock.so_far().await;
    let epoch = renew_epoch(running.state().store()).await.unwrap();
    let all = ours.set().await;
    assert!(all.mark.refresh);
    assert_eq!(all.mark.epoch, epoch);
    assert_eq!(stock.json().await["eventType"], "REFRESH");
    // The old position means nothing any more.
    let mut late = Gateway::ours(running, &before.epoch, before.version.max(1)).await;
    assert!(late.set().await.mark.refresh);
    admin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_behind_the_dispatch_view_gets_everything() {
    let admin = TestAdmin::start().await;
    let running = admin.running();
    let mut uow = begin(running).await;
    add_selector(&mut uow, "first").await;
    let first = commit(uow).await;
    let epoch = Gateway::ours(running, "", 0).await.set().await.mark.epoch;
    let mut uow = begin(running).await;
    add_selector(&mut uow, "second").await;
    let second = commit(uow).await;

    let resumed = Gateway::ours(running, &epoch, first).await.set().await;
    assert_eq!((resumed.mark.refresh, resumed.mark.version), (false, second));
    let retention = Retention { dispatch_sets: 0, dispatch_ms: 3_600_000, history_ms: 3_600_000 };
    prune(running.state().store(), retention).await.unwrap();
    let resumed = Gateway::ours(running, &epoch, first).await.set().await;
    assert_eq!((resumed.mark.refresh, resumed.mark.version), (true, second));
    assert_eq!(ids(&resumed, Group::Selector).len(), 2);
    // One that is up to date needs nothing of the view.
    let current = Gateway::ours(running, &epoch, second).await.set().await;
    assert!(!current.mark.refresh && current.frames.is_empty());
    admin.stop().await;
}

/// More than is read at a time: several reads make up the answer, in order and each set once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_missed_many_bytes_catches_up_in_parts() {
    const CHANGES: u64 = 6;
    let admin = TestAdmin::start().await;
    let running = admin.running();
    let mut uow = begin(running).await;
    let selector = add_selector(&mut uow, "s").await;
    let mut rule = add_rule(&mut uow, &selector, "r", "{}").await;
    let first = commit(uow).await;
    let epoch = Gateway::ours(running, "", 0).await.set().await.mark.epoch;
    for change in 0..CHANGES {
        let mut uow = begin(running).await;
        rule = change_rule(&mut uow, &rule, &format!("{change}{}", "x".repeat(1 << 20))).await;
        commit(uow).await;
    }
    let mut gateway = Gateway::ours(running, &epoch, first).await;
    let sets = gateway.sets_to(first + CHANGES).await;
    let versions: Vec<u64> = sets.iter().map(|set| set.mark.version).collect();
    assert_eq!(versions, (first + 1..=first + CHANGES).collect::<Vec<u64>>());
    assert!(sets.iter().all(|set| !set.mark.refresh && set.frames.len() == 1));
    // Nothing more is told until something more happens.
    assert!(gateway.so_far().await.is_empty());
    admin.stop().await;
}

/// Megabytes that stock gateways want and the history does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jars_of_plugins_are_sent_to_stock_gateways_and_not_logged() {
    let admin = TestAdmin::start().await;
    let running = admin.running();
    let jar = "UEsDB".repeat(1000);
    let mut uow = begin(running).await;
    let new = NewPlugin {
        name: "mine".into(),
        role: "Proxy".into(),
        plugin_jar: Some(jar.clone()),
        ..NewPlugin::default()
    };
    let plugin = plugin::insert(&mut uow, &new).await.unwrap();
    let link = namespace_plugin::link(&mut uow, DEFAULT_NAMESPACE, &plugin.id).await.unwrap();
    uow.commit().await.unwrap();
    let mut stock = Gateway::stock(running).await;
    stock.so_far().await;
    let token = admin.token("admin", PASSWORD).await;
    let body = json!({"ids": [link], "enabled": true, "namespaceId": DEFAULT_NAMESPACE});
    let answer = admin.api(&token, "POST", "/namespace-plugin/enabled", Some(body)).await;
    assert_eq!(answer["code"], 200, "{answer}");

    let frame = stock.json().await;
    assert_eq!(
        (&frame["groupType"], &frame["data"][0]["name"]),
        (&"PLUGIN".into(), &"mine".into())
    );
    assert_eq!(frame["data"][0]["pluginJar"], jar.as_str());
    stock.say(MYSELF).await;
    let all = stock.json().await;
    let mine = all["data"].as_array().unwrap().iter().find(|plugin| plugin["name"] == "mine");
    assert_eq!(mine.unwrap()["pluginJar"], jar.as_str());
    let mut tx = running.state().store().read().await.unwrap();
    let Since::Sets(sets) = since(&mut tx, DEFAULT_NAMESPACE, 0, 100).await.unwrap() else {
        panic!("gap")
    };
    for row in sets.iter().flat_map(|set| &set.rows) {
        let texts = [&row.before, &row.after];
        assert!(texts.into_iter().flatten().all(|text| !text.contains("UEsDB")), "{}", row.kind);
    }
    drop(tx);
    admin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_to_be_sent_again_is_sent_again() {
    let admin = TestAdmin::start().await;
    let running = admin.running();
    let mut ours = Gateway::ours(running, "", 0).await;
    ours.set().await;
    let mut uow = begin(running).await;
    add_selector(&mut uow, "s").await;
    commit(uow).await;
    ours.set().await;
    let mut stock = Gateway::stock(running).await;

    let mut uow = begin(running).await;
    let again = Change::internal(DEFAULT_NAMESPACE, "NAMESPACE", "", Operation::Refresh);
    uow.record(again.stock_event(Event::Refresh));
    let version = commit(uow).await;
    let all = ours.set().await;
    assert!(all.mark.refresh);
    assert_eq!(all.mark.version, version);
    for group in ["PLUGIN", "SELECTOR"] {
        let frame = stock.json().await;
        assert_eq!((&frame["groupType"], &frame["eventType"]), (&group.into(), &"REFRESH".into()));
    }
    admin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolled_back_write_reaches_nobody() {
    let admin = TestAdmin::start().await;
    let running = admin.running();
    let mut stock = Gateway::stock(running).await;
    let mut ours = Gateway::ours(running, "", 0).await;
    let before = ours.set().await.mark;
    let mut uow = begin(running).await;
    add_selector(&mut uow, "never").await;
    drop(uow);
    let mut uow = begin(running).await;
    add_selector(&mut uow, "kept").await;
    let version = commit(uow).await;
    assert_eq!(version, before.version + 1);
    assert_eq!(ours.set().await.mark.version, version);
    let frames = stock.so_far().await;
    assert_eq!(frames.len(), 1);
    assert_eq!(frames[0]["data"][0]["name"], "kept");
    admin.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_says_goodbye() {
    let admin = TestAdmin::start().await;
    let mut stock = Gateway::stock(admin.running()).await;
    let mut ours = Gateway::ours(admin.running(), "", 0).await;
    ours.set().await;
    let (stopped, one, other) = tokio::join!(admin.stop(), stock.end(), ours.end());
    let () = stopped;
    assert_eq!((one, other), (Some(1001), Some(1001)));
}
