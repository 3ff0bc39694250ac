//! Upstreams that go and come back, as configured by the keys of the file.

use std::net::SocketAddr;
use std::time::Duration;

use longmen_benchmark::origin::Origin;
use longmen_bootstrap::RunningGateway;

use crate::fake_admin::{FakeAdmin, Manners};
use crate::support::{LIMIT, gateway, get, stop, until, upstream};

const STANDALONE: &str = r#"{"eventType":"RUNNING_MODE","runningMode":"STANDALONE","isMaster":true,"masterUrl":"/websocket"}"#;

/// A gateway whose `divide` sends everything to these upstreams in turn.
async fn fed(upstreams: &[SocketAddr], rule: &str, keys: &str) -> (FakeAdmin, RunningGateway) {
    let conditions =
        r#"[{"paramType":"uri","operator":"startsWith","paramName":"/","paramValue":"/"}]"#;
    let list: Vec<String> = upstreams
        .iter()
        .map(|address| {
            format!(
                r#"{{"id":"u-{address}","protocol":"http://","url":"{address}","status":0,"weight":50,"props":"{{}}"}}"#
            )
        })
        .collect();
    let frame = |group: &str, data: &str| {
        format!(r#"{{"groupType":"{group}","eventType":"MYSELF","data":[{data}]}}"#)
    };
    let handle = rule.replace('"', "\\\"");
    let sequence = vec![
        frame(
            "PLUGIN",
            r#"{"id":"5","name":"divide","config":"","role":"Proxy","enabled":true,"sort":200}"#,
        ),
        frame(
            "SELECTOR",
            &format!(
                r#"{{"id":"s","pluginName":"divide","name":"s","matchMode":0,"type":1,"sort":1,"enabled":true,"logged":false,"continued":true,"handle":"","conditionList":{conditions}}}"#
            ),
        ),
        frame(
            "RULE",
            &format!(
                r#"{{"id":"r","name":"r","pluginName":"divide","selectorId":"s","matchMode":0,"sort":1,"enabled":true,"loged":false,"handle":"{handle}","conditionDataList":{conditions}}}"#
            ),
        ),
        format!(
            r#"{{"groupType":"DISCOVER_UPSTREAM","eventType":"UPDATE","data":[{{"selectorId":"s","pluginName":"divide","selectorName":"s","upstreamDataList":[{}]}}]}}"#,
            list.join(",")
        ),
    ];
    let manners = Manners { running_mode: vec![STANDALONE.into()], sequence, ..Manners::default() };
    let admin = FakeAdmin::start(manners).await;
    let yaml = format!("{keys}  sync:\n    websocket:\n      urls: {}\n", admin.url());
    let gateway = gateway(&yaml).await;
    until(&gateway, |ready, _| ready).await;
    (admin, gateway)
}

/// Waits until the states of the upstreams are these, by address.
async fn until_healthy(gateway: &RunningGateway, wanted: &[(SocketAddr, bool)]) {
    let waiting = async {
        loop {
            let now = longmen_core::upstream::now_ms();
            let list = gateway.upstreams.list();
            let is = |(address, healthy): &(SocketAddr, bool)| {
                let url = address.to_string();
                let found = list.iter().find(|(_, endpoint)| *endpoint.url == *url);
                found.is_some_and(|(_, endpoint)| endpoint.state(now).healthy() == *healthy)
            };
            if wanted.iter().all(is) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LIMIT, waiting).await.expect("the upstreams never got there");
}

/// Who answered so many requests.
async fn answered(gateway: &RunningGateway, count: usize) -> Vec<String> {
    let mut names = Vec::new();
    for _ in 0..count {
        let answer = get(gateway, "/x").await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        names.push(answer.upstream.unwrap_or_default());
    }
    names
}

fn again(name: &str, address: SocketAddr) -> Origin {
    Origin::builder().name(name).bind(address.to_string()).start().unwrap()
}

const TURNS: &str = r#"{"loadBalance":"roundRobin","retry":0}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_probed_upstream_goes_and_comes_back_also_after_a_total_outage() {
    let (one, two) = (upstream("U1"), upstream("U2"));
    let (first, second) = (one.addr(), two.addr());
    let keys = "  compat: standard\n  upstreamCheck:\n    enabled: true\n    interval: 100\n    timeout: 2000\n";
    let (_admin, gateway) = fed(&[first, second], TURNS, keys).await;
    assert_eq!(answered(&gateway, 4).await, ["U1", "U2", "U1", "U2"]);
    one.stop().await;
    until_healthy(&gateway, &[(first, false), (second, true)]).await;
    assert_eq!(answered(&gateway, 4).await, ["U2"; 4]);
    two.stop().await;
    until_healthy(&gateway, &[(first, false), (second, false)]).await;
    let none = get(&gateway, "/x").await;
    assert_eq!((none.status, none.body.contains("-119")), (503, true), "{}", none.body);
    let (one, _two) = (again("U1", first), again("U2", second));
    until_healthy(&gateway, &[(first, true), (second, true)]).await;
    let names = answered(&gateway, 200).await;
    assert_eq!(names.iter().filter(|name| *name == "U1").count(), 100);
    drop(one);
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_checks_requests_find_out_and_a_probe_brings_it_back() {
    let (one, two) = (upstream("U1"), upstream("U2"));
    let (first, second) = (one.addr(), two.addr());
    let keys = "  upstreamCheck:\n    ejectAfter: 3\n    ejectTime: 1h\n    ejectMaxTime: 1h\n";
    let (_admin, gateway) = fed(&[first, second], TURNS, keys).await;
    one.stop().await;
    let mut statuses = Vec::new();
    for _ in 0..40 {
        statuses.push(get(&gateway, "/x").await.status);
    }
    assert_eq!(statuses.iter().filter(|status| **status == 500).count(), 3, "{statuses:?}");
    until_healthy(&gateway, &[(first, false), (second, true)]).await;
    let _one = again("U1", first);
    until_healthy(&gateway, &[(first, true)]).await;
    assert_eq!(answered(&gateway, 40).await.iter().filter(|name| *name == "U1").count(), 20);
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_limits_of_the_file_are_in_force() {
    let slow = upstream("U1");
    let keys = "  httpclient:\n    responseTimeout: 150\n    maxPerUpstream: 1\n";
    let (_admin, gateway) = fed(&[slow.addr()], TURNS, keys).await;
    assert_eq!(get(&gateway, "/x").await.status, 200);
    let late = get(&gateway, "/fault/slow-head?ms=5000").await;
    assert_eq!(late.status, 408, "{}", late.body);
    let events = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("http://{}/sse?count=100&interval_ms=200", gateway.address);
    let stream = events.get(url).send().await.unwrap();
    let full = get(&gateway, "/x").await;
    assert_eq!((full.status, full.body.contains("limit")), (503, true), "{}", full.body);
    drop(stream);
    let waiting = async {
        while get(&gateway, "/x").await.status != 200 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LIMIT, waiting).await.expect("the place is given back");
    stop(gateway).await;
}
