//! Streams that stay open while everything changes: websockets, event streams, transfers.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _, stream};
use http::header::{CONTENT_LENGTH, HOST};
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_util::sync::CancellationToken;

use crate::admin_api::{AdminApi, PathCondition, Plugin};
use crate::client::Server;

/// Between two messages, events or pieces of one stream.
const BEAT: Duration = Duration::from_millis(500);

/// How late anything on a stream may be.
const LATE: Duration = Duration::from_secs(10);

/// What became of the streams.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamsResult {
    /// Streams that were open from the beginning to the end.
    pub whole: u32,
    /// Messages, events and pieces that came.
    pub messages: u64,
    /// What was cut or wrong, in words.
    pub broken: Vec<String>,
}

/// Open streams.
pub(super) struct Streams {
    open: JoinSet<anyhow::Result<u64>>,
    stop: CancellationToken,
    started: Arc<Mutex<u32>>,
    count: u32,
}

/// Makes the routes of the streams, by their paths; returns their plugins and discovery handlers.
pub(super) async fn route(
    api: &mut AdminApi,
    upstreams: &[String],
) -> anyhow::Result<Vec<(Plugin, String)>> {
    let mut handlers = Vec::new();
    let handle = json!({ "loadBalance": "roundRobin", "retry": 0, "timeout": 10_000 });
    for (plugin, pattern) in
        [(Plugin::DIVIDE, "/sse"), (Plugin::DIVIDE, "/echo"), (Plugin::WEBSOCKET, "/ws/**")]
    {
        let condition = PathCondition::pattern(pattern).to_json();
        let id = api.create_route(plugin, pattern, &condition, upstreams, &handle).await?;
        handlers.push((plugin, api.discovery_handler(&id).await?));
    }
    api.enable_plugin(Plugin::WEBSOCKET).await?;
    Ok(handlers)
}

impl Streams {
    /// Opens so many, a third of each kind, and waits until all are open.
    pub(super) async fn open(gateway: &Server, count: u32) -> anyhow::Result<Self> {
        let (stop, started) = (CancellationToken::new(), Arc::new(Mutex::new(0)));
        let mut open = JoinSet::new();
        for number in 0..count {
            let stream = Stream {
                number,
                gateway: gateway.clone(),
                stop: stop.clone(),
                started: Arc::clone(&started),
            };
            match number % 3 {
                0 => open.spawn(stream.websocket()),
                1 => open.spawn(stream.events()),
                _ => open.spawn(stream.transfer()),
            };
        }
        let streams = Self { open, stop, started, count };
        let begun = Instant::now();
        while *lock(&streams.started) < count {
            ensure!(begun.elapsed() < LATE, "only {} streams open", *lock(&streams.started));
            sleep(Duration::from_millis(10)).await;
        }
        Ok(streams)
    }

    /// Ends them, and says what became of them.
    pub(super) async fn end(mut self) -> StreamsResult {
        self.stop.cancel();
        let mut result = StreamsResult::default();
        while let Some(ended) = self.open.join_next().await {
            match ended {
                Ok(Ok(messages)) => {
                    result.whole += 1;
                    result.messages += messages;
                }
                Ok(Err(error)) => result.broken.push(format!("{error:#}")),
                Err(error) => result.broken.push(error.to_string()),
            }
        }
        debug_assert_eq!(result.whole as usize + result.broken.len(), self.count as usize);
        result
    }
}

fn lock(started: &Mutex<u32>) -> std::sync::MutexGuard<'_, u32> {
    started.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Stream {
    number: u32,
    gateway: Server,
    stop: CancellationToken,
    started: Arc<Mutex<u32>>,
}

impl Stream {
    /// Says that it is open.
    fn opened(&self) {
        *lock(&self.started) += 1;
    }

    /// Waits for the time of the next message. Says whether there is to be one.
    async fn beat(&self) -> bool {
        timeout(BEAT, self.stop.cancelled()).await.is_err()
    }

    async fn tcp(&self) -> anyhow::Result<TcpStream> {
        let stream = TcpStream::connect(self.gateway.authority()).await;
        stream.context("connect to the gateway")
    }

    async fn websocket(self) -> anyhow::Result<u64> {
        let url = format!("ws://{}/ws/{}", self.gateway.authority(), self.number);
        let handshake = tokio_tungstenite::client_async(url, self.tcp().await?);
        let (mut socket, _) = handshake.await.context("websocket: handshake")?;
        self.opened();
        let mut count = 0;
        while self.beat().await {
            let sent = Message::text(format!("{} {count}", self.number));
            socket.send(sent.clone()).await.with_context(|| format!("websocket: send {count}"))?;
            match timeout(LATE, socket.next()).await {
                Ok(Some(Ok(message))) if message == sent => count += 1,
                other => bail!("websocket: instead of message {count}: {other:?}"),
            }
        }
        Ok(count)
    }

    async fn events(self) -> anyhow::Result<u64> {
        let target = format!("/sse?count=1000000&interval_ms={}", BEAT.as_millis());
        let mut body = self.send(Method::GET, &target, stream::empty()).await?.into_body();
        let mut count = 0;
        loop {
            let frame = tokio::select! {
                () = self.stop.cancelled() => return Ok(count),
                frame = timeout(LATE, body.frame()) => frame,
            };
            let frame = frame.with_context(|| format!("events: event {} is late", count + 1))?;
            let frame = frame.with_context(|| format!("events: ended after {count}"))?;
            let Ok(bytes) =
                frame.with_context(|| format!("events: cut after {count}"))?.into_data()
            else {
                bail!("events: trailers after {count}")
            };
            for event in std::str::from_utf8(&bytes)?.split_terminator("\n\n") {
                count += 1;
                let expected = format!("id: {count}\ndata: {count}");
                ensure!(event == expected, "events: {event:?} instead of {expected:?}");
            }
            if count == 1 {
                self.opened();
            }
        }
    }

    /// A body that goes out in small pieces and comes back as it goes.
    async fn transfer(self) -> anyhow::Result<u64> {
        let stop = self.stop.clone();
        let pieces = stream::unfold(0_u64, move |piece| {
            let stop = stop.clone();
            async move {
                if piece > 0 && timeout(BEAT, stop.cancelled()).await.is_ok() {
                    return None;
                }
                Some((format!("{piece:>1023}\n"), piece + 1))
            }
        });
        let mut body = self.send(Method::POST, "/echo", pieces).await?.into_body();
        let (mut seen, mut count) = (Vec::new(), 0_u64);
        loop {
            let frame = timeout(LATE, body.frame()).await;
            let frame = frame.with_context(|| format!("transfer: piece {count} is late"))?;
            let Some(frame) = frame else { break };
            let frame = frame.with_context(|| format!("transfer: cut after {count}"))?;
            seen.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
            while seen.len() >= 1024 {
                let piece: Vec<u8> = seen.drain(..1024).collect();
                ensure!(piece == format!("{count:>1023}\n").into_bytes(), "transfer: other bytes");
                count += 1;
                if count == 1 {
                    self.opened();
                }
            }
        }
        ensure!(self.stop.is_cancelled(), "transfer: ended after {count}");
        ensure!(seen.is_empty(), "transfer: ended within a piece");
        Ok(count)
    }

    async fn send(
        &self,
        method: Method,
        target: &str,
        pieces: impl futures_util::Stream<Item = String> + Send + 'static,
    ) -> anyhow::Result<Response<Incoming>> {
        let frames = pieces.map(|piece| Ok::<_, Infallible>(Frame::data(Bytes::from(piece))));
        let body = StreamBody::new(Box::pin(frames));
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(self.tcp().await?)).await?;
        tokio::spawn(connection);
        let mut request = Request::builder().method(&method).uri(target);
        if method == Method::GET {
            request = request.header(CONTENT_LENGTH, 0);
        }
        let request = request.header(HOST, self.gateway.authority()).body(body)?;
        let response = timeout(LATE, sender.send_request(request)).await;
        let response = response.with_context(|| format!("{target}: no answer"))??;
        ensure!(response.status() == StatusCode::OK, "{target}: status {}", response.status());
        Ok(response)
    }
}
