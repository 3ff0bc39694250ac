//! Clients that leave in the middle. They check nothing; what they leave behind shows in the gateway's
//! descriptors and in the others' answers.

use std::time::Duration;

use anyhow::Context as _;
use socket2::SockRef;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::Lane;
use super::wire::ROUTE;

pub(super) async fn run(lane: Lane) {
    let mut turn = lane.number;
    while !lane.stop.is_cancelled() {
        turn = turn.wrapping_add(1);
        lane.tally.count("vanishing", leave(&lane, turn).await);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn leave(lane: &Lane, turn: u32) -> anyhow::Result<()> {
    let mut stream = lane.tcp().await?;
    let common = format!("host: {}\r\n{ROUTE}: {}\r\n", lane.gateway.authority(), lane.route);
    let (sent, reads) = match turn % 6 {
        0 => (format!("GET /hello HTTP/1.1\r\n{common}"), 0),
        1 => (format!("GET /delay20 HTTP/1.1\r\n{common}\r\n"), 0),
        2 => (format!("POST /echo HTTP/1.1\r\n{common}content-length: 1000000\r\n\r\nbegun"), 1),
        3 => (
            format!("POST /echo HTTP/1.1\r\n{common}transfer-encoding: chunked\r\n\r\n5\r\nbeg"),
            0,
        ),
        4 => (format!("GET /sse?count=1000 HTTP/1.1\r\n{common}\r\n"), 1),
        _ => (
            format!(
                "GET /ws HTTP/1.1\r\n{common}connection: Upgrade\r\nupgrade: websocket\r\n\
                 sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            ),
            1,
        ),
    };
    stream.write_all(sent.as_bytes()).await.context("send")?;
    let mut buffer = [0; 512];
    for _ in 0..reads {
        let read = tokio::time::timeout(Duration::from_secs(5), stream.read(&mut buffer)).await;
        read.context("nothing to read before leaving")?.context("read before leaving")?;
    }
    if turn.is_multiple_of(2) {
        // A reset instead of an orderly end.
        SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
    }
    Ok(())
}
