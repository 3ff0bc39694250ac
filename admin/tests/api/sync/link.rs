//! A link to the database that can fall silent without a word, as a firewall makes it.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A proxy in front of a PostgreSQL server. Its end cuts all connections.
pub(crate) struct Link {
    /// The database's address by way of the proxy.
    pub(crate) url: String,
    state: Arc<State>,
    _accepting: JoinSet<()>,
}

struct State {
    /// Connections so far.
    opened: watch::Sender<u64>,
    /// Up to which connection nothing passes any more.
    silent: watch::Sender<u64>,
    /// Pieces that came from the admin since and went nowhere.
    lost: watch::Sender<u64>,
}

impl Link {
    /// In front of the server of `url`.
    pub(crate) async fn to(url: &str) -> Self {
        let (head, rest) = url.split_once('@').unwrap();
        let (server, database) = rest.split_once('/').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let state = Arc::new(State {
            opened: watch::Sender::new(0),
            silent: watch::Sender::new(0),
            lost: watch::Sender::new(0),
        });
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, server.to_owned(), Arc::clone(&state)));
        Self { url: format!("{head}@{address}/{database}"), state, _accepting: accepting }
    }

    /// From now on nothing passes on the connections that are open; new ones are good.
    pub(crate) fn silence_open_connections(&self) {
        self.state.silent.send_replace(*self.state.opened.borrow());
    }

    /// From now on nothing passes on any connection.
    pub(crate) fn silence(&self) {
        self.state.silent.send_replace(u64::MAX);
    }

    /// Waits until the admin has asked something that gets no answer.
    pub(crate) async fn something_was_lost(&self) {
        self.state.lost.subscribe().wait_for(|pieces| *pieces > 0).await.unwrap();
    }
}

async fn accept(listener: TcpListener, server: String, state: Arc<State>) {
    let mut pumps = JoinSet::new();
    loop {
        let (near, _) = listener.accept().await.unwrap();
        let far = TcpStream::connect(&server).await.unwrap();
        state.opened.send_modify(|opened| *opened += 1);
        let number = *state.opened.borrow();
        let ((from_near, to_near), (from_far, to_far)) = (near.into_split(), far.into_split());
        pumps.spawn(pump(from_near, to_far, number, Arc::clone(&state), true));
        pumps.spawn(pump(from_far, to_near, number, Arc::clone(&state), false));
    }
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    number: u64,
    state: Arc<State>,
    asks: bool,
) {
    let mut piece = vec![0; 16 * 1024];
    loop {
        let read = from.read(&mut piece).await.unwrap_or(0);
        if *state.silent.borrow() >= number {
            if asks && read > 0 {
                state.lost.send_modify(|pieces| *pieces += 1);
            }
            if read == 0 {
                // Neither end hears that the other one went.
                return std::future::pending().await;
            }
            continue;
        }
        if read == 0 || to.write_all(&piece[..read]).await.is_err() {
            return;
        }
    }
}
