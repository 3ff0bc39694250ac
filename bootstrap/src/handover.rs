//! From one gateway process to the next: the listening sockets themselves are passed on.
//!
//! A gateway listens on a local socket whose name is made of its public address. Its successor,
//! started with `--takeover`, asks there for the sockets, gets ready beside it, begins to accept, and
//! only then says `stop`. Both hold the same sockets, so a connection that waits in a queue is
//! accepted by one of them and none is refused or reset, whichever of the two goes first. A successor
//! that gives up closes the local socket, and nothing has happened.
//!
//! | from | says |
//! |---|---|
//! | successor | `takeover 1` |
//! | predecessor | `{"public":2,"management":1}`, then the sockets, in that order |
//! | successor | `stop`, once it accepts |
//! | predecessor | `released`, once it does not |
//!
//! The name is abstract: it lives in the network name space, as the ports do, leaves no file behind,
//! and is free when its holder ends. Abstract names have no permissions, so each side asks the system
//! who the other is: only processes of the same user are served.

mod sockets;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net as unix;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use longmen_core::lifecycle::Lifecycle;
use longmen_core::snapshot::SnapshotStore;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;
use tracing::{error, info, warn};

use crate::worker::Doors;

/// How long either side may take for a word.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a successor may take to get its configuration.
const READY_LIMIT: Duration = Duration::from_secs(60);

const ASK: &str = "takeover 1";
const STOP: &str = "stop";
const RELEASED: &str = "released";

#[derive(Debug, Serialize, Deserialize)]
struct Offer {
    public: usize,
    management: usize,
}

/// Sockets of a gateway.
#[derive(Debug)]
pub(crate) struct Sockets {
    pub(crate) public: Vec<TcpListener>,
    pub(crate) management: Option<TcpListener>,
}

/// A gateway that is to be followed.
#[derive(Debug)]
pub(crate) struct Predecessor {
    stream: unix::UnixStream,
}

fn name(address: SocketAddr) -> io::Result<unix::SocketAddr> {
    unix::SocketAddr::from_abstract_name(format!("longmen-gateway/{address}"))
}

/// Asks the gateway that serves `address` for its sockets; `None` when there is none.
///
/// # Errors
/// It belongs to another user, or does not answer as it should.
pub(crate) fn ask(address: SocketAddr) -> io::Result<Option<(Predecessor, Sockets)>> {
    let mut stream = match unix::UnixStream::connect_addr(&name(address)?) {
        Ok(stream) => stream,
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(None),
        Err(error) => return Err(error),
    };
    let answer = (|| {
        sockets::same_user(&stream)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        io::Write::write_all(&mut stream, format!("{ASK}\n").as_bytes())?;
        let offer: Offer = serde_json::from_str(&sockets::read_line(&mut stream)?)?;
        let mut all = sockets::receive(&stream, offer.public + offer.management)?;
        let management = all.split_off(offer.public).pop();
        stream.set_read_timeout(None)?;
        Ok(Sockets { public: all, management })
    })();
    let sockets = answer.map_err(|error: io::Error| {
        let text = format!("cannot take over from the gateway on {address}: {error}");
        io::Error::new(error.kind(), text)
    })?;
    Ok(Some((Predecessor { stream }, sockets)))
}

/// What both halves need to know about this gateway.
#[derive(Debug, Clone)]
pub(crate) struct Post {
    pub(crate) address: SocketAddr,
    pub(crate) doors: Doors,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) store: Arc<SnapshotStore>,
    /// Set when a successor has taken over.
    pub(crate) handed_over: Arc<AtomicBool>,
}

impl Post {
    /// The whole part of a gateway: follows its predecessor, if it has one, and then waits for its
    /// successor. Ends with the gateway.
    pub(crate) async fn run(self, predecessor: Option<Predecessor>, sockets: Sockets) {
        let soft = self.lifecycle.soft().clone();
        tokio::select! {
            () = self.stages(predecessor, &sockets) => {}
            () = soft.cancelled() => {}
        }
        // Whoever has them now: a socket that nobody accepts from must not stay open.
        drop(sockets);
    }

    async fn stages(&self, predecessor: Option<Predecessor>, sockets: &Sockets) {
        if let Some(predecessor) = predecessor
            && let Err(error) = self.follow(predecessor).await
        {
            error!("takeover given up, the other gateway goes on: {error}");
            self.lifecycle.fail();
            return;
        }
        let listener = match listen(self.address) {
            Ok(listener) => listener,
            Err(error) => {
                warn!(address = %self.address, "no successor can take over: {error}");
                return;
            }
        };
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    warn!("cannot hear a successor: {error}");
                    tokio::time::sleep(PATIENCE).await;
                    continue;
                }
            };
            // Until it has said stop, the sockets are not ours alone.
            self.doors.others.fetch_add(1, Ordering::AcqRel);
            match self.hand_over(stream, sockets).await {
                Ok(stream) => {
                    drop(listener);
                    return self.release(stream).await;
                }
                Err(error) => {
                    self.doors.others.fetch_sub(1, Ordering::AcqRel);
                    warn!("a successor gave up: {error}");
                }
            }
        }
    }

    /// Gets ready, opens the doors, and stops the predecessor.
    async fn follow(&self, predecessor: Predecessor) -> io::Result<()> {
        let ready = async {
            while !self.store.load().ready {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(READY_LIMIT, ready)
            .await
            .map_err(|_| io::Error::other(format!("no configuration within {READY_LIMIT:?}")))?;
        self.doors.open.cancel();
        predecessor.stream.set_nonblocking(true)?;
        let stopped = async {
            let mut stream = BufReader::new(UnixStream::from_std(predecessor.stream)?);
            stream.write_all(format!("{STOP}\n").as_bytes()).await?;
            heard(&mut stream, RELEASED).await
        };
        match timeout(PATIENCE, stopped).await {
            Ok(Ok(())) => info!("took over"),
            // It is gone, or will find out: we serve.
            Ok(Err(error)) => warn!("took over; the other gateway went without a word: {error}"),
            Err(_) => warn!("took over; the other gateway does not say that it has stopped"),
        }
        self.doors.others.fetch_sub(1, Ordering::AcqRel);
        Ok(())
    }

    /// Gives the sockets away and waits until the successor accepts.
    async fn hand_over(
        &self,
        stream: UnixStream,
        sockets: &Sockets,
    ) -> io::Result<BufReader<UnixStream>> {
        sockets::same_user(&stream)?;
        let mut stream = BufReader::new(stream);
        timeout(PATIENCE, heard(&mut stream, ASK)).await??;
        info!("a successor gets ready");
        let offer = Offer {
            public: sockets.public.len(),
            management: usize::from(sockets.management.is_some()),
        };
        let text = serde_json::to_string(&offer)?;
        stream.write_all(format!("{text}\n").as_bytes()).await?;
        let all: Vec<&TcpListener> = sockets.public.iter().chain(&sockets.management).collect();
        timeout(PATIENCE, sockets::send(stream.get_ref(), &all)).await??;
        heard(&mut stream, STOP).await?;
        Ok(stream)
    }

    /// Stops accepting, and says so.
    async fn release(&self, mut stream: BufReader<UnixStream>) {
        info!("a successor has taken over");
        self.handed_over.store(true, Ordering::Relaxed);
        let accepting = self.doors.accepting.clone();
        // On its own: this task ends with the token.
        tokio::spawn(async move {
            accepting.close();
            if timeout(PATIENCE, accepting.wait()).await.is_ok() {
                let _ = stream.write_all(format!("{RELEASED}\n").as_bytes()).await;
            }
        });
        self.lifecycle.soft().cancel();
    }
}

fn listen(address: SocketAddr) -> io::Result<UnixListener> {
    let listener = unix::UnixListener::bind_addr(&name(address)?)?;
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

/// Reads one line, which must be this word.
async fn heard(stream: &mut BufReader<UnixStream>, word: &str) -> io::Result<()> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    match line.trim_end() {
        "" => Err(io::ErrorKind::UnexpectedEof.into()),
        found if found == word => Ok(()),
        found => Err(io::Error::other(format!("expected {word:?}, found {found:.40?}"))),
    }
}
