//! Websockets: codes and messages (C-29), and changes of the configuration (C-30).

use std::net::SocketAddr;

use futures_util::{SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Bytes, Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, accept_async, connect_async};

use super::Field;
use crate::fake_admin::Manners;
use crate::standard::{objects, routed};
use crate::support::{LIMIT, get, upstream};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// What a backend does on command of its client; everything else it sends back.
const CLOSE: &str = "close";
const DIE: &str = "die";
const PING: &str = "ping";

/// A backend; the codes with which its clients close are sent back to the test.
async fn backend() -> (SocketAddr, tokio::sync::mpsc::UnboundedReceiver<Option<(u16, String)>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let tell = tell.clone();
            tokio::spawn(async move {
                let Ok(mut socket) = accept_async(stream).await else { return };
                while let Some(Ok(message)) = socket.next().await {
                    match message {
                        Message::Text(text) if text.as_str() == CLOSE => {
                            let frame = CloseFrame { code: 4400.into(), reason: "bye: ✓".into() };
                            let _ = socket.close(Some(frame)).await;
                        }
                        Message::Text(text) if text.as_str() == DIE => return,
                        Message::Text(text) if text.as_str() == PING => {
                            let ping = Message::Ping(Bytes::from_static(b"from behind"));
                            socket.send(ping).await.unwrap();
                        }
                        Message::Text(_) | Message::Binary(_) => {
                            socket.send(message).await.unwrap()
                        }
                        Message::Close(frame) => {
                            let code =
                                frame.map(|frame| (frame.code.into(), frame.reason.to_string()));
                            let _ = tell.send(code);
                        }
                        Message::Pong(payload) => {
                            assert_eq!(&payload[..], b"from behind");
                            socket.send(Message::text("ponged")).await.unwrap();
                        }
                        // The library answers pings.
                        Message::Ping(_) | Message::Frame(_) => {}
                    }
                }
            });
        }
    });
    (address, told)
}

/// Everything goes to one backend, websockets and requests.
fn manners(address: &str) -> Manners {
    let mut manners = routed(address);
    manners.sequence.extend(objects("websocket", "/", address, "{}"));
    manners
}

async fn open(field: &Field) -> Socket {
    connect_async(format!("ws://{}/ws", field.gateway.address)).await.unwrap().0
}

async fn next(socket: &mut Socket) -> Option<Result<Message, Error>> {
    tokio::time::timeout(LIMIT, socket.next()).await.expect("nothing comes")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c29_close_codes_reasons_and_messages_arrive_as_they_were_sent() {
    let (address, mut closed) = backend().await;
    let field = Field::start(manners(&address.to_string()), "").await;

    let mut socket = open(&field).await;
    socket.send(Message::text(CLOSE)).await.unwrap();
    match next(&mut socket).await {
        Some(Ok(Message::Close(Some(frame)))) => {
            assert_eq!((u16::from(frame.code), frame.reason.as_str()), (4400, "bye: ✓"));
        }
        other => panic!("expected the backend's close frame, found {other:?}"),
    }
    while let Some(Ok(_)) = next(&mut socket).await {}
    assert_eq!(closed.recv().await.unwrap().map(|(code, _)| code), Some(4400), "answered");

    let mut socket = open(&field).await;
    let frame = CloseFrame { code: 3001.into(), reason: "c".into() };
    socket.close(Some(frame)).await.unwrap();
    let seen = tokio::time::timeout(LIMIT, closed.recv()).await.unwrap().unwrap();
    assert_eq!(seen, Some((3001, "c".to_owned())));
    while let Some(Ok(_)) = next(&mut socket).await {}

    let mut socket = open(&field).await;
    socket.send(Message::text(DIE)).await.unwrap();
    match next(&mut socket).await {
        // What a library makes of an end without a close frame: 1006.
        None | Some(Err(_)) => {}
        Some(Ok(Message::Close(Some(frame)))) => {
            let code = u16::from(frame.code);
            assert!([1011, 1014].contains(&code), "{code}");
        }
        Some(Ok(other)) => panic!("expected an end, found {other:?}"),
    }
    field.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c29_messages_keep_their_boundaries_and_pings_their_payload() {
    let (address, _closed) = backend().await;
    let field = Field::start(manners(&address.to_string()), "").await;
    let mut socket = open(&field).await;
    let large = "é".repeat(512 << 10);
    for message in [
        Message::text(""),
        Message::binary(Vec::new()),
        Message::text(large),
        Message::binary(vec![0xff; 1 << 20]),
    ] {
        socket.send(message.clone()).await.unwrap();
        assert!(next(&mut socket).await.unwrap().unwrap() == message, "another message comes back");
    }
    let part = |bytes: &'static [u8], code, last| {
        Message::Frame(Frame::message(Bytes::from_static(bytes), OpCode::Data(code), last))
    };
    socket.send(part(b"in three ", Data::Text, false)).await.unwrap();
    socket.send(part(b"", Data::Continue, false)).await.unwrap();
    socket.send(Message::Ping(Bytes::from_static(b"between"))).await.unwrap();
    socket.send(part(b"parts", Data::Continue, true)).await.unwrap();
    let pong = next(&mut socket).await.unwrap().unwrap();
    assert_eq!(pong, Message::Pong(Bytes::from_static(b"between")));
    assert_eq!(next(&mut socket).await.unwrap().unwrap(), Message::text("in three parts"));
    // The other way round: the client's library answers when it is asked for more.
    socket.send(Message::text(PING)).await.unwrap();
    let ping = next(&mut socket).await.unwrap().unwrap();
    assert_eq!(ping, Message::Ping(Bytes::from_static(b"from behind")));
    assert_eq!(next(&mut socket).await.unwrap().unwrap(), Message::text("ponged"));
    drop(socket);
    field.stop().await;
}

/// One message there and back on each socket.
async fn all_alive(sockets: &mut [Socket], what: &str) {
    for (index, socket) in sockets.iter_mut().enumerate() {
        let message = Message::text(format!("{what} {index}"));
        socket.send(message.clone()).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        let back = next(socket).await;
        assert!(matches!(&back, Some(Ok(back)) if *back == message), "{what}, {index}: {back:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c30_sockets_survive_changes_of_other_selectors_and_of_their_own() {
    let (address, _closed) = backend().await;
    let own = address.to_string();
    let mut field = Field::start(manners(&own), "").await;
    let mut sockets = Vec::new();
    for _ in 0..50 {
        sockets.push(open(&field).await);
    }
    all_alive(&mut sockets, "fresh").await;
    let other = |round: usize| {
        let plugin = if round.is_multiple_of(2) { "divide" } else { "websocket" };
        objects(plugin, "/", &own, "{}").into_iter().map(move |frame| {
            let id = format!("d-{}", round % 10);
            frame
                .replace(&format!("s-{plugin}"), &id)
                .replace(&format!("r-{plugin}"), &format!("r{id}"))
        })
    };
    for round in 0..100 {
        // Selector, rule and upstreams of another selector; every third time it goes again.
        for frame in other(round).skip(1) {
            let frame = frame.replace("\"paramValue\":\"/\"", "\"paramValue\":\"/other\"");
            field.admin.text(frame.replace("MYSELF", "UPDATE"));
            if round % 3 == 0 && frame.contains("\"SELECTOR\"") {
                field.admin.text(frame.replace("MYSELF", "DELETE"));
            }
        }
        if round % 5 == 0 {
            for frame in manners(&own).sequence {
                field.admin.text(frame.replace("MYSELF", "REFRESH"));
            }
        }
    }
    field.admin.fence().await;
    all_alive(&mut sockets, "after a hundred changes and twenty refreshes").await;
    // The weight of their own selector's upstream, and one more beside it.
    let more = upstream("U2");
    let frames = objects("websocket", "/", &format!("{own},{}", more.addr()), "{}");
    field.admin.text(frames[3].replace("\"weight\":50", "\"weight\":7"));
    field.admin.fence().await;
    all_alive(&mut sockets, "after changes of their own selector").await;
    field.admin.text(frames[1].replace("MYSELF", "DELETE"));
    field.admin.fence().await;
    // Those that are open are left to finish; there are no new ones.
    all_alive(&mut sockets, "after their selector is gone").await;
    let refused = connect_async(format!("ws://{}/ws", field.gateway.address)).await;
    assert!(refused.is_err(), "a selector that is gone is still used");
    assert_ne!(get(&field.gateway, "/ws").await.status, 101);
    drop(sockets);
    field.stop().await;
}
