//! A websocket that sends every message back.

use futures_util::{SinkExt as _, StreamExt as _};
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE,
};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::body::OriginBody;
use super::service::empty;

/// Answers the handshake and starts the echo; 426 to what is no handshake.
///
/// Of the subprotocols a client offers the first is taken.
pub(super) fn answer(mut request: Request<Incoming>) -> Response<OriginBody> {
    let headers = request.headers();
    let upgrade = headers
        .get(UPGRADE)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
    let accept = headers.get(SEC_WEBSOCKET_KEY).map(|key| derive_accept_key(key.as_bytes()));
    let (true, Some(accept)) = (upgrade, accept) else {
        return empty(StatusCode::UPGRADE_REQUIRED);
    };
    let Ok(accept) = HeaderValue::from_str(&accept) else {
        return empty(StatusCode::BAD_REQUEST);
    };
    let protocol = headers.get(SEC_WEBSOCKET_PROTOCOL).and_then(|offered| {
        let first = offered.to_str().ok()?.split(',').next()?.trim();
        HeaderValue::from_str(first).ok()
    });
    let mut response = empty(StatusCode::SWITCHING_PROTOCOLS);
    let headers = response.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    if let Some(protocol) = protocol {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    tokio::spawn(echo(hyper::upgrade::on(&mut request)));
    response
}

/// Ends when either side closes or the connection breaks; pings are answered by the library.
async fn echo(upgrade: OnUpgrade) {
    let Ok(upgraded) = upgrade.await else { return };
    let stream = TokioIo::new(upgraded);
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
    while let Some(Ok(message)) = socket.next().await {
        let data = message.is_text() || message.is_binary();
        if data && socket.send(message).await.is_err() {
            return;
        }
    }
}
