//! Gateways that poll: our own admin, and a scripted stock one.

mod admin;
mod failing;
mod ours;
mod recorded;
mod scripted;
mod tls;

use std::time::Duration;

use longmen_bootstrap::RunningGateway;

use crate::support::{Answer, LIMIT, gateway, get};

/// A gateway that polls these addresses; `more` are further keys below `http:`, indented by six.
async fn polling(urls: &str, more: &str) -> RunningGateway {
    gateway(&format!(
        "  compat: standard\n  sync:\n    http:\n      url: \"{urls}\"\n      username: admin\n      \
         password: \"123456\"\n      reconnectInterval: 200\n{more}"
    ))
    .await
}

/// Asks until the answer is as wanted.
async fn eventually(gateway: &RunningGateway, path: &str, wanted: impl Fn(&Answer) -> bool) {
    let asking = async {
        while !wanted(&get(gateway, path).await) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let in_time = tokio::time::timeout(LIMIT, asking).await;
    assert!(in_time.is_ok(), "{path}: {:?}", get(gateway, path).await);
}

fn served_by(name: &'static str) -> impl Fn(&Answer) -> bool {
    move |answer| answer.status == 200 && answer.upstream.as_deref() == Some(name)
}

fn is_gone(answer: &Answer) -> bool {
    answer.status == 404
}
