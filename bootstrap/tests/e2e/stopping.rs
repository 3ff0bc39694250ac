//! Stops and restarts of the real process: what was sent is answered, and nobody is turned away.

mod inherited;
mod load;
mod process;
mod signals;
mod takeover;
mod websockets;

use longmen_benchmark::origin::Origin;

use crate::fake_admin::{FakeAdmin, Manners};
use crate::standard::{objects, routed};
use crate::support::upstream;

/// An upstream, and an admin that sends plain requests and websockets there.
struct Scene {
    origin: Origin,
    admin: FakeAdmin,
}

impl Scene {
    async fn new() -> Self {
        let origin = upstream("U1");
        let address = origin.addr().to_string();
        let mut manners: Manners = routed(&address);
        manners.sequence.extend(objects("websocket", "/", &address, "{}"));
        let admin = FakeAdmin::start(manners).await;
        Self { origin, admin }
    }

    /// The arguments of a gateway of this scene on `port`; 0 takes a free one.
    fn arguments(&self, port: u16) -> Vec<String> {
        [
            format!("--server.port={port}"),
            "--server.address=127.0.0.1".to_owned(),
            "--shenyu.management.port=0".to_owned(),
            "--shenyu.netty.http.workerCount=2".to_owned(),
            "--shenyu.shutdown.grace=8000".to_owned(),
            format!("--shenyu.sync.websocket.urls={}", self.admin.url()),
        ]
        .into()
    }
}
