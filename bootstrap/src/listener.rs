//! Listening sockets.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use socket2::{Domain, Protocol, SockFilter, SockRef, Socket, Type};

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
) -> io::Result<Vec<TcpListener>> {
    let named = |error: io::Error| {
        io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
    };
    if count == 1 {
        return Ok(vec![one(address, false, config).map_err(named)?]);
    }
    // Bound without sharing: fails when anybody else is there.
    let probe = bind(address, false, config).map_err(named)?;
    let bound = probe.local_addr()?.as_socket().unwrap_or(address);
    drop(probe);
    (0..count).map(|_| one(bound, true, config).map_err(named)).collect()
}

/// Takes over sockets that listen already. What is set on them is set for all who hold them; a filter
/// that one of those has left behind is taken off.
///
/// # Errors
/// A socket that cannot be set up.
pub(crate) fn adopt(listeners: &[TcpListener], config: &NettyConfig) -> io::Result<()> {
    listeners.iter().try_for_each(|listener| {
        let socket = SockRef::from(listener);
        match socket.detach_filter() {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            // There mostly is none.
            Ok(()) | Err(_) => {}
        }
        prepare(&socket, config)
    })
}

/// Gives each of `count` workers its sockets: all are given to somebody, and nobody goes without.
/// Where there are too few, workers share one.
///
/// # Errors
/// A socket cannot be shared; there is none.
pub(crate) fn deal(listeners: Vec<TcpListener>, count: usize) -> io::Result<Vec<Vec<TcpListener>>> {
    let dealt = listeners.len().min(count);
    let mut hands: Vec<Vec<TcpListener>> = (0..count).map(|_| Vec::new()).collect();
    if dealt == 0 {
        return Err(io::Error::new(io::ErrorKind::NotFound, "no listening socket"));
    }
    for (number, listener) in listeners.into_iter().enumerate() {
        hands[number % count].push(listener);
    }
    for number in dealt..count {
        let shared = hands[number % dealt][0].try_clone()?;
        hands[number].push(shared);
    }
    Ok(hands)
}

/// Lets no further handshake begin on a socket; those under way are finished, and what waits to be
/// accepted stays. For sockets that nobody else holds: it cannot be told by others, and lasts.
///
/// A client that comes now gets no answer, tries again after a second and is refused then, when the
/// socket is closed. Without this a handshake could end between the last accept and the close, and
/// that client, connected as far as it knows, would be reset.
///
/// # Errors
/// The system has no socket filters.
pub(crate) fn refuse_new(listener: &impl std::os::fd::AsFd) -> io::Result<()> {
    const LOAD_BYTE: u16 = 0x30;
    const JUMP_IF_SET: u16 = 0x45;
    const RETURN: u16 = 0x06;
    const FLAGS_OFFSET: u32 = 13;
    const SYN: u32 = 0x02;
    SockRef::from(listener).attach_filter(&[
        SockFilter::new(LOAD_BYTE, 0, 0, FLAGS_OFFSET),
        SockFilter::new(JUMP_IF_SET, 0, 1, SYN),
        SockFilter::new(RETURN, 0, 0, 0),
        SockFilter::new(RETURN, 0, 0, u32::MAX),
    ])
}

fn bind(address: SocketAddr, share: bool, config: &NettyConfig) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(config.listener.reuse_address)?;
    socket.set_reuse_port(share)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

fn one(address: SocketAddr, share: bool, config: &NettyConfig) -> io::Result<TcpListener> {
    let socket = bind(address, share, config)?;
    prepare(&socket, config)?;
    socket.listen(config.listener.backlog)?;
    Ok(socket.into())
}

/// Sets what accepted connections inherit, so that nothing is left to do for each of them.
fn prepare(socket: &Socket, config: &NettyConfig) -> io::Result<()> {
    let options = &config.socket;
    if let Some(bytes) = options.receive_buffer_bytes.or(config.listener.receive_buffer_bytes) {
        socket.set_recv_buffer_size(bytes)?;
    }
    if let Some(bytes) = options.send_buffer_bytes {
        socket.set_send_buffer_size(bytes)?;
    }
    socket.set_tcp_nodelay(options.no_delay)?;
    socket.set_keepalive(options.keep_alive)?;
    // Also where it is not configured: whoever had the socket before may have set it.
    socket.set_linger(options.linger_seconds.map(|seconds| Duration::from_secs(seconds.into())))?;
    if let Some(tos) = options.tos
        && socket.domain()? == Domain::IPV4
    {
        socket.set_tos_v4(tos)?;
    }
    // Only so much of an answer waits in the kernel; a client that takes some is noticed.
    let unsent = u32::try_from(options.write_buffer_bytes).unwrap_or(u32::MAX);
    socket.set_tcp_notsent_lowat(unsent)?;
    socket.set_nonblocking(true)
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::time::Duration;

    use socket2::SockRef;

    use super::{adopt, deal, open, refuse_new};
    use crate::config::GatewayConfig;

    fn listeners(count: usize) -> Vec<TcpListener> {
        let config = GatewayConfig::default().netty;
        open("127.0.0.1:0".parse().unwrap(), count, &config).unwrap()
    }

    #[test]
    fn every_worker_has_a_socket_and_every_socket_a_worker() {
        for (sockets, workers) in [(1, 1), (1, 3), (2, 3), (3, 3), (5, 2)] {
            let all = listeners(sockets);
            let address = all[0].local_addr().unwrap();
            let fds: Vec<_> = all.iter().map(AsRawFd::as_raw_fd).collect();
            let hands = deal(all, workers).unwrap();
            assert_eq!(hands.len(), workers);
            let dealt: Vec<_> = hands.iter().flatten().collect();
            assert!(hands.iter().all(|hand| !hand.is_empty()), "{sockets} for {workers}");
            assert!(dealt.iter().all(|socket| socket.local_addr().unwrap() == address));
            assert!(fds.iter().all(|fd| dealt.iter().any(|socket| socket.as_raw_fd() == *fd)));
        }
        assert!(deal(Vec::new(), 1).is_err());
    }

    #[test]
    fn a_socket_that_refuses_new_ones_keeps_those_that_wait() {
        let listener = listeners(1).remove(0);
        let address = listener.local_addr().unwrap();
        let mut waiting = TcpStream::connect(address).unwrap();
        refuse_new(&listener).unwrap();
        let late = TcpStream::connect_timeout(&address, Duration::from_millis(200));
        assert_eq!(late.unwrap_err().kind(), ErrorKind::TimedOut);
        let (mut accepted, _) = listener.accept().unwrap();
        assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
        drop(listener);
        waiting.write_all(b"hello").unwrap();
        let mut seen = [0; 5];
        accepted.read_exact(&mut seen).unwrap();
        assert_eq!(&seen, b"hello");
        let refused = TcpStream::connect(address).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_socket_that_is_adopted_takes_connections_again_and_forgets_other_settings() {
        let config = GatewayConfig::default().netty;
        let all = listeners(1);
        let address = all[0].local_addr().unwrap();
        let mut lingering = config.clone();
        lingering.socket.linger_seconds = Some(7);
        adopt(&all, &lingering).unwrap();
        assert_eq!(SockRef::from(&all[0]).linger().unwrap(), Some(Duration::from_secs(7)));
        refuse_new(&all[0]).unwrap();
        adopt(&all, &config).unwrap();
        assert_eq!(SockRef::from(&all[0]).linger().unwrap(), None);
        TcpStream::connect_timeout(&address, Duration::from_secs(10)).unwrap();
        // Nothing to take off is fine too.
        adopt(&all, &config).unwrap();
    }
}
