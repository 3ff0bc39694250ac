//! The successor's half: asks for the sockets, gets ready, opens its doors, and stops the other one.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net as unix;
use std::sync::atomic::Ordering;
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout};
use tracing::{error, info, warn};

use super::{
    ADMIN_LIMIT, ASK, BUSY, GIVEN_UP, Offer, PATIENCE, Post, READY_LIMIT, RELEASED, STOP, Sockets,
    name, sockets, unexpected, word,
};
use crate::listener;
use crate::worker::Doors;

/// A gateway that is to be followed.
#[derive(Debug)]
pub(crate) struct Predecessor {
    stream: unix::UnixStream,
    /// Whether somebody beside it holds the sockets.
    held_elsewhere: bool,
}

/// Asks the gateway that serves `address` for its sockets; `None` when there is none of this user.
///
/// # Errors
/// It does not answer as it should, or has another successor already.
pub(crate) fn ask(address: SocketAddr) -> io::Result<Option<(Predecessor, Sockets)>> {
    let failed = |error: io::Error| {
        let text = format!("cannot take over from the gateway on {address}: {error}");
        io::Error::new(error.kind(), text)
    };
    let mut stream = match connect(address) {
        Ok(stream) => stream,
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    match sockets::same_user(&stream) {
        // Anybody may take the name, and must not keep this gateway from starting by that.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            warn!(%address, "nobody to take over from: {error}");
            return Ok(None);
        }
        asked => asked.map_err(failed)?,
    }
    let (offer, sockets) = receive(&mut stream).map_err(failed)?;
    Ok(Some((Predecessor { stream, held_elsewhere: offer.held_elsewhere }, sockets)))
}

/// Connects within the limit: where the other side accepts nothing, connecting waits.
fn connect(address: SocketAddr) -> io::Result<unix::UnixStream> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_write_timeout(Some(PATIENCE))?;
    socket.connect(&SockAddr::unix(format!("\0{}", name(address)))?)?;
    let stream = unix::UnixStream::from(OwnedFd::from(socket));
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

fn receive(stream: &mut unix::UnixStream) -> io::Result<(Offer, Sockets)> {
    stream.write_all(format!("{ASK}\n").as_bytes())?;
    let answer = sockets::read_line(stream)?;
    if answer == BUSY {
        let text = "it is busy: another successor gets ready";
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, text));
    }
    let offer: Offer = serde_json::from_str(&answer)?;
    let mut all = sockets::receive(stream, offer.public.saturating_add(offer.management))?;
    let management = all.split_off(offer.public).pop();
    Ok((offer, Sockets { public: all, management }))
}

/// What a predecessor does while its successor gets ready.
enum Meanwhile {
    /// It serves on.
    Serves,
    /// It is gone: what waits to be accepted waits for us.
    Gone,
}

impl Predecessor {
    /// Gets ready, opens the doors, and stops the predecessor.
    ///
    /// # Errors
    /// No configuration in time, sockets that cannot be used; the predecessor has given up.
    pub(super) async fn followed_by(self, post: &Post, sockets: &Sockets) -> io::Result<()> {
        self.stream.set_nonblocking(true)?;
        let mut stream = BufReader::new(UnixStream::from_std(self.stream)?);
        let meanwhile = tokio::select! {
            biased;
            ended = until_gone(&mut stream) => ended?,
            ready = timeout(READY_LIMIT, until_ready(post)) => match ready {
                Ok(()) => Meanwhile::Serves,
                Err(_) => {
                    let text = format!("no configuration within {READY_LIMIT:?}");
                    return Err(io::Error::other(text));
                }
            },
        };
        // The sockets are the predecessor's too, so this comes as late as can be.
        listener::adopt(&sockets.public, &post.netty)?;
        post.doors.open.cancel();
        let only_ours = !self.held_elsewhere;
        if let Meanwhile::Gone = meanwhile {
            warn!("took over before this gateway is ready: the other one has ended");
            released(&post.doors, only_ours);
            return Ok(());
        }
        let mut stopping = Box::pin(stop(stream));
        match timeout(PATIENCE, stopping.as_mut()).await {
            Ok(Ok(said)) => {
                if said {
                    info!("took over");
                } else {
                    warn!("took over; the other gateway went without a word");
                }
                released(&post.doors, only_ours);
            }
            Ok(Err(error)) => return Err(error),
            Err(_) => {
                warn!("took over; the other gateway does not say that it has stopped");
                // It still has the sockets, for as long as it lives.
                let (doors, lifecycle) = (post.doors.clone(), post.lifecycle.clone());
                tokio::spawn(async move {
                    match stopping.await {
                        Ok(_) => released(&doors, only_ours),
                        Err(error) => {
                            error!("takeover given up, the other gateway goes on: {error}");
                            lifecycle.fail();
                        }
                    }
                });
            }
        }
        Ok(())
    }
}

/// The predecessor does not hold the sockets any more.
fn released(doors: &Doors, only_ours: bool) {
    if only_ours {
        doors.others.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Until there is a configuration: an admin's, or, where none can be reached, the kept one, which is
/// what the predecessor serves by.
async fn until_ready(post: &Post) {
    let begun = Instant::now();
    while !(post.store.load().ready
        && (post.applier.is_confirmed() || begun.elapsed() > ADMIN_LIMIT))
    {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Until the predecessor has ended; it has nothing to say otherwise, but that it does not wait.
async fn until_gone(stream: &mut BufReader<UnixStream>) -> io::Result<Meanwhile> {
    // Nothing of a word is lost when this is not waited for to its end.
    match stream.fill_buf().await {
        Ok([]) => return Ok(Meanwhile::Gone),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(Meanwhile::Gone),
        Err(error) => return Err(error),
    }
    match word(stream).await? {
        None => Ok(Meanwhile::Gone),
        Some(word) if word == GIVEN_UP => Err(given_up()),
        Some(word) => Err(unexpected(GIVEN_UP, &word)),
    }
}

/// Stops the predecessor. Says whether it has said so; if not it is gone.
async fn stop(mut stream: BufReader<UnixStream>) -> io::Result<bool> {
    // What it said last is read, also where it hears nothing any more.
    let _ = stream.write_all(format!("{STOP}\n").as_bytes()).await;
    match word(&mut stream).await? {
        None => Ok(false),
        Some(word) if word == RELEASED => Ok(true),
        Some(word) if word == GIVEN_UP => Err(given_up()),
        Some(word) => Err(unexpected(RELEASED, &word)),
    }
}

fn given_up() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "this gateway took too long to get ready")
}
