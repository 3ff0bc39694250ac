//! Listening sockets.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};

use crate::config::NettyConfig;

/// Opens `count` sockets on one address. The first one is bound alone, so that an address that
/// another process serves is an error and not half of its traffic; with more than one they share the
/// port, and the system spreads connections over them.
///
/// # Errors
/// The address cannot be bound; the error names it.
pub(crate) fn open(
    address: SocketAddr,
    count: usize,
    config: &NettyConfig,
) -> io::Result<Vec<std::net::TcpListener>> {
    let named = |error: io::Error| {
        io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
    };
    if count == 1 {
        return Ok(vec![one(address, false, config).map_err(named)?]);
    }
    // Bound without sharing: fails when anybody else is there.
    let probe = bind(address, false).map_err(named)?;
    let bound = probe.local_addr()?.as_socket().unwrap_or(address);
    drop(probe);
    (0..count).map(|_| one(bound, true, config).map_err(named)).collect()
}

fn bind(address: SocketAddr, share: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(share)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

fn one(
    address: SocketAddr,
    share: bool,
    config: &NettyConfig,
) -> io::Result<std::net::TcpListener> {
    let socket = bind(address, share)?;
    if let Some(bytes) = config.listener.receive_buffer_bytes {
        socket.set_recv_buffer_size(bytes)?;
    }
    socket.listen(config.listener.backlog)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}
