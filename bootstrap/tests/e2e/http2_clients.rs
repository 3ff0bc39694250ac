//! HTTP/2 clients that take their time: windows keep what the socket would take.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use longmen_bootstrap::RunningGateway;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::fake_admin::FakeAdmin;
use crate::standard::routed;
use crate::support::{LIMIT, gateway, stop, until, upstream};

/// A client whose streams have this window, and the end of its connection.
async fn client(address: SocketAddr, window: u32) -> (SendRequest<Empty<Bytes>>, JoinHandle<()>) {
    let stream = TcpStream::connect(address).await.unwrap();
    let mut builder = Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(window);
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
    let ended = tokio::spawn(async move {
        let _ = connection.await;
    });
    (sender, ended)
}

async fn get(sender: &mut SendRequest<Empty<Bytes>>, path: &str) -> Response<Incoming> {
    let request = Request::get(format!("http://h{path}")).body(Empty::new()).unwrap();
    tokio::time::timeout(LIMIT, sender.send_request(request)).await.unwrap().unwrap()
}

/// An upstream whose answers have so many bytes.
async fn sends(size: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n").into_bytes();
        answer.resize(answer.len() + size, b'x');
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let answer = answer.clone();
            tokio::spawn(async move {
                // A connection without a request only asked whether somebody is there.
                while stream.read(&mut [0; 4096]).await.is_ok_and(|read| read > 0) {
                    let _ = stream.write_all(&answer).await;
                }
            });
        }
    });
    address
}

/// A gateway in front of an upstream, with these time limits.
async fn in_front_of(origin: SocketAddr, limits: &str) -> (FakeAdmin, RunningGateway) {
    let admin = FakeAdmin::start(routed(&origin.to_string())).await;
    let urls = admin.url();
    let gateway =
        gateway(&format!("  timeouts:\n{limits}  sync:\n    websocket:\n      urls: {urls}\n"))
            .await;
    until(&gateway, |ready, _| ready).await;
    (admin, gateway)
}

/// Takes a body at this pace, from the byte `from` on; how many bytes came.
async fn taken_slowly(mut body: Incoming, from: usize, for_each_kib: Duration) -> usize {
    let mut taken = 0;
    while let Some(frame) = tokio::time::timeout(LIMIT, body.frame()).await.unwrap() {
        let Ok(frame) = frame else { return taken };
        let bytes = frame.into_data().map_or(0, |data| data.len());
        taken += bytes;
        if taken > from {
            tokio::time::sleep(for_each_kib.mul_f64(bytes as f64 / 1024.0)).await;
        }
    }
    taken
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_read_slowly_is_not_reset() {
    const SIZE: usize = 2 << 20;
    // By then the upstream's answer is read in pieces of hundreds of kilobytes, each of which takes
    // longer than the limit.
    const FAST: usize = 1500 << 10;
    let (_admin, gateway) = in_front_of(sends(SIZE).await, "    clientWriteStall: 2000\n").await;
    let (mut sender, _ended) = client(gateway.address, 16 << 10).await;
    let begun = Instant::now();
    let answer = get(&mut sender, "/large").await;
    let taken = taken_slowly(answer.into_body(), FAST, Duration::from_millis(8)).await;
    assert_eq!(taken, SIZE, "after {:?}", begun.elapsed());
    assert!(begun.elapsed() > Duration::from_millis(3000), "{:?}", begun.elapsed());
    drop(sender);
    stop(gateway).await;
}

/// So little that it is read at once and given to the server at once, which then has it for longer than
/// a connection without requests is kept.
const TAIL: usize = 4 << 10;
const WINDOW: u32 = 256;
const PACE: Duration = Duration::from_millis(1800);

async fn tail_in_service() {
    let limits = "    clientIdle: 300\n    clientWriteStall: 4000\n";
    let (_admin, gateway) = in_front_of(sends(TAIL).await, limits).await;
    let (mut sender, ended) = client(gateway.address, WINDOW).await;
    let answer = get(&mut sender, "/tail").await;
    assert_eq!(taken_slowly(answer.into_body(), 0, PACE).await, TAIL, "cut off in service");
    // Only then is it idle.
    tokio::time::timeout(LIMIT, ended).await.expect("kept for ever").unwrap();
    stop(gateway).await;
}

async fn tail_at_a_stop() {
    let limits = "    clientWriteStall: 4000\n  shutdown:\n    grace: 15000\n";
    let admin = FakeAdmin::start(routed(&sends(TAIL).await.to_string())).await;
    let text = format!(
        "server:\n  port: 0\n  address: 127.0.0.1\nshenyu:\n  management:\n    port: 0\n  \
         timeouts:\n{limits}  sync:\n    websocket:\n      urls: {}\n",
        admin.url()
    );
    let config = longmen_bootstrap::config::GatewayConfig::from_yaml(&text).unwrap();
    let starting =
        tokio::task::spawn_blocking(move || longmen_bootstrap::Gateway::builder(config).start());
    let gateway = starting.await.unwrap().unwrap();
    until(&gateway, |ready, _| ready).await;
    let (mut sender, _ended) = client(gateway.address, WINDOW).await;
    let answer = get(&mut sender, "/tail").await;
    let stopping = tokio::spawn(stop(gateway));
    assert_eq!(taken_slowly(answer.into_body(), 0, PACE).await, TAIL, "cut off by a stop");
    drop(sender);
    tokio::time::timeout(LIMIT, stopping).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tail_of_an_answer_is_sent_to_its_end() {
    tokio::join!(tail_in_service(), tail_at_a_stop());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_takes_nothing_of_a_tail_is_given_up() {
    // Idle connections are kept for much longer.
    let limits = "    clientWriteStall: 500\n";
    let (_admin, gateway) = in_front_of(sends(TAIL).await, limits).await;
    let (mut sender, ended) = client(gateway.address, WINDOW).await;
    let answer = get(&mut sender, "/tail").await;
    tokio::time::timeout(LIMIT, ended).await.expect("kept for ever").unwrap();
    let rest = answer.into_body().collect().await;
    assert!(rest.is_err(), "everything came");
    stop(gateway).await;
}

/// The next frame: its type and payload.
async fn frame(stream: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.ok()?;
    let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
    stream.read_exact(&mut payload).await.ok()?;
    Some((head[3], payload))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ping_waits_for_its_answer_as_long_as_bytes_wait_to_be_taken() {
    const HEADERS: u8 = 1;
    const PING: u8 = 6;
    let origin = upstream("U1");
    let limits = "    clientHead: 300\n    clientIdle: 300\n    clientWriteStall: 6000\n";
    let (_admin, gateway) = in_front_of(origin.addr(), limits).await;
    let mut stream = TcpStream::connect(gateway.address).await.unwrap();
    let path = "/fault/slow-head?ms=2000";
    let mut request = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    // GET, http, the path, and a short authority; the end of the headers and of the stream.
    let mut block = b"\x82\x86\x44".to_vec();
    block.push(u8::try_from(path.len()).unwrap());
    block.extend(path.as_bytes());
    block.extend(b"\x41\x01h");
    request.extend([0, 0, u8::try_from(block.len()).unwrap(), HEADERS, 5, 0, 0, 0, 1]);
    request.extend(block);
    stream.write_all(&request).await.unwrap();
    let mut pings = 0;
    let answered = async {
        while let Some((kind, _)) = frame(&mut stream).await {
            pings += usize::from(kind == PING);
            if kind == HEADERS {
                return true;
            }
        }
        false
    };
    let answered = tokio::time::timeout(LIMIT, answered).await.unwrap();
    assert!(answered, "the connection was closed, {pings} pings unanswered");
    assert!(pings > 0, "the client was never asked whether it lives");
    drop(stream);
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_has_only_so_many_requests() {
    let gateway = gateway(
        "  limits:\n    maxRequestsPerConnection: 3\n  sync:\n    websocket:\n      urls: \
         ws://127.0.0.1:1/websocket\n",
    )
    .await;
    let (mut sender, ended) = client(gateway.address, 64 << 10).await;
    for number in 1..=3 {
        assert!(!ended.is_finished(), "ended before request {number}");
        let answer = get(&mut sender, "/actuator/health/liveness").await;
        assert_eq!(answer.status(), 200);
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(!body.is_empty(), "request {number}");
    }
    tokio::time::timeout(LIMIT, ended).await.expect("goes on for ever").unwrap();
    stop(gateway).await;
}
