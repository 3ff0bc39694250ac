//! Clients that are slow, but within every limit: they get their whole answer.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::Lane;
use super::pattern::{CHUNK, Pattern};
use super::wire::{self, ROUTE};

/// Bytes that a slow reader asks for.
const DOWN: u64 = 4 * 1024 * 1024;

pub(super) async fn run(lane: Lane) {
    let pattern = Pattern::new();
    while !lane.stop.is_cancelled() {
        lane.tally.count("slow heads", head(&lane).await);
        lane.tally.count("slow reads", reader(&lane, &pattern).await);
    }
}

/// A head that comes byte by byte.
async fn head(lane: &Lane) -> anyhow::Result<()> {
    let mut stream = lane.tcp().await?;
    let host = lane.gateway.authority();
    let head = format!(
        "GET /hello HTTP/1.1\r\nhost: {host}\r\n{ROUTE}: {}\r\nconnection: close\r\n\r\n",
        lane.route
    );
    for byte in head.as_bytes() {
        stream.write_all(std::slice::from_ref(byte)).await.context("send")?;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.context("read")?;
    ensure!(
        answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("Hello, world!"),
        "answered {answer:?}"
    );
    Ok(())
}

/// A body that is taken a little at a time.
async fn reader(lane: &Lane, pattern: &Pattern) -> anyhow::Result<()> {
    let request = lane.request(Method::POST, "/echo", wire::streamed(pattern, DOWN, CHUNK))?;
    let response = lane.wire().await?.send(request).await?;
    ensure!(response.status() == StatusCode::OK, "status {}", response.status());
    let mut body = response.into_body();
    let mut offset = 0;
    while let Some(frame) = body.frame().await {
        if let Ok(bytes) =
            frame.with_context(|| format!("broke off after {offset} bytes"))?.into_data()
        {
            pattern.check(offset, &bytes)?;
            offset += bytes.len() as u64;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    ensure!(offset == DOWN, "{offset} of {DOWN} bytes came back");
    Ok(())
}
