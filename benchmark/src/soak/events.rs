//! Event streams: every event, none late, none doubled.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;

use super::{Lane, wire};

const EVENTS: usize = 30;

/// Longest time until the head and the first event are there, which the upstream sends at once.
const FIRST: Duration = Duration::from_secs(2);

pub(super) async fn run(lane: Lane) {
    while !lane.stop.is_cancelled() {
        let outcome = exchange(&lane).await;
        lane.tally.count("events", outcome);
    }
}

async fn exchange(lane: &Lane) -> anyhow::Result<()> {
    let target = format!("/sse?count={EVENTS}&interval_ms=100");
    let started = Instant::now();
    let request = lane.request(Method::GET, &target, wire::full(Bytes::new()))?;
    let response = lane.wire().await?.send(request).await?;
    ensure!(response.status() == StatusCode::OK, "status {}", response.status());
    let mut body = response.into_body();
    let mut text = String::new();
    while let Some(frame) = body.frame().await {
        if let Ok(bytes) = frame.context("broke off")?.into_data() {
            if text.is_empty() {
                ensure!(started.elapsed() < FIRST, "first event after {:?}", started.elapsed());
            }
            text.push_str(std::str::from_utf8(&bytes)?);
        }
    }
    let expected: String = (1..=EVENTS).map(|n| format!("id: {n}\ndata: {n}\n\n")).collect();
    ensure!(text == expected, "other events than sent: {text:?}");
    Ok(())
}
