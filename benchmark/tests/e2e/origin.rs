//! Every path of the mock upstream, its faults and its end.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use hyper_util::rt::{TokioExecutor, TokioIo};
use longmen_benchmark::client::{Connection, Server};
use longmen_benchmark::origin::{Fault, Origin};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

const EMPTY_SHA256: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const ABC_SHA256: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// No step of these tests may take longer.
const LIMIT: Duration = Duration::from_secs(10);

fn start() -> Origin {
    Origin::builder().name("u1").start().expect("a free port on loopback")
}

fn connect(origin: &Origin) -> Connection {
    Connection::new(Server::parse(&origin.url()).expect("the origin's own address"))
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.expect("done within the limit")
}

#[tokio::test]
async fn fixed_answers_have_their_sizes_and_name_the_origin() {
    let origin = start();
    let mut connection = connect(&origin);
    for (path, bytes) in [("/hello", 13), ("/2k", 2_048), ("/4k", 4_000), ("/delay20", 2_048)] {
        let answer = connection.get(path).await.expect(path);
        assert_eq!(answer.status, StatusCode::OK, "{path}");
        assert_eq!(answer.body.len(), bytes, "{path}");
        assert_eq!(answer.header("content-length"), Some(bytes.to_string().as_str()), "{path}");
        assert_eq!(answer.header("x-upstream"), Some("u1"), "{path}");
    }
    assert_eq!(origin.requests(), 4);
    assert_eq!(origin.connections(), 1, "the connection is kept");
    origin.stop().await;
}

#[tokio::test]
async fn delay20_takes_twenty_milliseconds() {
    let origin = start();
    let before = std::time::Instant::now();
    connect(&origin).get("/delay20").await.expect("an answer");
    assert!(before.elapsed() >= Duration::from_millis(20), "{:?}", before.elapsed());
}

#[tokio::test]
async fn other_paths_describe_the_request() {
    let origin = start();
    let mut connection = connect(&origin);
    let mut headers = HeaderMap::new();
    headers.append("x-two", HeaderValue::from_static("a"));
    headers.append("x-two", HeaderValue::from_static("b"));
    let answer = connection
        .send(Method::PUT, "/a/%2F?b=c&b=d", headers, Bytes::from_static(b"abc"))
        .await
        .expect("an answer");
    let json = answer.json().expect("JSON");
    assert_eq!(json["name"], "u1");
    assert_eq!(json["method"], "PUT");
    assert_eq!(json["target"], "/a/%2F?b=c&b=d");
    assert_eq!(json["bodyLength"], 3);
    assert_eq!(json["bodySha256"], ABC_SHA256);
    let headers = json["headers"].as_array().expect("a list of headers");
    let two: Vec<_> =
        headers.iter().filter(|pair| pair[0] == "x-two").map(|pair| &pair[1]).collect();
    assert_eq!(two, ["a", "b"]);

    let quiet = Origin::builder().echo_headers(false).start().expect("a free port on loopback");
    let json = connect(&quiet).get("/").await.expect("an answer").json().expect("JSON");
    assert_eq!(json["bodySha256"], EMPTY_SHA256);
    assert!(json.get("headers").is_none());
}

#[tokio::test]
async fn echo_streams_both_ways_at_once() {
    let origin = start();
    let stream = TcpStream::connect(origin.addr()).await.expect("connect");
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("handshake");
    tokio::spawn(connection);
    let (to_body, body) = tokio::sync::mpsc::channel::<Bytes>(1);
    let body = futures_util::stream::unfold(body, |mut body| async {
        let chunk = body.recv().await?;
        Some((Ok::<_, std::io::Error>(Frame::data(chunk)), body))
    });
    let request = Request::post("/echo?x=1")
        .header("host", "test")
        .header("te", "trailers")
        .body(StreamBody::new(Box::pin(body)))
        .expect("a valid request");
    let answer = within(sender.send_request(request)).await.expect("a head before the body ends");
    assert_eq!(answer.headers()["x-upstream"], "u1");
    assert_eq!(answer.headers()["x-method"], "POST");
    assert_eq!(answer.headers()["x-target"], "/echo?x=1");
    let mut body = answer.into_body();
    for chunk in ["a", "b", "c"] {
        to_body.send(Bytes::from(chunk)).await.expect("the body is read");
        let frame = within(body.frame()).await.expect("a frame").expect("no error");
        assert_eq!(frame.into_data().expect("data"), chunk);
    }
    drop(to_body);
    let frame = within(body.frame()).await.expect("a last frame").expect("no error");
    let trailers = frame.into_trailers().expect("trailers");
    assert_eq!(trailers["x-body-sha256"], ABC_SHA256);
}

#[tokio::test]
async fn echo_keeps_length_and_type() {
    let origin = start();
    let headers = HeaderMap::from_iter([(
        "content-type".parse().expect("a name"),
        HeaderValue::from_static("text/x"),
    )]);
    let answer = connect(&origin)
        .send(Method::POST, "/echo", headers, Bytes::from_static(b"abc"))
        .await
        .expect("an answer");
    assert_eq!(answer.body, "abc");
    assert_eq!(answer.header("content-length"), Some("3"));
    assert_eq!(answer.header("content-type"), Some("text/x"));
}

#[tokio::test]
async fn http2_with_prior_knowledge() {
    let origin = start();
    let stream = TcpStream::connect(origin.addr()).await.expect("connect");
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .expect("handshake");
    tokio::spawn(connection);
    let request = Request::get("http://test/hello").body(Full::new(Bytes::new())).expect("valid");
    let answer = within(sender.send_request(request)).await.expect("an answer");
    assert_eq!(answer.version(), http::Version::HTTP_2);
    let body = answer.into_body().collect().await.expect("a body").to_bytes();
    assert_eq!(body, "Hello, world!");
}

#[tokio::test]
async fn a_preface_in_pieces_and_a_method_that_begins_like_it() {
    let origin = start();
    let mut stream = TcpStream::connect(origin.addr()).await.expect("connect");
    for byte in b"PR" {
        stream.write_all(&[*byte]).await.expect("write");
        stream.flush().await.expect("flush");
    }
    stream
        .write_all(b"OPFIND /x HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n")
        .await
        .expect("write");
    let mut answer = String::new();
    within(stream.read_to_string(&mut answer)).await.expect("read");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains(r#""method":"PROPFIND""#), "{answer}");
}

#[tokio::test]
async fn websocket_sends_messages_back() {
    let origin = start();
    let url = format!("ws://{}/ws/room", origin.addr());
    let (mut socket, answer) =
        within(tokio_tungstenite::connect_async(url)).await.expect("a handshake");
    assert_eq!(answer.headers()["x-upstream"], "u1");
    for message in [Message::text("hé"), Message::binary(vec![0_u8; 100_000])] {
        socket.send(message.clone()).await.expect("send");
        assert_eq!(within(socket.next()).await.expect("open").expect("no error"), message);
    }
    socket.close(None).await.expect("close");
    let plain = connect(&origin).get("/ws").await.expect("an answer");
    assert_eq!(plain.status, StatusCode::UPGRADE_REQUIRED);
}

#[tokio::test]
async fn events_come_one_by_one() {
    let origin = start();
    let answer = connect(&origin).get("/sse?count=3&interval_ms=1").await.expect("an answer");
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    assert_eq!(answer.body, "id: 1\ndata: 1\n\nid: 2\ndata: 2\n\nid: 3\ndata: 3\n\n");
}

#[tokio::test]
async fn statuses_on_demand() {
    let origin = start();
    let mut connection = connect(&origin);
    for (path, status) in [("204", 204), ("503", 503), ("101", 404), ("x", 404)] {
        let answer = connection.get(&format!("/status/{path}")).await.expect("an answer");
        assert_eq!(answer.status.as_u16(), status, "{path}");
    }
}

#[tokio::test]
async fn faults_by_path() {
    let origin = start();
    assert!(connect(&origin).get("/fault/close").await.is_err());
    assert!(connect(&origin).get("/fault/cut-body").await.is_err());
    let before = std::time::Instant::now();
    connect(&origin).get("/fault/slow-head?ms=30").await.expect("an answer");
    assert!(before.elapsed() >= Duration::from_millis(30));
}

#[tokio::test]
async fn faults_by_handle_come_and_go() {
    let origin = start();
    origin.set_fault(Fault::Close);
    assert!(connect(&origin).get("/hello").await.is_err());
    origin.set_fault(Fault::SlowHead(Duration::from_millis(30)));
    let before = std::time::Instant::now();
    connect(&origin).get("/hello").await.expect("an answer");
    assert!(before.elapsed() >= Duration::from_millis(30));
    origin.set_fault(Fault::None);
    connect(&origin).get("/hello").await.expect("an answer");
    assert_eq!(origin.requests(), 3);
}

#[tokio::test]
async fn a_graceful_stop_finishes_what_is_in_flight_and_frees_the_port() {
    let origin = Origin::builder().workers(3).start().expect("a free port on loopback");
    let addr = origin.addr();
    let mut connection = connect(&origin);
    let request = tokio::spawn(async move { connection.get("/fault/slow-head?ms=200").await });
    while origin.requests() == 0 {
        tokio::task::yield_now().await;
    }
    within(origin.stop()).await;
    let answer = within(request).await.expect("no panic").expect("the answer was finished");
    assert_eq!(answer.status, StatusCode::OK);
    assert!(TcpStream::connect(addr).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn dropping_it_closes_at_once() {
    let origin = start();
    let mut stream = TcpStream::connect(origin.addr()).await.expect("connect");
    stream
        .write_all(b"GET /fault/slow-head?ms=60000 HTTP/1.1\r\nhost: t\r\n\r\n")
        .await
        .expect("write");
    while origin.requests() == 0 {
        tokio::task::yield_now().await;
    }
    drop(origin);
    let mut rest = Vec::new();
    let _ = within(stream.read_to_end(&mut rest)).await;
    assert!(rest.is_empty());
}

#[test]
fn a_taken_address_is_refused_with_its_name() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port on loopback");
    let address = taken.local_addr().expect("bound").to_string();
    let error = Origin::builder().bind(address.as_str()).start().expect_err("the port is taken");
    assert!(error.to_string().contains(&address), "{error}");
}
