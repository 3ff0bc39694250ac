//! Instances that are lost without a good-bye.

use std::time::Duration;

use longmen_core::model::DEFAULT_NAMESPACE;
use serde_json::Value;
use tokio::net::{TcpListener, TcpSocket};

use super::{api, instance, send};
use crate::scene::Scene;
use crate::support::TestAdmin;

/// Nothing takes longer, or it never comes.
const DEADLINE: Duration = Duration::from_secs(20);

/// An admin that probes as often as it can, and removes what it lost after so many more probes.
async fn scene(check_times: u32) -> Scene {
    let admin = TestAdmin::with(|config| {
        config.register.checked = true;
        config.register.check_interval = Duration::from_millis(20);
        config.register.zombie_check_times = check_times;
        config.register.zombie_removal = Duration::from_millis(1);
    });
    Scene::of(admin.await).await
}

/// The upstreams of `/http`, `url status`, once `wanted` holds of them.
async fn until(scene: &Scene, wanted: impl Fn(&[String]) -> bool) -> Vec<String> {
    let list = format!(
        "/selector?pluginId=5&name=/http&namespaceId={DEFAULT_NAMESPACE}&currentPage=1&pageSize=12"
    );
    let id = scene.get(&list).await["dataList"][0]["id"].as_str().unwrap().to_owned();
    let mut version = scene.store().wake_up();
    let seen = async {
        loop {
            let shown = scene.get(&format!("/selector/{id}")).await;
            let list = shown["discoveryUpstreams"].as_array().cloned().unwrap_or_default();
            let one = |one: &Value| format!("{} {}", one["url"].as_str().unwrap(), one["status"]);
            let list: Vec<String> = list.iter().map(one).collect();
            if wanted(&list) {
                return list;
            }
            let _ = tokio::time::timeout(Duration::from_millis(100), version.next()).await;
        }
    };
    tokio::time::timeout(DEADLINE, seen).await.expect("the list came to be as wanted")
}

async fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

#[tokio::test]
async fn a_lost_instance_is_taken_out_and_comes_back_with_its_next_start() {
    let scene = scene(2).await;
    let ((kept, kept_port), (lost, lost_port)) = (listener().await, listener().await);
    send(&scene, "register-metadata", api("/http/a")).await;
    for port in [kept_port, lost_port] {
        send(&scene, "register-uri", instance(port, "REGISTER")).await;
    }
    until(&scene, |list| list.len() == 2 && list.iter().all(|one| one.ends_with(" 0"))).await;
    drop(lost);
    let left = until(&scene, |list| list.len() == 1).await;
    assert_eq!(left, [format!("127.0.0.1:{kept_port} 0")]);

    // It cannot be reached when it registers, but says a little later that it is alive.
    send(&scene, "register-uri", instance(lost_port, "HEARTBEAT")).await;
    let alive = format!("127.0.0.1:{lost_port} 0");
    until(&scene, |list| list.contains(&alive)).await;
    drop(kept);
    scene.stop().await;
}

#[tokio::test]
async fn an_instance_that_listens_later_comes_in_later() {
    let scene = scene(1_000_000).await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = socket.local_addr().unwrap().port();
    send(&scene, "register-metadata", api("/http/a")).await;
    send(&scene, "register-uri", instance(port, "REGISTER")).await;
    until(&scene, |list| list == [format!("127.0.0.1:{port} 1")]).await;
    let _late = socket.listen(16).unwrap();
    until(&scene, |list| list == [format!("127.0.0.1:{port} 0")]).await;
    scene.stop().await;
}
