//! Proxied websockets: sizes, limits, and what passes through.

use futures_util::{SinkExt, StreamExt};
use longmen_benchmark::origin::Origin;
use longmen_bootstrap::RunningGateway;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Bytes, Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::fake_admin::{FakeAdmin, Manners};
use crate::standard::{objects, routed};
use crate::support::{LIMIT, gateway, stop, until, upstream};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

struct Scene {
    gateway: RunningGateway,
    _origin: Origin,
    _admin: FakeAdmin,
}

impl Scene {
    async fn new(yaml: &str) -> Self {
        let origin = upstream("U1");
        let address = origin.addr().to_string();
        let mut manners: Manners = routed(&address);
        manners.sequence.extend(objects("websocket", "/", &address, "{}"));
        let admin = FakeAdmin::start(manners).await;
        let urls = admin.url();
        let yaml =
            format!("  compat: standard\n{yaml}  sync:\n    websocket:\n      urls: {urls}\n");
        let gateway = gateway(&yaml).await;
        until(&gateway, |ready, _| ready).await;
        Self { gateway, _origin: origin, _admin: admin }
    }

    async fn open(&self) -> Result<Socket, Error> {
        let url = format!("ws://{}/ws", self.gateway.address);
        tokio_tungstenite::connect_async(url).await.map(|(socket, _)| socket)
    }
}

async fn next(socket: &mut Socket) -> Option<Result<Message, Error>> {
    tokio::time::timeout(LIMIT, socket.next()).await.expect("nothing comes")
}

async fn close_code(socket: &mut Socket) -> u16 {
    match next(socket).await {
        Some(Ok(Message::Close(Some(close)))) => close.code.into(),
        other => panic!("expected a close frame, found {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_of_every_size_come_back() {
    let scene = Scene::new("").await;
    let mut socket = scene.open().await.unwrap();
    for size in [0, 1, 125, 126, 127, 65_535, 65_536, 70_000, 1 << 20] {
        let payload = Bytes::from(vec![u8::try_from(size % 251).unwrap(); size]);
        socket.send(Message::Binary(payload.clone())).await.unwrap();
        assert_eq!(next(&mut socket).await.unwrap().unwrap(), Message::Binary(payload));
    }
    // In fragments, with a ping between them, which is the upstream's to answer.
    let part = |text: &'static [u8], code, last| {
        Message::Frame(Frame::message(Bytes::from_static(text), OpCode::Data(code), last))
    };
    socket.send(part(b"one ", Data::Text, false)).await.unwrap();
    socket.send(Message::Ping(Bytes::from_static(b"between"))).await.unwrap();
    socket.send(part(b"message", Data::Continue, true)).await.unwrap();
    let pong = next(&mut socket).await.unwrap().unwrap();
    assert_eq!(pong, Message::Pong(Bytes::from_static(b"between")));
    assert_eq!(next(&mut socket).await.unwrap().unwrap(), Message::text("one message"));
    socket.close(None).await.unwrap();
    while let Some(Ok(_)) = next(&mut socket).await {}
    stop(scene.gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frame_over_the_limit_is_refused_with_1009() {
    let scene = Scene::new("  websocket:\n    maxFramePayloadSize: 64KB\n").await;
    let mut socket = scene.open().await.unwrap();
    let fits = Message::binary(vec![1; 65_536]);
    socket.send(fits.clone()).await.unwrap();
    assert_eq!(next(&mut socket).await.unwrap().unwrap(), fits);
    socket.send(Message::binary(vec![1; 65_537])).await.unwrap();
    assert_eq!(close_code(&mut socket).await, 1009);
    while let Some(Ok(_)) = next(&mut socket).await {}
    stop(scene.gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_too_many_is_told_503_and_its_seat_is_free_again() {
    let scene = Scene::new("  websocket:\n    maxConnections: 1\n").await;
    let mut first = scene.open().await.unwrap();
    let Err(Error::Http(answer)) = scene.open().await else { panic!("expected an HTTP answer") };
    assert_eq!(answer.status(), 503);
    first.close(None).await.unwrap();
    while let Some(Ok(_)) = next(&mut first).await {}
    let opening = async {
        while scene.open().await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LIMIT, opening).await.expect("the seat stays taken");
    stop(scene.gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_one_is_closed_and_a_busy_one_is_not() {
    let scene = Scene::new("  websocket:\n    idleTimeout: 600\n").await;
    let (mut busy, mut idle) = (scene.open().await.unwrap(), scene.open().await.unwrap());
    let idle = tokio::spawn(async move { close_code(&mut idle).await });
    while !idle.is_finished() {
        busy.send(Message::text("busy")).await.unwrap();
        assert_eq!(next(&mut busy).await.unwrap().unwrap(), Message::text("busy"));
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(idle.await.unwrap(), 1001);
    stop(scene.gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subprotocols_are_agreed_between_client_and_upstream() {
    let scene = Scene::new("").await;
    let mut request = format!("ws://{}/ws", scene.gateway.address).into_client_request().unwrap();
    request.headers_mut().insert("sec-websocket-protocol", "chat, superchat".parse().unwrap());
    let (mut socket, answer) = tokio_tungstenite::connect_async(request).await.unwrap();
    assert_eq!(answer.headers()["sec-websocket-protocol"], "chat");
    socket.close(None).await.unwrap();
    while let Some(Ok(_)) = next(&mut socket).await {}
    stop(scene.gateway).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_closes_them_with_1001() {
    let scene = Scene::new("").await;
    let mut socket = scene.open().await.unwrap();
    let stopping = tokio::spawn(stop(scene.gateway));
    assert_eq!(close_code(&mut socket).await, 1001);
    while let Some(Ok(_)) = next(&mut socket).await {}
    tokio::time::timeout(LIMIT, stopping).await.unwrap().unwrap();
}
