//! Sockets over a local socket, and who is at its other end.

use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::net as unix;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg, sockopt,
};
use tokio::io::Interest;
use tokio::net::UnixStream;

/// Descriptors in one message; the system takes up to 253.
const BATCH: usize = 32;

/// The most sockets that are taken from another process.
const MAX: usize = 4096;

/// # Errors
/// The peer is a process of another user.
pub(super) fn same_user(stream: &impl AsFd) -> io::Result<()> {
    let (peer, own) = (sockopt::socket_peercred(stream)?.uid, rustix::process::geteuid());
    if peer == own {
        return Ok(());
    }
    let text = format!("the other process belongs to user {peer:?}, this one to {own:?}");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// Sends sockets, a batch with each byte.
///
/// # Errors
/// The peer is gone, or the system does not take them.
pub(super) async fn send(stream: &UnixStream, sockets: &[&TcpListener]) -> io::Result<()> {
    for batch in sockets.chunks(BATCH) {
        let fds: Vec<_> = batch.iter().map(|socket| socket.as_fd()).collect();
        let sending = || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(BATCH))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            if !control.push(SendAncillaryMessage::ScmRights(&fds)) {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
            let sent = sendmsg(stream, &[IoSlice::new(b".")], &mut control, SendFlags::NOSIGNAL)?;
            if sent == 1 { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
        };
        stream.async_io(Interest::WRITABLE, sending).await?;
    }
    Ok(())
}

/// Receives `count` sockets.
///
/// # Errors
/// The peer sends fewer, or something else.
pub(super) fn receive(stream: &unix::UnixStream, count: usize) -> io::Result<Vec<TcpListener>> {
    if count > MAX {
        return Err(io::Error::other(format!(
            "{count} sockets are offered, expected at most {MAX}"
        )));
    }
    let mut sockets = Vec::with_capacity(count);
    while sockets.len() < count {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(BATCH))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let into = &mut [IoSliceMut::new(&mut byte)];
        let received = recvmsg(stream, into, &mut control, RecvFlags::CMSG_CLOEXEC)?;
        if received.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let before = sockets.len();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                sockets.extend(fds.map(TcpListener::from));
            }
        }
        if sockets.len() == before {
            return Err(io::Error::other("a message without sockets"));
        }
    }
    Ok(sockets)
}

/// Reads up to the end of a line and not a byte further: what follows carries sockets.
///
/// # Errors
/// The peer is gone or silent, or the line too long.
pub(super) fn read_line(stream: &mut unix::UnixStream) -> io::Result<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < 256 {
        stream.read_exact(&mut byte)?;
        if byte == *b"\n" {
            return String::from_utf8(line).map_err(io::Error::other);
        }
        line.push(byte[0]);
    }
    Err(io::Error::other("a line of more than 256 bytes"))
}
