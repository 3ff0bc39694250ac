//! Where the sockets of a gateway come from: opened, inherited, or taken over.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::Ordering;

use listenfd::ListenFd;
use tracing::info;

use crate::config::{GatewayConfig, WorkerModel};
use crate::handover::{self, Predecessor, Sockets};
use crate::worker::Doors;
use crate::{listener, management};

/// The sockets that a supervisor has opened for this process (`LISTEN_FDS`, `LISTEN_PID`). To be
/// called before any thread is started: the variables are taken away.
///
/// # Errors
/// One of them is no listening TCP socket.
pub fn inherited_listeners() -> io::Result<Vec<TcpListener>> {
    let mut inherited = ListenFd::from_env();
    let taken = (0..inherited.len()).map(|index| inherited.take_tcp_listener(index));
    taken.filter_map(Result::transpose).collect()
}

/// The sockets of a gateway that is about to start.
#[derive(Debug)]
pub(crate) struct Opened {
    /// Where clients connect.
    pub(crate) address: SocketAddr,
    /// What the configuration calls that, by which gateways find each other: an inherited socket may be
    /// bound to something else that takes the same connections.
    pub(crate) asked_for: SocketAddr,
    /// For each worker its own.
    pub(crate) public: Vec<Vec<TcpListener>>,
    pub(crate) management: TcpListener,
    pub(crate) predecessor: Option<Predecessor>,
    /// Whether somebody else holds them too.
    shared: bool,
}

/// How many workers there are, and how many threads each has.
pub(crate) fn workers(config: &GatewayConfig) -> (usize, usize) {
    match config.netty.worker_model {
        WorkerModel::PerCore => (config.netty.workers(), 1),
        WorkerModel::Shared => (1, config.netty.workers()),
    }
}

/// Gets the sockets: inherited ones, else those of a predecessor, else new ones.
///
/// # Errors
/// An address cannot be bound; a predecessor does not give its sockets.
pub(crate) fn open(
    config: &GatewayConfig,
    inherited: Vec<TcpListener>,
    takeover: bool,
) -> io::Result<Opened> {
    let wanted = config.server.socket();
    let (count, _) = workers(config);
    let mut predecessor = None;
    let mut given = sort(config, inherited)?;
    if given.public.is_empty() && takeover {
        match handover::ask(wanted)? {
            None => info!(address = %wanted, "nobody to take over from"),
            Some((found, sockets)) => (predecessor, given) = (Some(found), sockets),
        }
    }
    let shared = !given.public.is_empty();
    let public = if shared {
        // A predecessor goes on using them until this gateway is ready.
        if predecessor.is_none() {
            listener::adopt(&given.public, &config.netty)?;
        }
        given.public
    } else {
        let sockets = match config.netty.worker_model {
            WorkerModel::PerCore => count,
            WorkerModel::Shared => config.netty.accept_loops,
        };
        listener::open(wanted, sockets, &config.netty)?
    };
    let address = public.first().map_or(Ok(wanted), TcpListener::local_addr)?;
    if address != wanted && wanted.port() != 0 {
        info!(%address, configured = %wanted, "serving another address than the configured one");
    }
    let management = management_of(config, given.management)?;
    let public = listener::deal(public, count)?;
    let port = if wanted.port() == 0 { address.port() } else { wanted.port() };
    let asked_for = SocketAddr::new(wanted.ip(), port);
    Ok(Opened { address, asked_for, public, management, predecessor, shared })
}

fn management_of(config: &GatewayConfig, given: Option<TcpListener>) -> io::Result<TcpListener> {
    let wanted = config.management.socket();
    let Some(management) = given else { return management::open(wanted) };
    let address = management.local_addr()?;
    if address != wanted && wanted.port() != 0 {
        info!(%address, configured = %wanted, "management on another address than the configured one");
    }
    Ok(management)
}

fn sort(config: &GatewayConfig, inherited: Vec<TcpListener>) -> io::Result<Sockets> {
    let mut sockets = Sockets { public: Vec::new(), management: None };
    for listener in inherited {
        let port = listener.local_addr()?.port();
        if port == config.management.port && port != config.server.port {
            sockets.management = Some(listener);
        } else {
            sockets.public.push(listener);
        }
    }
    Ok(sockets)
}

impl Opened {
    /// Doors for these sockets: shut while there is a predecessor.
    pub(crate) fn doors(&self) -> Doors {
        let doors = Doors::default();
        doors.others.store(usize::from(self.shared), Ordering::Relaxed);
        if self.predecessor.is_none() {
            doors.open.cancel();
        }
        doors
    }

    /// The sockets once more, for a successor.
    ///
    /// # Errors
    /// No more descriptors.
    pub(crate) fn spare(&self) -> io::Result<Sockets> {
        let public = self.public.iter().flatten().map(TcpListener::try_clone);
        Ok(Sockets {
            public: public.collect::<io::Result<_>>()?,
            management: Some(self.management.try_clone()?),
        })
    }
}
