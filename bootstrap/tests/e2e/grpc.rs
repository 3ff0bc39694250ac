//! gRPC through the gateway: bodies and trailers pass, faults are said in its own terms.

use std::net::SocketAddr;

use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::client::conn::http2::SendRequest;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};

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

/// A service without TLS that sends the message back and then says that there is no such thing.
async fn service() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answering = service_fn(|request: Request<Incoming>| async {
                let message = request.into_body().collect().await?.to_bytes();
                let trailers = HeaderMap::from_iter([
                    (HeaderName::from_static("grpc-status"), HeaderValue::from_static("5")),
                    (
                        HeaderName::from_static("grpc-message"),
                        HeaderValue::from_static("no such thing"),
                    ),
                ]);
                let frames =
                    [Frame::data(message), Frame::trailers(trailers)].map(Ok::<_, hyper::Error>);
                let body = StreamBody::new(futures_util::stream::iter(frames));
                let answer = Response::builder().header("content-type", "application/grpc");
                Ok::<_, hyper::Error>(answer.body(body).unwrap())
            });
            let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(server.serve_connection(TokioIo::new(stream), answering));
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trailers_of_an_upstream_reach_the_caller() {
    let origin = service().await;
    let admin = FakeAdmin::start(routed(&origin.to_string())).await;
    let urls = admin.url();
    let gateway = gateway(&format!("  sync:\n    websocket:\n      urls: {urls}\n")).await;
    until(&gateway, |ready, _| ready).await;
    let mut sender = channel(gateway.address).await;
    let (head, body, trailers) = call(&mut sender, b"\0\0\0\0\x02hi").await;
    assert_eq!(head.status, 200);
    assert_eq!(&body[..], b"\0\0\0\0\x02hi");
    let trailers = trailers.expect("no trailers");
    assert_eq!(trailers["grpc-status"], "5");
    assert_eq!(trailers["grpc-message"], "no such thing");
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
