//! Websockets: messages of all sizes come back whole and in order.

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use super::Lane;
use super::pattern::{CHUNK, Pattern};
use super::wire::ROUTE;

/// Messages sent over one websocket before it is closed and another opened.
const MESSAGES: u64 = 200;

pub(super) async fn run(lane: Lane) {
    let pattern = Pattern::new();
    while !lane.stop.is_cancelled() {
        let outcome = session(&lane, &pattern).await;
        let failed = outcome.is_err();
        lane.tally.count("websockets", outcome);
        if failed {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

async fn session(lane: &Lane, pattern: &Pattern) -> anyhow::Result<()> {
    let mut request =
        format!("ws://{}/ws/{}", lane.gateway.authority(), lane.number).into_client_request()?;
    request.headers_mut().insert(ROUTE, lane.route.parse()?);
    let (mut socket, _) =
        tokio_tungstenite::client_async(request, lane.tcp().await?).await.context("handshake")?;
    for number in 0..MESSAGES {
        let size = match number % 10 {
            9 => CHUNK,
            small => usize::try_from(small * 400 + number)?,
        };
        let sent = pattern.slice(number, size);
        socket.send(Message::Binary(sent.clone())).await.context("send")?;
        match socket.next().await {
            Some(Ok(Message::Binary(bytes))) => ensure!(bytes == sent, "another message than sent"),
            other => bail!("instead of message {number}: {other:?}"),
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(500)) => {}
            () = lane.stop.cancelled() => break,
        }
    }
    socket.close(None).await.context("close")?;
    while let Some(message) = socket.next().await {
        ensure!(matches!(message, Ok(Message::Close(_))), "instead of the close: {message:?}");
    }
    Ok(())
}
