//! The way between gateway and admin, which can be cut and can stall.

use std::net::SocketAddr;

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

/// What the way does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Passes everything on.
    Open,
    /// Passes nothing on, and closes nothing.
    Stalled,
}

/// A relay of TCP connections, for as long as this value lives.
#[derive(Debug)]
pub(super) struct Relay {
    /// Where to connect.
    pub(super) address: SocketAddr,
    way: watch::Sender<Way>,
    cuts: watch::Sender<u64>,
    task: AbortHandle,
}

impl Relay {
    /// Starts to relay to a port of this machine.
    pub(super) async fn start(port: u16) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("open a relay")?;
        let address = listener.local_addr()?;
        let (way, cuts) = (watch::Sender::new(Way::Open), watch::Sender::new(0));
        let (open, cut) = (way.subscribe(), cuts.subscribe());
        let task = tokio::spawn(accept(listener, port, open, cut)).abort_handle();
        Ok(Self { address, way, cuts, task })
    }

    /// Closes all connections there are.
    pub(super) fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Whether anything is passed on from now on.
    pub(super) fn stall(&self, stalled: bool) {
        self.way.send_replace(if stalled { Way::Stalled } else { Way::Open });
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(
    listener: TcpListener,
    port: u16,
    open: watch::Receiver<Way>,
    cut: watch::Receiver<u64>,
) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok((near, _)) = listener.accept().await else { return };
        connections.spawn(relay(near, port, open.clone(), cut.clone()));
    }
}

async fn relay(
    near: TcpStream,
    port: u16,
    way: watch::Receiver<Way>,
    mut cut: watch::Receiver<u64>,
) {
    cut.mark_unchanged();
    let through = async {
        let far = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
        let (mut near_read, mut near_write) = near.into_split();
        let (mut far_read, mut far_write) = far.into_split();
        tokio::join!(
            pass(&mut near_read, &mut far_write, way.clone()),
            pass(&mut far_read, &mut near_write, way),
        );
        Some(())
    };
    tokio::select! {
        _ = through => {}
        _ = cut.changed() => {}
    }
}

/// Passes bytes on, while the way is open, until the sender ends; then the receiver is told so.
async fn pass(from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf, mut way: watch::Receiver<Way>) {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = from.read(&mut buffer).await.unwrap_or(0);
        if way.wait_for(|way| *way == Way::Open).await.is_err() {
            return;
        }
        if read == 0 || to.write_all(&buffer[..read]).await.is_err() {
            // The other side may have gone already.
            let _ = to.shutdown().await;
            return;
        }
    }
}
