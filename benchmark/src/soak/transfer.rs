//! Large bodies up and down at once, with a length and in chunks.

use anyhow::{Context as _, ensure};
use http::header::CONTENT_LENGTH;
use http::{HeaderValue, Method, StatusCode};
use http_body_util::BodyExt as _;

use super::Lane;
use super::pattern::{CHUNK, Pattern};
use super::wire;

pub(super) async fn run(lane: Lane) {
    let pattern = Pattern::new();
    let mut with_length = lane.number.is_multiple_of(2);
    while !lane.stop.is_cancelled() {
        let outcome = exchange(&lane, &pattern, with_length).await;
        lane.tally.count("transfers", outcome);
        with_length = !with_length;
    }
}

async fn exchange(lane: &Lane, pattern: &Pattern, with_length: bool) -> anyhow::Result<()> {
    let body = wire::streamed(pattern, lane.bytes, CHUNK);
    let mut request = lane.request(Method::POST, "/echo", body)?;
    if with_length {
        request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(lane.bytes));
    }
    let response = lane.wire().await?.send(request).await?;
    ensure!(response.status() == StatusCode::OK, "status {}", response.status());
    let mut body = response.into_body();
    let mut offset = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.with_context(|| format!("broke off after {offset} bytes"))?;
        if let Ok(bytes) = frame.into_data() {
            pattern.check(offset, &bytes)?;
            offset += bytes.len() as u64;
        }
    }
    ensure!(offset == lane.bytes, "{offset} of {} bytes came back", lane.bytes);
    Ok(())
}
