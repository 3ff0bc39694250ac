//! From one gateway process to the next: the listening sockets themselves are passed on.
//!
//! A gateway listens on a local socket whose name is made of its configured public address. Its
//! successor, started with `--takeover`, asks there for the sockets, gets ready beside it, begins to
//! accept, and only then says `stop`. Both hold the same sockets, so a connection that waits in a queue
//! is accepted by one of them and none is refused or reset, whichever of the two goes first. A successor
//! that gives up closes the local socket, and nothing has happened. A predecessor that ends meanwhile
//! closes it too: its successor is alone then and accepts at once.
//!
//! | from | says |
//! |---|---|
//! | successor | `takeover 1` |
//! | predecessor | `{"public":2,"management":1,"held_elsewhere":false}`, then the sockets, in that order; or `busy`, where another successor has them |
//! | successor | `stop`, once it accepts |
//! | predecessor | `released`, once it does not; or `given up`, where it has waited for too long |
//!
//! The name is abstract: it lives in the network name space, as the ports do, leaves no file behind,
//! and is free when its holder ends. Abstract names have no permissions, so each side asks the system
//! who the other is: only processes of the same user are served.

mod following;
mod giving;
mod sockets;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net as unix;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use longmen_core::lifecycle::Lifecycle;
use longmen_core::snapshot::SnapshotStore;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tracing::{error, warn};

use crate::config::NettyConfig;
use crate::sync::Applier;
use crate::worker::Doors;

pub(crate) use following::{Predecessor, ask};

/// How long either side may take for a word.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a successor may take to get its configuration.
const READY_LIMIT: Duration = Duration::from_secs(60);

/// After which time without an admin a successor makes do with the kept configuration.
const ADMIN_LIMIT: Duration = Duration::from_secs(10);

/// How long a predecessor waits for a successor that has its sockets: longer than one that lives takes.
pub(crate) const SUCCESSOR_LIMIT: Duration = Duration::from_secs(75);

/// Between two attempts to hear a successor where the system does not let us.
const PAUSE: Duration = Duration::from_millis(100);

const ASK: &str = "takeover 1";
const BUSY: &str = "busy";
const STOP: &str = "stop";
const RELEASED: &str = "released";
const GIVEN_UP: &str = "given up";

#[derive(Debug, Serialize, Deserialize)]
struct Offer {
    public: usize,
    management: usize,
    /// Whether somebody beside the predecessor holds the sockets, a supervisor for one.
    #[serde(default)]
    held_elsewhere: bool,
}

/// Sockets of a gateway.
#[derive(Debug)]
pub(crate) struct Sockets {
    pub(crate) public: Vec<TcpListener>,
    pub(crate) management: Option<TcpListener>,
}

/// What both halves need to know about this gateway.
#[derive(Debug)]
pub(crate) struct Post {
    /// The configured public address, by which the two find each other.
    pub(crate) address: SocketAddr,
    /// How the public sockets are set up.
    pub(crate) netty: NettyConfig,
    /// How long a successor may take, [`SUCCESSOR_LIMIT`] but for tests.
    pub(crate) patience: Duration,
    pub(crate) doors: Doors,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) store: Arc<SnapshotStore>,
    /// Says whether an admin has said what is in force.
    pub(crate) applier: Applier,
    /// Set when a successor has taken over.
    pub(crate) handed_over: Arc<AtomicBool>,
}

impl Post {
    /// The whole part of a gateway: follows its predecessor, if it has one, and then waits for its
    /// successor. Ends with the gateway.
    pub(crate) async fn run(self, predecessor: Option<Predecessor>, sockets: Sockets) {
        let soft = self.lifecycle.soft().clone();
        tokio::select! {
            // Nothing is given away by a gateway that stops.
            biased;
            () = soft.cancelled() => {}
            () = self.stages(predecessor, &sockets) => {}
        }
        // Whoever has them now: a socket that nobody accepts from must not stay open.
        drop(sockets);
    }

    async fn stages(&self, predecessor: Option<Predecessor>, sockets: &Sockets) {
        if let Some(predecessor) = predecessor
            && let Err(error) = predecessor.followed_by(self, sockets).await
        {
            error!("takeover given up, the other gateway goes on: {error}");
            self.lifecycle.fail();
            return;
        }
        self.hear_successors(self.listen().await, sockets).await;
    }

    /// Listens for a successor, as soon as nobody else does.
    async fn listen(&self) -> UnixListener {
        let mut told = false;
        loop {
            match listen(self.address) {
                Ok(listener) => return listener,
                Err(error) if !told => {
                    warn!(address = %self.address, "no successor can take over for now: {error}");
                    told = true;
                }
                Err(_) => {}
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

fn name(address: SocketAddr) -> String {
    format!("longmen-gateway/{address}")
}

fn listen(address: SocketAddr) -> io::Result<UnixListener> {
    let name = unix::SocketAddr::from_abstract_name(name(address))?;
    let listener = unix::UnixListener::bind_addr(&name)?;
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

/// Reads one line; `None` when the other side has gone.
async fn word(stream: &mut BufReader<UnixStream>) -> io::Result<Option<String>> {
    let mut line = String::new();
    match stream.read_line(&mut line).await {
        Ok(0) => Ok(None),
        Ok(_) => Ok(Some(line.trim_end().to_owned())),
        // It has left something unread.
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads one line, which must be this word.
async fn heard(stream: &mut BufReader<UnixStream>, expected: &str) -> io::Result<()> {
    match word(stream).await?.as_deref() {
        None => Err(io::ErrorKind::UnexpectedEof.into()),
        Some(found) if found == expected => Ok(()),
        Some(found) => Err(unexpected(expected, found)),
    }
}

fn unexpected(expected: &str, found: &str) -> io::Error {
    io::Error::other(format!("expected {expected:?}, found {found:.40?}"))
}
