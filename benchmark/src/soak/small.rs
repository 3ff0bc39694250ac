//! Small requests on kept connections: each answer must be the one to its own request.

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::Lane;
use super::pattern::{CHUNK, Pattern};
use super::wire::{self, Wire};

pub(super) async fn run(lane: Lane) {
    let pattern = Pattern::new();
    let mut wire = None;
    let mut number = 0_u64;
    while !lane.stop.is_cancelled() {
        number += 1;
        let outcome = exchange(&lane, &mut wire, &pattern, number).await;
        if outcome.is_err() {
            wire = None;
        }
        lane.tally.count("small", outcome);
    }
}

async fn exchange(
    lane: &Lane,
    kept: &mut Option<Wire>,
    pattern: &Pattern,
    number: u64,
) -> anyhow::Result<()> {
    let wire = match kept {
        Some(wire) => wire,
        None => kept.insert(lane.wire().await?),
    };
    let target = format!("/small/{}/{number}?q=%2F{number}&q", lane.number);
    let length = number * 37 % 5_000;
    let (method, body) = match number % 4 {
        0 => (Method::GET, wire::full(Bytes::new())),
        1 => (Method::POST, wire::full(pattern.slice(number, usize::try_from(length)?))),
        2 => (Method::PUT, wire::streamed(pattern, length, 700)),
        _ => (Method::DELETE, wire::full(Bytes::new())),
    };
    let expected = match number % 4 {
        1 => pattern.slice(number, usize::try_from(length)?),
        2 => pattern.slice(0, usize::try_from(length)?.min(CHUNK)),
        _ => Bytes::new(),
    };
    let response = wire.send(lane.request(method.clone(), &target, body)?).await?;
    let status = response.status();
    let bytes = response.into_body().collect().await.context("body")?.to_bytes();
    ensure!(status == StatusCode::OK, "status {status}: {}", String::from_utf8_lossy(&bytes));
    let told: Value = serde_json::from_slice(&bytes).context("no JSON")?;
    ensure!(
        told["target"] == *target && told["method"] == *method.as_str(),
        "asked {method} {target}, answered {told}"
    );
    let hash: String = Sha256::digest(&expected).iter().map(|byte| format!("{byte:02x}")).collect();
    ensure!(
        told["bodyLength"] == expected.len() && told["bodySha256"] == *hash,
        "sent {} bytes with {method}, the upstream got {}",
        expected.len(),
        told["bodyLength"]
    );
    Ok(())
}
