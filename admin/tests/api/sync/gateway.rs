//! A gateway's end of a session.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use longmen_admin::RunningAdmin;
use longmen_core::model::DEFAULT_NAMESPACE;
use longmen_core::sync::{ClientMessage, Frame, Inbound, Mark, RUNNING_MODE, decode};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Message, client::IntoClientRequest as _};

/// No frame takes longer, or it never comes.
const DEADLINE: Duration = Duration::from_secs(20);

/// What a message is, besides PING and PONG.
#[derive(Debug)]
pub(crate) enum Heard {
    Text(String),
    Closed(Option<CloseFrame>),
}

/// An open session.
pub(crate) struct Gateway {
    socket: WebSocketStream<TcpStream>,
    /// The sync header of the admin's answer.
    pub(crate) negotiated: Option<String>,
    /// PING frames seen so far.
    pub(crate) pings: u32,
}

/// One change set or full refresh, as a gateway of ours takes it over in one step.
#[derive(Debug)]
pub(crate) struct Set {
    pub(crate) frames: Vec<Frame>,
    pub(crate) mark: Mark,
}

impl Gateway {
    /// Opens a session with these headers besides the handshake's own.
    pub(crate) async fn open(addr: SocketAddr, headers: &[(&'static str, &str)]) -> Self {
        let mut request = format!("ws://{addr}/websocket").into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let stream = TcpStream::connect(addr).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let opened = tokio_tungstenite::client_async(request, stream);
        let (socket, response) = tokio::time::timeout(DEADLINE, opened).await.unwrap().unwrap();
        let negotiated = response.headers().get("x-longmen-sync");
        let negotiated = negotiated.map(|value| value.to_str().unwrap().to_owned());
        Self { socket, negotiated, pings: 0 }
    }

    /// As a stock gateway of the default namespace.
    pub(crate) async fn stock(admin: &RunningAdmin) -> Self {
        Self::stock_of(admin, DEFAULT_NAMESPACE).await
    }

    /// As a stock gateway.
    pub(crate) async fn stock_of(admin: &RunningAdmin, namespace: &str) -> Self {
        let headers =
            [("origin", "ws://localhost:9195"), ("namespaceid", namespace), ("clientport", "9195")];
        Self::open(admin.addr, &headers).await
    }

    /// As one of our gateways of the default namespace, that stands at the given version.
    pub(crate) async fn ours(admin: &RunningAdmin, epoch: &str, version: u64) -> Self {
        let headers = [
            ("origin", "ws://localhost:9195"),
            ("namespaceid", DEFAULT_NAMESPACE),
            ("clientport", "9195"),
            ("x-longmen-sync", "1"),
        ];
        let mut gateway = Self::open(admin.addr, &headers).await;
        assert_eq!(gateway.negotiated.as_deref(), Some("1"));
        let resume = ClientMessage::Resume { epoch: epoch.to_owned(), version };
        gateway.say(&resume.to_text()).await;
        gateway
    }

    pub(crate) async fn say(&mut self, text: &str) {
        self.send(Message::text(text)).await;
    }

    pub(crate) async fn send(&mut self, message: Message) {
        tokio::time::timeout(DEADLINE, self.socket.send(message)).await.unwrap().unwrap();
    }

    /// The next message that is no PING.
    pub(crate) async fn message(&mut self) -> Option<Message> {
        loop {
            let next = tokio::time::timeout(DEADLINE, self.socket.next()).await;
            match next.expect("a message in time") {
                Some(Ok(Message::Ping(_))) => self.pings += 1,
                Some(Ok(message)) => return Some(message),
                Some(Err(_)) | None => return None,
            }
        }
    }

    pub(crate) async fn hear(&mut self) -> Heard {
        match self.message().await {
            Some(Message::Text(text)) => Heard::Text(text.as_str().to_owned()),
            Some(Message::Close(frame)) => Heard::Closed(frame),
            Some(other) => panic!("{other:?}"),
            None => Heard::Closed(None),
        }
    }

    pub(crate) async fn text(&mut self) -> String {
        match self.hear().await {
            Heard::Text(text) => text,
            Heard::Closed(frame) => panic!("closed: {frame:?}"),
        }
    }

    pub(crate) async fn json(&mut self) -> Value {
        serde_json::from_str(&self.text().await).unwrap()
    }

    /// Everything that was sent up to now: the answer about the running mode marks the place.
    pub(crate) async fn so_far(&mut self) -> Vec<Value> {
        self.say(RUNNING_MODE).await;
        let mut frames = Vec::new();
        loop {
            let frame = self.json().await;
            if frame["eventType"] == RUNNING_MODE {
                return frames;
            }
            frames.push(frame);
        }
    }

    /// The next change set or full refresh.
    pub(crate) async fn set(&mut self) -> Set {
        let mut frames = Vec::new();
        loop {
            match decode(&self.text().await).unwrap() {
                Inbound::Data(frame) => {
                    let mark = frame.mark.clone().expect("frames of ours are marked");
                    frames.push(frame);
                    if mark.last {
                        return Set { frames, mark };
                    }
                }
                Inbound::Mark(mark) => return Set { frames, mark },
                other => panic!("{other:?}"),
            }
        }
    }

    /// Sets up to the one of `version`.
    pub(crate) async fn sets_to(&mut self, version: u64) -> Vec<Set> {
        let mut sets = Vec::new();
        while sets.last().is_none_or(|set: &Set| set.mark.version < version) {
            sets.push(self.set().await);
        }
        sets
    }

    /// How the session ends; what comes before is dropped.
    pub(crate) async fn end(&mut self) -> Option<u16> {
        loop {
            match self.hear().await {
                Heard::Text(_) => {}
                Heard::Closed(frame) => return frame.map(|frame| frame.code.into()),
            }
        }
    }
}
