//! The way through an HTTP proxy.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::super::ProxyOptions;
use crate::upstream::Address;

/// The largest head that a proxy may answer with.
const MAX_HEAD: usize = 16 << 10;

/// Asks a proxy for a tunnel to an address. What comes after its answer belongs to the upstream.
///
/// Source: RFC 9110, section 9.3.6. The reference tunnels all upstreams, also plain ones.
pub(super) async fn tunnel(
    mut stream: TcpStream,
    proxy: &ProxyOptions,
    address: &Address,
) -> io::Result<TcpStream> {
    let host = if address.host.contains(':') {
        format!("[{}]:{}", address.host, address.port)
    } else {
        format!("{}:{}", address.host, address.port)
    };
    let mut request = format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n");
    if let Some((user, password)) = &proxy.credentials {
        let credentials = STANDARD.encode(format!("{user}:{password}"));
        request.push_str(&format!("Proxy-Authorization: Basic {credentials}\r\n"));
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await?;
    let head = read_head(&mut stream).await?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    let http = head.starts_with("HTTP/1.");
    if http && status.len() == 3 && status.starts_with('2') {
        return Ok(stream);
    }
    let line: String = head.lines().next().unwrap_or_default().chars().take(100).collect();
    Err(io::Error::other(format!("expected a status of 200 for CONNECT {host}, got {line:?}")))
}

/// Reads byte by byte, so that nothing behind the head is taken.
async fn read_head(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::with_capacity(256);
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == MAX_HEAD {
            return Err(io::Error::other(format!("an answer head of more than {MAX_HEAD} bytes")));
        }
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(io::Error::other("closed the connection instead of an answer"));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}
