//! A gateway in this process, upstreams beside it, and plain clients.

use std::path::PathBuf;
use std::time::Duration;

use longmen_benchmark::origin::Origin;
use longmen_bootstrap::config::GatewayConfig;
use longmen_bootstrap::{Gateway, RunningGateway};
use longmen_core::chain::Registry;
use longmen_core::snapshot::Position;
use serde_json::Value;

/// How long anything may take before a test fails.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// A file of recordings: from `tests/golden`, or from the folder that `GOLDEN_DIR` names.
pub(crate) fn recording(file: &str) -> Vec<Value> {
    let folder = std::env::var_os("GOLDEN_DIR").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden"),
        PathBuf::from,
    );
    let path = folder.join(file);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("recording {}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Starts a gateway on free ports with one worker; `yaml` holds further keys, indented by two
/// blanks, below `shenyu:`.
pub(crate) async fn gateway(yaml: &str) -> RunningGateway {
    gateway_with(yaml, longmen_plugins::registry()).await
}

/// The same with other plugins.
pub(crate) async fn gateway_with(yaml: &str, registry: Registry) -> RunningGateway {
    let text = format!(
        "server:\n  port: 0\n  address: 127.0.0.1\nshenyu:\n  management:\n    port: 0\n  netty:\n    \
         http:\n      workerCount: 1\n  shutdown:\n    delay: 0\n    grace: 2000\n{yaml}"
    );
    let config = GatewayConfig::from_yaml(&text).unwrap_or_else(|error| panic!("{error}"));
    tokio::task::spawn_blocking(move || Gateway::builder(config).registry(registry).start())
        .await
        .unwrap()
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Stops a gateway in good order.
pub(crate) async fn stop(gateway: RunningGateway) {
    assert!(tokio::task::spawn_blocking(move || gateway.stop()).await.unwrap());
}

/// A named upstream on a free port.
pub(crate) fn upstream(name: &str) -> Origin {
    Origin::builder().name(name).start().unwrap()
}

/// A client that reuses no connection and follows nothing.
pub(crate) fn client() -> reqwest::Client {
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .pool_max_idle_per_host(0)
        .timeout(LIMIT)
        .build()
        .unwrap()
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The upstream that answered, if any did.
    pub(crate) upstream: Option<String>,
    pub(crate) body: String,
}

/// Gets a path through a gateway.
pub(crate) async fn get(gateway: &RunningGateway, path: &str) -> Answer {
    let url = format!("http://{}{path}", gateway.address);
    let response = client().get(url).send().await.unwrap();
    let upstream =
        response.headers().get("x-upstream").map(|name| name.to_str().unwrap().to_owned());
    let status = response.status().as_u16();
    Answer { status, upstream, body: response.text().await.unwrap() }
}

/// Waits until a snapshot is in force that `wanted` accepts.
pub(crate) async fn until(gateway: &RunningGateway, wanted: impl Fn(bool, &Position) -> bool) {
    let waiting = async {
        loop {
            let snapshot = gateway.store.load_full();
            if wanted(snapshot.ready, &snapshot.position) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(LIMIT, waiting).await.expect("the configuration never came in force");
}
