//! A gateway starts from what it had in force, whatever its admin and the file are like.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use longmen_benchmark::origin::Origin;
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fake_admin::FakeAdmin;
use crate::standard::{objects, routed};
use crate::stopping::process::{Process, until_routed};
use crate::support::{LIMIT, client, upstream};

/// An admin that is not there.
const NOWHERE: &str = "ws://127.0.0.1:1/websocket";

struct Scene {
    _origin: Origin,
    admin: FakeAdmin,
    folder: TempDir,
    port: u16,
}

impl Scene {
    async fn new() -> Self {
        let origin = upstream("U1");
        let admin = FakeAdmin::start(routed(&origin.addr().to_string())).await;
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self { _origin: origin, admin, folder: tempfile::tempdir().unwrap(), port }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("kept").join("gateway.snapshot")
    }

    fn start(&self, admin: &str, others: &[&str]) -> Process {
        let mut arguments = vec![
            format!("--server.port={}", self.port),
            "--server.address=127.0.0.1".to_owned(),
            "--shenyu.management.port=0".to_owned(),
            "--shenyu.netty.http.workerCount=1".to_owned(),
            format!("--shenyu.snapshot.path={}", self.file().display()),
            format!("--shenyu.sync.websocket.urls={admin}"),
        ];
        arguments.extend(others.iter().map(|other| (*other).to_owned()));
        Process::start(&arguments)
    }

    /// A gateway was fed by its admin, and has ended in good order.
    async fn had_a_gateway() -> Self {
        let scene = Self::new().await;
        let mut process = scene.start(&scene.admin.url(), &[]);
        until_routed(process.address().await).await;
        process.signal(Signal::TERM);
        assert_eq!(process.ended().await.code(), Some(0), "{}", process.log());
        assert!(scene.file().exists(), "{}", process.log());
        scene
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        let answer = client().get(format!("http://127.0.0.1:{}{path}", self.port)).send().await;
        let answer = answer.unwrap();
        let status = answer.status().as_u16();
        (status, serde_json::from_str(&answer.text().await.unwrap()).unwrap_or(Value::Null))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_admin_it_serves_what_it_had() {
    let scene = Scene::had_a_gateway().await;
    let mode = fs::metadata(scene.file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let process = scene.start(NOWHERE, &[]);
    process.address().await;
    // At once: nothing is waited for.
    assert_eq!(scene.get("/hello").await.0, 200, "{}", process.log());
    assert_eq!(scene.get("/actuator/health").await.0, 200);
    let info = scene.get("/actuator/info").await.1;
    assert!(info["sync"]["snapshotOf"].as_i64().unwrap() > 1_700_000_000_000, "{info}");
    process.says("serving by the kept configuration until an admin can be reached").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_that_says_nothing_does_not_hold_it_up() {
    let scene = Scene::had_a_gateway().await;
    // It accepts connections, as far as the system does, and never a word.
    let stalled = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ws://{}/websocket", stalled.local_addr().unwrap());
    let process = scene.start(&url, &[]);
    process.address().await;
    assert_eq!(scene.get("/hello").await.0, 200, "{}", process.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_deleted_meanwhile_is_gone_once_the_admin_is_there() {
    let scene = Scene::had_a_gateway().await;
    // Now there is another route, and the old one is not: said twice, as an empty group must be.
    let origin = upstream("U2");
    let mut manners = routed(&origin.addr().to_string());
    manners.sequence = objects("divide", "/other", &origin.addr().to_string(), "{}");
    let admin = FakeAdmin::start(manners).await;
    let process = scene.start(&admin.url(), &[]);
    process.address().await;
    let begun = Instant::now();
    loop {
        let (other, old) = (scene.get("/other/hello").await.0, scene.get("/hello").await.0);
        if (other, old) == (200, 404) {
            break;
        }
        assert!(begun.elapsed() < LIMIT, "{other} {old}: {}", process.log());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let info = scene.get("/actuator/info").await.1;
    assert!(info["sync"].get("snapshotOf").is_none(), "{info}");
}

async fn ignored(damage: impl FnOnce(&Path), expected: &str) {
    let scene = Scene::had_a_gateway().await;
    damage(&scene.file());
    let process = scene.start(NOWHERE, &[]);
    process.address().await;
    let line = process.says("the kept configuration is not used").await;
    assert!(line.contains(expected), "{line}");
    assert_eq!(scene.get("/actuator/health").await.0, 503);
    let aside = scene.file().with_extension("snapshot.ignored");
    assert!(aside.exists(), "what was there is not lost: {line}");
    drop(process);
    // With its admin it is as ever, and keeps a file again.
    let mut process = scene.start(&scene.admin.url(), &[]);
    until_routed(process.address().await).await;
    process.signal(Signal::TERM);
    assert_eq!(process.ended().await.code(), Some(0), "{}", process.log());
    assert!(scene.file().exists());
}

fn rewrite(file: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(file).unwrap();
    change(&mut bytes);
    fs::write(file, bytes).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_cut_off_is_ignored() {
    ignored(|file| rewrite(file, |bytes| bytes.truncate(bytes.len() / 2)), "it is cut off").await;
    ignored(|file| rewrite(file, Vec::clear), "it is cut off").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_with_a_bit_turned_is_ignored() {
    let turn = |bytes: &mut Vec<u8>| {
        let at = bytes.windows(5).position(|five| five == b"hello").unwrap_or(bytes.len() / 2);
        bytes[at] ^= 1;
    };
    ignored(|file| rewrite(file, turn), "").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_of_another_version_or_that_others_can_write_is_ignored() {
    let newer = |bytes: &mut Vec<u8>| bytes[..18].copy_from_slice(b"longmen-snapshot 9");
    ignored(|file| rewrite(file, newer), "found \"longmen-snapshot 9\"").await;
    let open = |file: &Path| fs::set_permissions(file, fs::Permissions::from_mode(0o666)).unwrap();
    ignored(open, "expected mode 600, found 666").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_of_another_namespace_is_ignored() {
    let scene = Scene::had_a_gateway().await;
    let process = scene.start(NOWHERE, &["--shenyu.namespace=another"]);
    process.address().await;
    let line = process.says("the kept configuration is not used").await;
    assert!(line.contains("namespace: expected \"another\""), "{line}");
    assert_eq!(scene.get("/actuator/health").await.0, 503);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_is_killed_while_it_writes_leaves_a_whole_file() {
    let scene = Scene::had_a_gateway().await;
    for round in 0..6_u64 {
        let mut process = scene.start(&scene.admin.url(), &[]);
        until_routed(process.address().await).await;
        // Many rules, so that writing takes a while; and the moment is another one each time.
        let rules: Vec<Value> = (0..3_000)
            .map(|number| {
                json!({"id": format!("r{number}"), "pluginName": "divide", "selectorId": "s-divide",
                    "name": format!("round {round}"), "matchMode": 0, "sort": 5, "enabled": true,
                    "loged": false, "handle": "{}", "conditionDataList": []})
            })
            .collect();
        let frame = json!({"groupType": "RULE", "eventType": "UPDATE", "data": rules});
        scene.admin.text_to_all(&frame.to_string());
        tokio::time::sleep(Duration::from_millis(1_000 + round * 17)).await;
        process.signal(Signal::KILL);
        process.ended().await;
        let after = scene.start(NOWHERE, &[]);
        after.address().await;
        assert_eq!(scene.get("/hello").await.0, 200, "round {round}: {}", after.log());
        assert!(!after.log().contains("not used"), "round {round}: {}", after.log());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_successor_makes_do_with_the_file_where_no_admin_can_be_reached() {
    let scene = Scene::had_a_gateway().await;
    let mut process = scene.start(NOWHERE, &[]);
    let address = process.address().await;
    until_routed(address).await;
    let next = scene.start(NOWHERE, &["--takeover"]);
    next.says("took over").await;
    assert_eq!(process.ended().await.code(), Some(0), "{}", process.log());
    until_routed(address).await;
}
