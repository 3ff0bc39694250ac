//! A gateway under test, the admin that feeds it, and the upstreams behind it.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use longmen_benchmark::raw::{RawUpstream, Received, Reply};
use longmen_bootstrap::RunningGateway;
use serde_json::{Value, json};
use tokio::net::TcpSocket;

use super::record::UPSTREAM_PORTS;
use super::stand_in::PreserveHost;
use crate::fake_admin::{FakeAdmin, Manners};
use crate::support::{gateway_with, stop, until};

const RUNNING_MODE: &str = r#"{"eventType":"RUNNING_MODE","runningMode":"STANDALONE","isMaster":true,"masterUrl":"/websocket"}"#;

/// Everything that a case needs.
pub(crate) struct Stage {
    pub(crate) gateway: RunningGateway,
    pub(crate) upstreams: BTreeMap<&'static str, RawUpstream>,
    admin: FakeAdmin,
    /// Text of the recordings and what it is here.
    addresses: Vec<(String, String)>,
    /// What was applied, to be taken away again.
    applied: Vec<(String, Value)>,
    /// Holds the port that refuses connections.
    _refusing: TcpSocket,
}

/// A port of 127.0.0.1 that nobody listens on and nobody else can take while the socket lives.
fn refusing() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

impl Stage {
    /// Starts all; `yaml` holds keys below `shenyu:`, `websocket` is where the websocket upstream
    /// is, if the recordings need one.
    pub(crate) async fn start(
        yaml: &str,
        websocket: Option<SocketAddr>,
        script: fn(&'static str, &Received) -> Reply,
    ) -> Self {
        let manners = Manners { running_mode: vec![RUNNING_MODE.into()], ..Manners::default() };
        let admin = FakeAdmin::start(manners).await;
        let url = admin.url();
        let yaml = format!("{yaml}  sync:\n    websocket:\n      urls: {url}\n");
        let gateway = gateway_with(&yaml, longmen_plugins::registry().with(PreserveHost)).await;
        until(&gateway, |ready, _| ready).await;
        let (refusing, nobody) = refusing();
        let (mut upstreams, mut addresses) = (BTreeMap::new(), Vec::new());
        for (name, port) in UPSTREAM_PORTS {
            let address = match name {
                "U9" => nobody,
                "U7" => websocket.unwrap_or(nobody),
                _ => {
                    let free = SocketAddr::from(([127, 0, 0, 1], 0));
                    let script = move |request: &Received| script(name, request);
                    let upstream = RawUpstream::start(free, script).await.unwrap();
                    let address = upstream.address();
                    upstreams.insert(name, upstream);
                    address
                }
            };
            addresses.push((format!("127.0.0.1:{port}"), address.to_string()));
        }
        Self { gateway, upstreams, admin, addresses, applied: Vec::new(), _refusing: refusing }
    }

    pub(crate) async fn stop(self) {
        stop(self.gateway).await;
    }

    /// A recorded text with the addresses of this stage.
    pub(crate) fn here(&self, text: &[u8]) -> Vec<u8> {
        let mut text = text.to_vec();
        for (there, here) in &self.addresses {
            text = replace(&text, there.as_bytes(), here.as_bytes());
        }
        text
    }

    /// Puts objects in force, one after the other.
    pub(crate) async fn apply(&mut self, objects: &[(String, Value)]) {
        for (group, object) in objects {
            let text = String::from_utf8(self.here(object.to_string().as_bytes())).unwrap();
            let object: Value = serde_json::from_str(&text).unwrap();
            self.frame(group, "UPDATE", &object);
            if group == "SELECTOR"
                && let Some(upstreams) = upstreams(&object)
            {
                self.frame("DISCOVER_UPSTREAM", "UPDATE", &upstreams);
            }
            self.applied.push((group.clone(), object));
        }
        self.admin.fence().await;
    }

    /// Takes everything away that was applied.
    pub(crate) async fn clear(&mut self) {
        for (group, object) in std::mem::take(&mut self.applied).iter().rev() {
            self.frame(group, "DELETE", object);
        }
        self.admin.fence().await;
        for upstream in self.upstreams.values() {
            drop(upstream.take());
        }
    }

    fn frame(&self, group: &str, event: &str, object: &Value) {
        let frame = json!({"groupType": group, "eventType": event, "data": [object]});
        self.admin.text(frame.to_string());
    }
}

/// The upstream event that belongs to a selector whose handle lists upstreams.
fn upstreams(selector: &Value) -> Option<Value> {
    let listed: Value = serde_json::from_str(selector["handle"].as_str()?).ok()?;
    let list: Vec<Value> = listed
        .as_array()?
        .iter()
        .map(|one| {
            let warmup = one["warmup"].as_i64().unwrap_or(0).to_string();
            json!({
                "id": null, "protocol": one["protocol"], "url": one["upstreamUrl"],
                "status": i32::from(one["status"] == json!(false)), "weight": one["weight"],
                "props": json!({ "warmup": warmup }).to_string(),
            })
        })
        .collect();
    Some(json!({
        "selectorId": selector["id"], "pluginName": selector["pluginName"],
        "selectorName": selector["name"], "upstreamDataList": list,
    }))
}

pub(crate) fn replace(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.windows(from.len()).position(|window| window == from) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(to);
        rest = &rest[at + from.len()..];
    }
    out.extend_from_slice(rest);
    out
}
