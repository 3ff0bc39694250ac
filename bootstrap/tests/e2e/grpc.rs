//! gRPC through the gateway: bodies and trailers pass, faults are said in its own terms.

use std::net::SocketAddr;

use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use longmen_benchmark::raw::{RawUpstream, Reply, Then};
use tokio::net::TcpStream;

use crate::fake_admin::FakeAdmin;
use crate::standard::routed;
use crate::support::{LIMIT, gateway, stop, until};

async fn channel(address: SocketAddr) -> SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(address).await.unwrap();
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    tokio::spawn(connection);
    sender
}

async fn call(
    sender: &mut SendRequest<Full<Bytes>>,
    message: &'static [u8],
) -> (http::response::Parts, Bytes, Option<HeaderMap>) {
    let request = Request::post("http://h/pkg.Service/Method")
        .header("content-type", "application/grpc+proto")
        .header("te", "trailers")
        .body(Full::new(Bytes::from_static(message)))
        .unwrap();
    let answer: Response<Incoming> =
        tokio::time::timeout(LIMIT, sender.send_request(request)).await.unwrap().unwrap();
    let (head, body) = answer.into_parts();
    let whole = tokio::time::timeout(LIMIT, body.collect()).await.unwrap().unwrap();
    let trailers = whole.trailers().cloned();
    (head, whole.to_bytes(), trailers)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trailers_of_an_upstream_reach_the_caller() {
    let origin = RawUpstream::start("127.0.0.1:0".parse().unwrap(), |_| Reply {
        bytes: b"HTTP/1.1 200 OK\r\nContent-Type: application/grpc\r\nTrailer: grpc-status, grpc-message\r\n\
            Transfer-Encoding: chunked\r\n\r\n7\r\n\0\0\0\0\x02ok\r\n0\r\ngrpc-status: 5\r\n\
            grpc-message: no such thing\r\n\r\n"
            .to_vec(),
        then: Then::Keep,
    })
    .await
    .unwrap();
    let admin = FakeAdmin::start(routed(&origin.address().to_string())).await;
    let urls = admin.url();
    let gateway = gateway(&format!("  sync:\n    websocket:\n      urls: {urls}\n")).await;
    until(&gateway, |ready, _| ready).await;
    let mut sender = channel(gateway.address).await;
    let (head, body, trailers) = call(&mut sender, b"\0\0\0\0\x02hi").await;
    assert_eq!(head.status, 200);
    assert_eq!(&body[..], b"\0\0\0\0\x02ok");
    let trailers = trailers.expect("no trailers");
    assert_eq!(trailers["grpc-status"], "5");
    assert_eq!(trailers["grpc-message"], "no such thing");
    let received = origin.take();
    assert_eq!(received[0].body(), b"\0\0\0\0\x02hi");
    drop(sender);
    stop(gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_are_grpc_statuses() {
    for compat in ["shenyu", "standard"] {
        let admin = FakeAdmin::start(routed("127.0.0.1:1")).await;
        let urls = admin.url();
        let yaml = format!("  compat: {compat}\n  sync:\n    websocket:\n      urls: {urls}\n");
        let gateway = gateway(&yaml).await;
        until(&gateway, |ready, _| ready).await;
        let mut sender = channel(gateway.address).await;
        let (head, body, _) = call(&mut sender, b"").await;
        assert_eq!(head.status, 200);
        assert_eq!(head.headers["grpc-status"], "14", "an upstream that is not there: {head:?}");
        assert!(head.headers.contains_key("grpc-message"));
        assert!(body.is_empty());
        drop(sender);
        stop(gateway).await;
    }
}
