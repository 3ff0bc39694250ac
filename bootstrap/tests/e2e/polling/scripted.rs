//! An admin that a test plays: it hears each request and says what is answered.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::support::LIMIT;

/// One request that waits for its answer.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) target: String,
    /// Names in lower case.
    pub(super) headers: BTreeMap<String, String>,
    answer: oneshot::Sender<String>,
}

impl Asked {
    /// Answers with these bytes.
    pub(super) fn answer(self, status: u16, content_type: &str, body: &str) {
        let length = body.len();
        // A gateway that has gone hears nothing.
        let _ = self.answer.send(format!(
            "HTTP/1.1 {status} x\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n{body}"
        ));
    }

    pub(super) fn json(self, body: &str) {
        self.answer(200, "application/json", body);
    }
}

/// The admin.
pub(super) struct Scripted {
    pub(super) address: SocketAddr,
    asked: UnboundedReceiver<Asked>,
    _serving: JoinSet<()>,
}

impl Scripted {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, asked) = unbounded_channel();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, sender.clone()));
            }
        });
        Self { address, asked, _serving: serving }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next request.
    pub(super) async fn next(&mut self) -> Asked {
        let next = tokio::time::timeout(LIMIT, self.asked.recv()).await;
        next.expect("the gateway asks nothing").expect("the admin is gone")
    }

    /// The next request, which must be a log-in, gets this token.
    pub(super) async fn let_in(&mut self, token: &str) {
        let asked = self.next().await;
        assert!(asked.target.starts_with("/platform/login?"), "{}", asked.target);
        let body = format!(
            r#"{{"code":200,"message":"login dashboard user success","data":{{"token":"{token}","expiredTime":86400000}}}}"#
        );
        asked.json(&body);
    }
}

async fn serve(mut stream: TcpStream, sender: UnboundedSender<Asked>) {
    stream.set_nodelay(true).unwrap();
    let mut bytes = Vec::new();
    loop {
        let end = loop {
            if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            match stream.read_buf(&mut bytes).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        };
        let head = String::from_utf8(bytes.drain(..end).collect()).unwrap();
        let mut lines = head.lines();
        let mut words = lines.next().unwrap().split(' ');
        let [method, target] = [(); 2].map(|()| words.next().unwrap().to_owned());
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers =
            headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
        let (answer, answered) = oneshot::channel();
        if sender.send(Asked { method, target, headers, answer }).is_err() {
            return;
        }
        // One that the script drops closes the connection.
        let Ok(text) = answered.await else { return };
        if stream.write_all(text.as_bytes()).await.is_err() {
            return;
        }
    }
}
