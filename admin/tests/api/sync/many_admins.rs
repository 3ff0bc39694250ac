//! What several admins on one PostgreSQL know together.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use longmen_core::model::DEFAULT_NAMESPACE;
use longmen_core::sync::{ClientMessage, GatewayFault, Group};
use longmen_core::test_util::postgres::fresh_database;
use serde_json::{Value, json};

use super::gateway::Gateway;
use super::postgres::{on, psql};
use crate::support::{PASSWORD, TestAdmin};

/// Nothing here takes longer, or it never comes.
const DEADLINE: Duration = Duration::from_secs(60);

async fn two_admins() -> (TestAdmin, TestAdmin, String) {
    let url = tokio::task::spawn_blocking(fresh_database).await.unwrap();
    (on(&url).await, on(&url).await, url)
}

async fn ours(addr: SocketAddr, port: &str, instance: &str) -> Gateway {
    let headers = [
        ("namespaceid", DEFAULT_NAMESPACE),
        ("clientport", port),
        ("x-longmen-sync", "1"),
        ("x-longmen-gateway", instance),
    ];
    let mut gateway = Gateway::open(addr, &headers).await;
    let resume = ClientMessage::Resume { epoch: String::new(), version: 0 };
    gateway.say(&resume.to_text()).await;
    gateway
}

/// Waits until the list of gateways is as wanted; out: the list.
async fn listed(admin: &TestAdmin, token: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let list = admin.api(token, "GET", "/v1/gateways", None).await;
        if wanted(&list) {
            return list;
        }
        assert!(begun.elapsed() < DEADLINE, "{list:#}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_admin_lists_the_gateways_of_all() {
    let (one, other, _) = two_admins().await;
    // Good at both: it is signed with what the database holds.
    let token = one.token("admin", PASSWORD).await;
    let mut here = ours(one.running().addr, "9001", "aaaa.0").await;
    let mut there = ours(other.running().addr, "9002", "bbbb.0").await;
    let mut stock = Gateway::stock(other.running()).await;
    stock.so_far().await;
    let fault = GatewayFault {
        group: Group::Rule,
        id: "12".to_owned(),
        plugin: "divide".to_owned(),
        text: "handle.timeout: -1 is below 0".to_owned(),
    };
    let mut version = 0;
    for (gateway, faults) in [(&mut here, vec![fault.clone()]), (&mut there, Vec::new())] {
        let mark = gateway.set().await.mark;
        version = mark.version;
        let ack = ClientMessage::Ack { epoch: mark.epoch, version, faults };
        gateway.say(&ack.to_text()).await;
    }
    for admin in [&one, &other] {
        let acknowledged = |list: &Value| list["namespaces"][0]["inForce"] == 2;
        let list = listed(admin, &token, |list| list["total"] == 3 && acknowledged(list)).await;
        let summary = &list["namespaces"][0]["summary"];
        assert_eq!(*summary, format!("all 2 gateways on version {version}, 1 more do not say"));
        let rows = list["rows"].as_array().unwrap();
        let by_port = |port: i64| rows.iter().find(|row| row["port"] == port).unwrap();
        let (a, b, s) = (by_port(9001), by_port(9002), by_port(9195));
        assert_eq!((&a["id"], &a["state"]), (&json!("aaaa"), &json!("inForce")));
        assert_eq!(a["faults"][0], serde_json::to_value(&fault).unwrap());
        assert_eq!(
            (&a["lag"], &a["lagSeconds"], &a["current"]),
            (&json!(0), &json!(0), &json!(version))
        );
        assert_eq!(
            (&s["kind"], &s["state"], s.get("version")),
            (&json!("stock"), &json!("silent"), None)
        );
        assert_ne!(a["admin"], b["admin"], "each names its admin");
        assert_eq!(b["admin"], s["admin"]);
    }
    let part = one.api(&token, "GET", "/v1/gateways?limit=1&offset=1", None).await;
    assert_eq!((&part["total"], part["rows"].as_array().unwrap().len()), (&json!(3), 1));
    one.stop().await;
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_moves_is_one_row_and_one_of_a_stopped_admin_is_gone() {
    let (one, other, _) = two_admins().await;
    let token = one.token("admin", PASSWORD).await;
    let mut before = ours(one.running().addr, "9001", "aaaa.0").await;
    before.set().await;
    listed(&other, &token, |list| list["total"] == 1).await;
    let mut after = ours(other.running().addr, "9001", "aaaa.1").await;
    after.set().await;
    let admin_of = |list: &Value| list["rows"][0]["admin"].as_str().unwrap_or_default().to_owned();
    let at = other.running().addr.port().to_string();
    let moved = |list: &Value| list["total"] == 1 && admin_of(list).ends_with(&at);
    listed(&one, &token, moved).await;
    // The end of the old session is told late, and changes nothing.
    drop(before);
    let still = |list: &Value| moved(list) && list["rows"][0]["connected"] == true;
    for _ in 0..20 {
        listed(&one, &token, still).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    other.stop().await;
    let gone = listed(&one, &token, |list| list["rows"][0]["state"] == "gone").await;
    assert_eq!(gone["namespaces"], json!([]));
    one.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_beat_and_say_good_bye_to_any_admin() {
    let (one, other, _) = two_admins().await;
    let token = one.token("admin", PASSWORD).await;
    let list = format!("/instance?namespaceId={DEFAULT_NAMESPACE}&currentPage=1&pageSize=12");
    let text = async |admin: &TestAdmin, path: &str, body: Value| {
        let headers = [
            ("X-Access-Token".to_owned(), token.clone()),
            ("Content-Type".to_owned(), "application/json".to_owned()),
        ];
        admin.call("POST", path, &headers, Some(body.to_string())).await.text
    };
    // As a gateway that syncs by other means sends it (sync.md, T38).
    let beat = json!({"instanceIp": "10.0.0.9", "instancePort": "9195", "instanceInfo": "{}",
        "instanceType": "bootstrapInstanceInfo", "namespaceId": DEFAULT_NAMESPACE});
    assert_eq!(text(&one, "/instance/beat", beat).await, "success");
    let instance = |event: &str| {
        json!({"protocol": "http://", "appName": "orders", "host": "127.0.0.1",
        "contextPath": "/http", "rpcType": "http", "port": 8189, "eventType": event,
        "instanceInfo": "{\"arch\":\"amd64\"}"})
    };
    let client = async |admin: &TestAdmin, path: &str, event: &str| {
        assert_eq!(
            text(admin, &format!("/shenyu-client/{path}"), instance(event)).await,
            "success"
        );
    };
    client(&one, "register-uri", "REGISTER").await;
    client(&other, "register-uri", "HEARTBEAT").await;
    let begun = Instant::now();
    loop {
        let answer = other.api(&token, "GET", &list, None).await;
        let rows = answer["data"]["dataList"].as_array().unwrap().clone();
        if rows.len() == 2 {
            let kinds: Vec<&str> =
                rows.iter().map(|row| row["instanceType"].as_str().unwrap()).collect();
            assert!(kinds.contains(&"client") && kinds.contains(&"bootstrapInstanceInfo"));
            assert!(
                rows.iter().all(|row| row["instanceState"] == 1 && row["dateUpdated"].is_null())
            );
            break;
        }
        assert!(begun.elapsed() < DEADLINE, "{answer}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let analysis = format!("/instance/analysis/{DEFAULT_NAMESPACE}");
    let data = one.api(&token, "GET", &analysis, None).await["data"].clone();
    assert_eq!(data["pieData"], json!([{"name": "ONLINE", "value": 2}]));
    assert_eq!(data["lineData"].as_array().unwrap().len(), 3);
    assert_eq!(data["lineData"][1]["data"].as_array().unwrap().len(), 20);

    // The good-bye goes to one admin, and a heartbeat that comes after it to the other.
    client(&one, "offline", "OFFLINE").await;
    client(&other, "register-uri", "HEARTBEAT").await;
    let upstreams = async || {
        let path = format!("/selector?namespaceId={DEFAULT_NAMESPACE}&currentPage=1&pageSize=9");
        let selectors = one.api(&token, "GET", &path, None).await;
        let id = selectors["data"]["dataList"][0]["id"].as_str().unwrap().to_owned();
        let shown = one.api(&token, "GET", &format!("/selector/{id}"), None).await;
        shown["data"]["discoveryUpstreams"].as_array().map_or(0, Vec::len)
    };
    assert_eq!(upstreams().await, 0);
    client(&other, "register-uri", "REGISTER").await;
    client(&one, "register-uri", "HEARTBEAT").await;
    assert_eq!(upstreams().await, 1, "it is back");
    one.stop().await;
    other.stop().await;
}

/// Each keeps it in a file of its own folder.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_admins_have_one_sync_token() {
    let (one, other, _) = two_admins().await;
    let token = |admin: &TestAdmin| {
        std::fs::read_to_string(&admin.running().state().config().sync.token_path).unwrap()
    };
    assert_eq!(token(&one), token(&other));
    one.stop().await;
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_own_paths_answer_real_statuses() {
    let admin = TestAdmin::start().await;
    let token = admin.token("admin", PASSWORD).await;
    let headers = [
        ("X-Access-Token".to_owned(), token),
        ("X-Request-Id".to_owned(), "of-this-call-7".to_owned()),
    ];
    for (method, path, status, code) in [
        ("GET", "/v1/gateways?limit=900", 400, "invalid"),
        ("GET", "/v1/gateways?connected=perhaps", 400, "invalid"),
        ("DELETE", "/v1/gateways", 405, "methodNotAllowed"),
        ("GET", "/v1/nothing", 404, "notFound"),
    ] {
        let answer = admin.call(method, path, &headers, None).await;
        let json = answer.json.unwrap();
        assert_eq!((answer.status, json["code"].as_str()), (status, Some(code)), "{path}: {json}");
        assert_eq!(json["requestId"], "of-this-call-7");
        assert_eq!(answer.headers["x-request-id"], "of-this-call-7");
    }
    let answer = admin.call("GET", "/v1/gateways?limit=900", &headers, None).await.json.unwrap();
    assert_eq!(
        answer["fields"],
        json!([{"pointer": "limit", "value": "900", "expected": "1 to 500"}])
    );
    admin.stop().await;
}

/// An admin of its own process.
struct Process(Child, u16);

impl Process {
    fn start(url: &str, folder: &std::path::Path, of: usize) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let own = folder.join(of.to_string());
        std::fs::create_dir(&own).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_longmen-admin"))
            .args(["--server.address=127.0.0.1".to_owned(), format!("--server.port={port}")])
            .arg(format!("--shenyu.admin.password={PASSWORD}"))
            .env("DATABASE_URL", url)
            .current_dir(own)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self(child, port)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be dead already, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The port of the holder of each lease, by the name of the job.
async fn holders(url: &str) -> Vec<(String, u16)> {
    const HOLDERS: &str = "SELECT l.name, substring(a.name FROM ':([0-9]+)$') FROM job_lease l \
         JOIN admin_process a ON a.id = l.owner ORDER BY l.name";
    let rows = psql(url, HOLDERS).await;
    let row = |row: &String| {
        let (name, port) = row.split_once('|').unwrap();
        (name.to_owned(), port.parse().unwrap())
    };
    rows.iter().map(row).collect()
}

/// The holder is killed without a word: another one runs its jobs within 15 s (and what a busy machine
/// adds to it).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_jobs_of_a_killed_admin_are_taken_over() {
    const JOBS: [&str; 4] = ["gateways", "instances", "probes", "prune"];
    let url = tokio::task::spawn_blocking(fresh_database).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut first = Process::start(&url, folder.path(), 0);
    let held_by = async |port: u16, limit: Duration| {
        let begun = Instant::now();
        loop {
            // No table yet while the first one starts.
            let there =
                psql(&url, "SELECT to_regclass('job_lease'), to_regclass('admin_process')").await;
            let held =
                if there == ["job_lease|admin_process"] { holders(&url).await } else { Vec::new() };
            let own =
                held.iter().filter(|(_, holder)| *holder == port).map(|(name, _)| name.as_str());
            if own.eq(JOBS) {
                return begun.elapsed();
            }
            assert!(begun.elapsed() < limit, "{port} does not run all jobs: {held:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    held_by(first.1, DEADLINE).await;
    let second = Process::start(&url, folder.path(), 1);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let health = format!("http://127.0.0.1:{}/actuator/health", second.1);
    let begun = Instant::now();
    while !client.get(&health).send().await.is_ok_and(|answer| answer.status().is_success()) {
        assert!(begun.elapsed() < DEADLINE, "the second admin does not serve");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // It has looked at the leases and sees that the first one lives.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(holders(&url).await.iter().all(|(_, port)| *port == first.1));
    first.0.kill().unwrap();
    first.0.wait().unwrap();
    let took = held_by(second.1, Duration::from_secs(20)).await;
    println!("taken over after {took:?}");
    assert!(took > Duration::from_secs(5), "{took:?}: it did not wait for the sign of life");
}
