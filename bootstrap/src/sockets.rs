//! Where the sockets of a gateway come from: opened, inherited, or taken over.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use listenfd::ListenFd;
use tracing::info;

use crate::config::{GatewayConfig, WorkerModel};
use crate::handover::{self, Predecessor, Sockets};
use crate::worker::Doors;
use crate::{listener, management};

/// How long an address may be taken while nobody speaks for it.
const BETWEEN_HOLDERS: Duration = Duration::from_secs(5);

/// Between two questions.
const PAUSE: Duration = Duration::from_millis(50);

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
    let given = sort(config, inherited)?;
    let shared = !given.public.is_empty();
    let Source { predecessor, public, management, shared } = if shared {
        listener::adopt(&given.public, &config.netty)?;
        Source { predecessor: None, public: given.public, management: given.management, shared }
    } else if takeover {
        follow(config, given.management)?
    } else {
        let public = listener::open(wanted, sockets_of(config), &config.netty)?;
        Source { predecessor: None, public, management: given.management, shared }
    };
    let address = public.first().map_or(Ok(wanted), TcpListener::local_addr)?;
    if address != wanted && wanted.port() != 0 {
        info!(%address, configured = %wanted, "serving another address than the configured one");
    }
    let management = management_of(config, management)?;
    let public = listener::deal(public, count)?;
    let port = if wanted.port() == 0 { address.port() } else { wanted.port() };
    let asked_for = SocketAddr::new(wanted.ip(), port);
    Ok(Opened { address, asked_for, public, management, predecessor, shared })
}

/// How many sockets accept on the public address.
fn sockets_of(config: &GatewayConfig) -> usize {
    match config.netty.worker_model {
        WorkerModel::PerCore => workers(config).0,
        WorkerModel::Shared => config.netty.accept_loops,
    }
}

/// Sockets, and whom they come from.
struct Source {
    predecessor: Option<Predecessor>,
    public: Vec<TcpListener>,
    management: Option<TcpListener>,
    shared: bool,
}

/// Those of the predecessor, or new ones where nobody has the address. Between one gateway and its
/// successor there is a moment in which the address is taken and nobody speaks for it: so who finds it
/// like that asks again for a while.
fn follow(config: &GatewayConfig, management: Option<TcpListener>) -> io::Result<Source> {
    let wanted = config.server.socket();
    let begun = Instant::now();
    let mut told = false;
    loop {
        let error = match handover::ask(wanted) {
            Ok(Some((found, sockets))) => {
                return Ok(Source {
                    predecessor: Some(found),
                    public: sockets.public,
                    management: sockets.management.or(management),
                    shared: true,
                });
            }
            Ok(None) => {
                if !told {
                    info!(address = %wanted, "nobody to take over from");
                    told = true;
                }
                match listener::open(wanted, sockets_of(config), &config.netty) {
                    Ok(public) => {
                        return Ok(Source { predecessor: None, public, management, shared: false });
                    }
                    Err(error) if error.kind() == io::ErrorKind::AddrInUse => error,
                    Err(error) => return Err(error),
                }
            }
            Err(error) if went_away(&error) => error,
            Err(error) => return Err(error),
        };
        if begun.elapsed() > BETWEEN_HOLDERS {
            return Err(error);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Whether the other side ended, or stopped hearing successors, while it was asked.
fn went_away(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
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
