//! A scripted admin: accepts websocket sessions, tells what it received, sends what it is told.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use http::HeaderMap;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Bytes, Message};

use crate::support::LIMIT;

/// What the admin saw.
#[derive(Debug)]
pub(crate) enum Seen {
    Open(HeaderMap),
    Text(String),
    Pong,
    Closed(Option<u16>),
}

/// One thing that the admin saw, on which connection (from 1) and when.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) connection: usize,
    pub(crate) at: Instant,
    pub(crate) seen: Seen,
}

/// What the admin says by itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Manners {
    /// Sent on opening.
    pub(crate) greeting: Option<String>,
    /// Sent for every `RUNNING_MODE`.
    pub(crate) running_mode: Vec<String>,
    /// Sent for every `MYSELF`.
    pub(crate) sequence: Vec<String>,
}

/// A scripted admin.
#[derive(Debug)]
pub(crate) struct FakeAdmin {
    pub(crate) address: SocketAddr,
    pub(crate) events: mpsc::UnboundedReceiver<Event>,
    sessions: Arc<Mutex<Vec<mpsc::UnboundedSender<Message>>>>,
    manners: Arc<Mutex<Manners>>,
}

impl FakeAdmin {
    pub(crate) async fn start(manners: Manners) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, events) = mpsc::unbounded_channel();
        let sessions = Arc::new(Mutex::new(Vec::new()));
        let known = Arc::clone(&sessions);
        let manners = Arc::new(Mutex::new(manners));
        let latest = Arc::clone(&manners);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // Small frames wait for nobody's acknowledgement.
                stream.set_nodelay(true).unwrap();
                let (commands, queue) = mpsc::unbounded_channel();
                let connection = {
                    let mut known = known.lock().unwrap();
                    known.push(commands);
                    known.len()
                };
                let session = Session { connection, sender: sender.clone() };
                let manners = latest.lock().unwrap().clone();
                tokio::spawn(session.run(stream, queue, manners));
            }
        });
        Self { address, events, sessions, manners }
    }

    /// What is sent on connections from now on.
    pub(crate) fn behave(&self, manners: Manners) {
        *self.manners.lock().unwrap() = manners;
    }

    pub(crate) fn url(&self) -> String {
        format!("ws://{}/websocket", self.address)
    }

    /// Sends on the newest connection.
    pub(crate) fn send(&self, message: Message) {
        self.sessions.lock().unwrap().last().expect("a session").send(message).expect("open");
    }

    /// Sends on every connection that is open.
    pub(crate) fn text_to_all(&self, text: &str) {
        for session in &*self.sessions.lock().unwrap() {
            // Some have ended.
            let _ = session.send(Message::text(text));
        }
    }

    pub(crate) fn text(&self, text: impl Into<String>) {
        self.send(Message::text(text.into()));
    }

    /// Sends a text in three fragments.
    pub(crate) fn fragments(&self, text: &str) {
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        let third = bytes.len() / 3;
        let part = |from: usize, to: usize, code, last| {
            Message::Frame(Frame::message(bytes.slice(from..to), OpCode::Data(code), last))
        };
        self.send(part(0, third, Data::Text, false));
        self.send(part(third, 2 * third, Data::Continue, false));
        self.send(part(2 * third, bytes.len(), Data::Continue, true));
    }

    /// The next thing seen.
    pub(crate) async fn next(&mut self) -> Event {
        let next = tokio::time::timeout(LIMIT, self.events.recv()).await;
        next.expect("the gateway does nothing").expect("the admin is gone")
    }

    /// The next text that is no instance report.
    pub(crate) async fn next_word(&mut self) -> String {
        loop {
            match self.next().await.seen {
                Seen::Text(text) if text.contains("bootstrapInstanceInfo") => {}
                Seen::Text(text) => return text,
                Seen::Open(_) | Seen::Pong => {}
                Seen::Closed(code) => panic!("closed with {code:?} while a word was awaited"),
            }
        }
    }

    /// Waits until everything sent before was taken in: the gateway answers a ping in order.
    pub(crate) async fn fence(&mut self) {
        self.send(Message::Ping(Bytes::from_static(b"fence")));
        loop {
            match self.next().await.seen {
                Seen::Pong => return,
                Seen::Closed(code) => panic!("closed with {code:?} before the fence"),
                Seen::Open(_) | Seen::Text(_) => {}
            }
        }
    }

    /// Closes the newest connection with a code.
    pub(crate) fn close(&self, code: u16) {
        self.send(Message::Close(Some(CloseFrame { code: code.into(), reason: "bye".into() })));
    }

    /// Nothing but reports is seen for this long.
    pub(crate) async fn quiet_for(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            let Ok(Some(event)) = tokio::time::timeout(left, self.events.recv()).await else {
                return;
            };
            match event.seen {
                Seen::Text(text) if text.contains("bootstrapInstanceInfo") => {}
                Seen::Pong => {}
                other => panic!("expected quiet, saw {other:?}"),
            }
        }
    }
}

struct Session {
    connection: usize,
    sender: mpsc::UnboundedSender<Event>,
}

impl Session {
    fn tell(&self, seen: Seen) {
        let event = Event { connection: self.connection, at: Instant::now(), seen };
        let _ = self.sender.send(event);
    }

    async fn run(
        self,
        stream: TcpStream,
        mut queue: mpsc::UnboundedReceiver<Message>,
        manners: Manners,
    ) {
        let mut headers = HeaderMap::new();
        #[expect(clippy::result_large_err, reason = "the signature that the library asks for")]
        let look = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
            headers = request.headers().clone();
            Ok(response)
        };
        let Ok(mut socket) = tokio_tungstenite::accept_hdr_async(stream, look).await else {
            return;
        };
        self.tell(Seen::Open(headers));
        if let Some(greeting) = manners.greeting {
            socket.send(Message::text(greeting)).await.unwrap();
        }
        loop {
            let received = tokio::select! {
                received = socket.next() => received,
                command = queue.recv() => {
                    let Some(command) = command else { return };
                    if socket.send(command).await.is_err() {
                        self.tell(Seen::Closed(None));
                        return;
                    }
                    continue;
                }
            };
            match received {
                Some(Ok(Message::Text(text))) => {
                    self.tell(Seen::Text(text.to_string()));
                    let answers = match text.as_str() {
                        "RUNNING_MODE" => manners.running_mode.as_slice(),
                        "MYSELF" => manners.sequence.as_slice(),
                        _ => &[],
                    };
                    for answer in answers {
                        socket.send(Message::text(answer.clone())).await.unwrap();
                    }
                }
                Some(Ok(Message::Pong(payload))) if &payload[..] == b"fence" => {
                    self.tell(Seen::Pong);
                }
                Some(Ok(Message::Close(frame))) => {
                    self.tell(Seen::Closed(frame.map(|frame| frame.code.into())));
                    // The library answers the close when it is asked for more.
                    while let Some(Ok(_)) = socket.next().await {}
                    return;
                }
                Some(Ok(_)) => {}
                None | Some(Err(_)) => {
                    self.tell(Seen::Closed(None));
                    return;
                }
            }
        }
    }
}
