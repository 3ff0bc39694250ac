//! Upstreams that misbehave on real sockets, and a driver that calls them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body::Frame;
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Notify, mpsc};

use super::harness::{Harness, objects_with};
use super::plugins::{self, Watch};
use crate::body::{Body, BodyError};
use crate::chain::{Driver, DriverOptions, Inbound};
use crate::model::Upstream;
use crate::snapshot::{Position, Publisher, PublisherOptions, SnapshotStore};
use crate::upstream::{
    ClientFactory, ClientOptions, Endpoint, EndpointOptions, EndpointRegistry, UpstreamClient,
};

/// How long anything may take before a test fails.
pub(super) const LIMIT: Duration = Duration::from_secs(20);

/// What an upstream does with a request that it has read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// 200, the body being `name method length digest`.
    Answer,
    /// 503.
    Unavailable,
    /// Nothing, and the connection stays open.
    Silent,
    /// The connection is closed.
    Close,
    /// The connection is reset.
    Reset,
    /// Half a response head, then the end.
    HalfHead,
    /// Ten bytes of a hundred, then nothing.
    Stall,
}

/// A request as it was read.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

/// One upstream on a port of its own.
#[derive(Debug, Clone)]
pub(super) struct Scripted {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    name: &'static str,
    manner: Mutex<Manner>,
    seen: Mutex<Vec<Seen>>,
    news: Notify,
}

impl Scripted {
    pub(super) async fn start(name: &'static str, manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            name,
            manner: Mutex::new(manner),
            seen: Mutex::default(),
            news: Notify::new(),
        });
        let serving = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(Arc::clone(&serving).serve(stream));
            }
        });
        Self { address, shared }
    }

    pub(super) fn behave(&self, manner: Manner) {
        *self.shared.manner.lock().unwrap() = manner;
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    pub(super) fn count(&self) -> usize {
        self.shared.seen.lock().unwrap().len()
    }

    /// Waits until so many requests were read.
    pub(super) async fn until_seen(&self, count: usize) {
        let waiting = async {
            loop {
                let news = self.shared.news.notified();
                if self.count() >= count {
                    return;
                }
                news.await;
            }
        };
        tokio::time::timeout(LIMIT, waiting).await.expect("the requests never came");
    }
}

impl Shared {
    async fn serve(self: Arc<Self>, mut stream: TcpStream) {
        let mut buffer = Vec::new();
        while let Some(request) = read_request(&mut stream, &mut buffer).await {
            let answer = self.answer(&request);
            self.seen.lock().unwrap().push(request);
            self.news.notify_waiters();
            let manner = *self.manner.lock().unwrap();
            match manner {
                Manner::Answer => {}
                Manner::Unavailable => {
                    let text = b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n";
                    if stream.write_all(text).await.is_err() {
                        return;
                    }
                    continue;
                }
                Manner::Silent => {
                    // Until the other side gives up.
                    let _ = stream.read(&mut [0; 64]).await;
                    return;
                }
                Manner::Close => return,
                Manner::Reset => {
                    let _ = stream.set_zero_linger();
                    return;
                }
                Manner::HalfHead => {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-le").await;
                    return;
                }
                Manner::Stall => {
                    let text = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n0123456789";
                    let _ = stream.write_all(text).await;
                    let _ = stream.read(&mut [0; 64]).await;
                    return;
                }
            }
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    fn answer(&self, request: &Seen) -> String {
        let method = request.head.split(' ').next().unwrap_or_default();
        let body = format!("{} {method} {}", self.name, digest(&request.body));
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    }
}

/// Length and hash of a body.
pub(super) fn digest(body: &[u8]) -> String {
    use md5::{Digest, Md5};
    let hash: String = Md5::digest(body).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{} {hash}", body.len())
}

async fn more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    stream.read_buf(buffer).await.ok().filter(|read| *read > 0).map(|_| ())
}

async fn line(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(end) = buffer.windows(2).position(|two| two == b"\r\n") {
            let line = String::from_utf8(buffer[..end].to_vec()).ok()?;
            buffer.drain(..end + 2);
            return Some(line);
        }
        more(stream, buffer).await?;
    }
}

async fn exactly(stream: &mut TcpStream, buffer: &mut Vec<u8>, count: usize) -> Option<Vec<u8>> {
    while buffer.len() < count {
        more(stream, buffer).await?;
    }
    Some(buffer.drain(..count).collect())
}

/// Reads a whole request; `None` at the end of the connection or of a request cut short.
async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Seen> {
    let mut head = String::new();
    loop {
        let line = line(stream, buffer).await?;
        if line.is_empty() {
            break;
        }
        head.push_str(&line);
        head.push('\n');
    }
    let lower = head.to_ascii_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = Vec::new();
    if let Some(length) = length {
        body = exactly(stream, buffer, length.parse().unwrap()).await?;
    } else if lower.contains("transfer-encoding: chunked") {
        loop {
            let size = usize::from_str_radix(&line(stream, buffer).await?, 16).unwrap();
            body.extend(exactly(stream, buffer, size).await?);
            line(stream, buffer).await?;
            if size == 0 {
                break;
            }
        }
    }
    Some(Seen { head, body })
}

/// A port that refuses connections for as long as this is held.
#[derive(Debug)]
pub(super) struct Closed {
    pub(super) address: SocketAddr,
    _socket: TcpSocket,
}

pub(super) fn closed() -> Closed {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    Closed { address: socket.local_addr().unwrap(), _socket: socket }
}

/// How upstreams are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strategy {
    Hyper,
    Reqwest,
}

pub(super) const STRATEGIES: [Strategy; 2] = [Strategy::Hyper, Strategy::Reqwest];

/// A driver whose proxy matches everything.
pub(super) struct Gateway {
    pub(super) driver: Driver,
    pub(super) registry: EndpointRegistry,
    pub(super) watch: Watch,
}

impl Gateway {
    /// `proxy` is the handle of the proxy's rule.
    pub(super) fn new(
        proxy: &str,
        upstreams: &[(SocketAddr, i32)],
        options: DriverOptions,
        endpoints: EndpointOptions,
    ) -> Self {
        Self::by(Strategy::Hyper, proxy, upstreams, options, endpoints)
    }

    /// The same by a client strategy.
    pub(super) fn by(
        strategy: Strategy,
        proxy: &str,
        upstreams: &[(SocketAddr, i32)],
        options: DriverOptions,
        endpoints: EndpointOptions,
    ) -> Self {
        let watch = Watch::default();
        let store = Arc::new(SnapshotStore::new());
        let registry = EndpointRegistry::new(endpoints);
        let mut publisher = Publisher::new(
            Arc::clone(&store),
            plugins::registry(&watch),
            PublisherOptions { endpoints: registry.clone(), ..PublisherOptions::default() },
        );
        let list: Vec<Upstream> = upstreams
            .iter()
            .map(|(address, weight)| Upstream {
                url: address.to_string(),
                weight: *weight,
                props: Some(r#"{"warmup":0}"#.into()),
                ..Upstream::default()
            })
            .collect();
        let mut frames = objects_with("counter", "{}", Vec::new());
        frames.extend(objects_with("proxy", proxy, list));
        publisher.apply(&frames, Position::default());
        let runtime = tokio::runtime::Handle::current();
        let clients = ClientFactory::new(ClientOptions::default(), &runtime).unwrap();
        let client: Arc<dyn UpstreamClient> = match strategy {
            Strategy::Hyper => Arc::new(clients.hyper(&runtime)),
            Strategy::Reqwest => Arc::new(clients.reqwest(&runtime)),
        };
        let driver = Driver::new(store, client, options, runtime, || 0);
        Self { driver, registry, watch }
    }

    pub(super) fn endpoint(&self, address: SocketAddr) -> Arc<Endpoint> {
        let url = address.to_string();
        let found = self.registry.list().into_iter().find(|(_, endpoint)| *endpoint.url == *url);
        found.unwrap().1
    }

    /// A whole exchange; the body must come to its end.
    pub(super) async fn send(&self, request: Request<Inbound>) -> (StatusCode, HeaderMap, String) {
        let exchange = async {
            let (head, body) = self.driver.serve(request).await.into_parts();
            (head.status, head.headers, body.collect().await.unwrap().to_bytes())
        };
        let (status, headers, body) = tokio::time::timeout(LIMIT, exchange).await.unwrap();
        (status, headers, String::from_utf8(body.to_vec()).unwrap())
    }

    /// Status and body.
    pub(super) async fn call(&self, method: &str, body: &'static str) -> (u16, String) {
        let request = Harness::request(method, "/a", Bytes::from_static(body.as_bytes()));
        let (status, _, body) = self.send(request).await;
        (status.as_u16(), body)
    }
}

/// A body that arrives in pieces and does not say how long it is.
pub(super) fn pieces(body: &[u8]) -> Body {
    let (sender, stream) = feed();
    let pieces: Vec<Bytes> = body.chunks(7000).map(Bytes::copy_from_slice).collect();
    tokio::spawn(async move {
        for piece in pieces {
            if sender.send(piece).await.is_err() {
                return;
            }
        }
    });
    stream
}

/// A body fed from outside; it ends when the sender is dropped.
pub(super) fn feed() -> (mpsc::Sender<Bytes>, Body) {
    struct Fed(mpsc::Receiver<Bytes>);
    impl http_body::Body for Fed {
        type Data = Bytes;
        type Error = BodyError;
        fn poll_frame(
            mut self: std::pin::Pin<&mut Self>,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<Frame<Bytes>, BodyError>>> {
            self.0.poll_recv(cx).map(|data| data.map(|data| Ok(Frame::data(data))))
        }
    }
    let (sender, receiver) = mpsc::channel(1);
    (sender, Body::boxed(Fed(receiver)))
}
