//! Stops and restarts of the real process: what was sent is answered, and nobody is turned away.

mod crowd;
mod inherited;
pub(crate) mod process;
mod signals;
mod takeover;
mod websockets;

use std::net::SocketAddr;

use longmen_benchmark::origin::Origin;

use self::process::{Process, until_routed};
use crate::fake_admin::{FakeAdmin, Manners};
use crate::standard::{objects, routed};
use crate::support::upstream;

/// An upstream, and an admin that sends plain requests and websockets there.
struct Scene {
    _origin: Origin,
    admin: FakeAdmin,
}

impl Scene {
    async fn new() -> Self {
        let origin = upstream("U1");
        let address = origin.addr().to_string();
        let mut manners: Manners = routed(&address);
        manners.sequence.extend(objects("websocket", "/", &address, "{}"));
        let admin = FakeAdmin::start(manners).await;
        Self { _origin: origin, admin }
    }

    /// A gateway of this scene that serves on a free port, with some arguments added or replaced.
    async fn serving(&self, others: &[&str]) -> (Process, SocketAddr) {
        let process = Process::start(&self.arguments_with(0, others));
        let address = process.address().await;
        until_routed(address).await;
        (process, address)
    }

    /// The arguments of a gateway of this scene on `port`; 0 takes a free one.
    fn arguments(&self, port: u16) -> Vec<String> {
        self.arguments_with(port, &[])
    }

    /// The same with some arguments (`--key=value`) added, or in place of the usual ones.
    fn arguments_with(&self, port: u16, others: &[&str]) -> Vec<String> {
        let key = |argument: &str| argument.split('=').next().unwrap_or_default().to_owned();
        let replaced: Vec<String> = others.iter().map(|other| key(other)).collect();
        let usual = self.usual(port).into_iter();
        let mut arguments: Vec<String> =
            usual.filter(|argument| !replaced.contains(&key(argument))).collect();
        arguments.extend(others.iter().map(|other| (*other).to_owned()));
        arguments
    }

    fn usual(&self, port: u16) -> [String; 6] {
        [
            format!("--server.port={port}"),
            "--server.address=127.0.0.1".to_owned(),
            "--shenyu.management.port=0".to_owned(),
            "--shenyu.netty.http.workerCount=2".to_owned(),
            "--shenyu.shutdown.grace=8000".to_owned(),
            format!("--shenyu.sync.websocket.urls={}", self.admin.url()),
        ]
    }
}
