//! Connections to admins: TCP, and TLS where the address asks for it.

use std::io;

use longmen_core::upstream::{TlsConnector, TlsStream};
use tokio::net::TcpStream;
use tokio_util::either::Either;

/// An open connection.
pub(super) type Transport = Either<TcpStream, Box<TlsStream>>;

/// Where an admin is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// A name or an IP literal, without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) secure: bool,
}

impl Place {
    /// The place of a uri whose scheme is one of `plain` and `secure`; `None` if it is neither, or
    /// there is no host, or there are a user and a password.
    pub(super) fn of(uri: &http::Uri, plain: &str, secure: &str) -> Option<Self> {
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'))?;
        let secure = match uri.scheme_str()? {
            scheme if scheme == plain => false,
            scheme if scheme == secure => true,
            _ => return None,
        };
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = authority.port_u16().unwrap_or(if secure { 443 } else { 80 });
        (!host.is_empty()).then_some(Self { host, port, secure })
    }

    /// Connects.
    pub(super) async fn connect(&self, tls: &TlsConnector) -> io::Result<Transport> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        if self.secure {
            Ok(Either::Right(Box::new(tls.connect(&self.host, stream).await?)))
        } else {
            Ok(Either::Left(stream))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_from_addresses() {
        let place = |text: &str| {
            let Place { host, port, secure } = Place::of(&text.parse().unwrap(), "ws", "wss")?;
            Some((host, port, secure))
        };
        assert_eq!(place("ws://a:9095/websocket"), Some(("a".into(), 9095, false)));
        assert_eq!(place("ws://[::1]/websocket"), Some(("::1".into(), 80, false)));
        assert_eq!(
            place("wss://admin.example/websocket"),
            Some(("admin.example".into(), 443, true))
        );
        for wrong in ["http://a/websocket", "ws://u:p@a/websocket", "/websocket"] {
            assert_eq!(place(wrong), None, "{wrong}");
        }
    }
}
