//! Situations in which gateways have failed in practice, run under `compat: standard` as they are
//! described: URL encoding, headers, framing, streaming, upgrades, failing upstreams, odd handles.

mod bytes;
mod choice;
mod failing;
mod floods;
mod guarded;
mod sockets;
mod streams;

use longmen_benchmark::raw::{Answer, RawClient, RawUpstream, Received, Reply, Then};
use longmen_bootstrap::RunningGateway;

use crate::fake_admin::{FakeAdmin, Manners};
use crate::support::{LIMIT, gateway, until};

/// Keys below `shenyu:` for each client strategy.
const STRATEGIES: [&str; 2] =
    ["  httpclient:\n    strategy: hyper\n", "  httpclient:\n    strategy: reqwest\n"];

/// A gateway fed by a scripted admin.
struct Field {
    gateway: RunningGateway,
    admin: FakeAdmin,
}

impl Field {
    /// `yaml` holds further keys below `shenyu:`.
    async fn start(manners: Manners, yaml: &str) -> Self {
        let admin = FakeAdmin::start(manners).await;
        let urls = admin.url();
        let gateway = gateway(&format!(
            "  compat: standard\n{yaml}  sync:\n    websocket:\n      urls: {urls}\n"
        ))
        .await;
        until(&gateway, |ready, _| ready).await;
        Self { gateway, admin }
    }

    async fn connect(&self) -> RawClient {
        RawClient::connect(self.gateway.address, LIMIT).await.unwrap()
    }

    /// Sends one request on a connection of its own.
    async fn send(&self, request: &str) -> Answer {
        let mut client = self.connect().await;
        client.send(request.as_bytes()).await;
        client.answer(request.starts_with("HEAD ")).await
    }

    async fn stop(self) {
        crate::support::stop(self.gateway).await;
    }
}

async fn upstream(script: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> RawUpstream {
    RawUpstream::start("127.0.0.1:0".parse().unwrap(), script).await.unwrap()
}

/// An answer that keeps the connection.
fn ok(text: &str) -> Reply {
    let bytes =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()).into_bytes();
    Reply { bytes, then: Then::Keep }
}

fn bytes_then(text: &str, then: Then) -> Reply {
    Reply { bytes: text.as_bytes().to_vec(), then }
}

/// The target that an upstream received last, of one request.
fn only_target(upstream: &RawUpstream) -> String {
    let received = upstream.take();
    assert_eq!(received.len(), 1, "{received:?}");
    received[0].line().split(' ').nth(1).unwrap_or_default().to_owned()
}
