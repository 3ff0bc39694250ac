//! Odd targets, headers and framings: what the upstream receives, byte for byte, or the refusal.
//!
//! `scripts/odd-requests.sh` sends the same to other proxies.

use std::path::PathBuf;

use longmen_benchmark::odd::{self, OddRequest, Outcome, load};
use longmen_benchmark::raw::RawUpstream;

use crate::support::{LIMIT, gateway, stop, until};
use crate::{fake_admin::FakeAdmin, standard};

/// The client strategies under test.
const STRATEGIES: &[&str] = &["hyper", "reqwest"];

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/odd-requests.jsonl")
}

async fn outcomes(requests: &[OddRequest], strategy: &str) -> Vec<Outcome> {
    let upstream: RawUpstream = odd::upstream("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let admin = FakeAdmin::start(standard::routed(&upstream.address().to_string())).await;
    // Nothing is added that changes from request to request.
    let gateway = gateway(&format!(
        "  compat: standard\n  forwarded:\n    mode: off\n  requestId:\n    upstream: false\n  httpclient:\n    \
         strategy: {strategy}\n  sync:\n    websocket:\n      urls: {}\n",
        admin.url()
    ))
    .await;
    until(&gateway, |ready, _| ready).await;
    let mut outcomes = Vec::with_capacity(requests.len());
    for request in requests {
        outcomes.push(odd::run(request, gateway.address, &upstream, LIMIT).await.unwrap());
    }
    stop(gateway).await;
    outcomes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_requests_reach_the_upstream_as_decided_or_not_at_all() {
    let requests = load(&std::fs::read_to_string(file()).unwrap()).unwrap();
    assert!(requests.len() >= 60, "only {} requests", requests.len());
    let mut by_strategy = Vec::new();
    for strategy in STRATEGIES {
        by_strategy.push((strategy, outcomes(&requests, strategy).await));
    }
    if std::env::var_os("UPDATE_ODD_REQUESTS").is_some() {
        let lines = requests
            .iter()
            .zip(&by_strategy[0].1)
            .map(|(request, outcome)| format!("{}\n", odd::line(request, outcome)));
        std::fs::write(file(), lines.collect::<String>()).unwrap();
    }
    let mut wrong = String::new();
    for (strategy, outcomes) in &by_strategy {
        for (request, outcome) in requests.iter().zip(outcomes) {
            if request.expected.as_ref() != Some(outcome) {
                let wanted = request.expected.clone().unwrap_or_default();
                wrong.push_str(&format!(
                    "{} by {strategy}:\n  expected {}\n  got      {}\n",
                    request.name,
                    odd::line(request, &wanted),
                    odd::line(request, outcome)
                ));
            }
        }
    }
    let updated = std::env::var_os("UPDATE_ODD_REQUESTS").is_some();
    assert!(wrong.is_empty() || updated, "{wrong}");
}
