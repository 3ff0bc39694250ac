//! Upstreams: where requests go, how one is chosen, and how it is called.
//!
//! An [`Endpoint`] is what outlives every snapshot: its identity is (selector id, scheme,
//! host:port), never a row id, so its counters and connections survive any edit that does not take
//! it away. A [`UpstreamSet`] is the immutable list of one selector inside a snapshot.

mod address;
mod balance;
mod budget;
mod check;
mod client;
mod clock;
mod endpoint;
mod header;
mod health;
mod latency;
mod registry;
mod set;

pub use address::{Address, AddressFault, Scheme};
pub use balance::{BalanceState, LoadBalance, Share};
pub use check::{CheckOptions, Checker, Probe, ProbeFuture};
pub(crate) use client::SHENYU_TIMEOUT;
pub use client::{
    Answer, ClientFactory, ClientOptions, ConnectFailure, ConnectionStats, HyperClient, KeyStore,
    LookUp, LookUpError, LookUpFuture, PoolLimit, PoolOptions, ProxyOptions, ReqwestClient,
    SendFailure, SendFuture, SystemLookUp, TcpProbe, TlsConnector, TlsOptions, TlsSetupError,
    TlsStream, Tunnel, UpstreamClient, request_head_for,
};
pub use clock::now_ms;
pub use endpoint::{Endpoint, EndpointOptions, EndpointState, InFlight};
pub(crate) use header::join_cookies;
pub use header::{announce_body, hides_body, is_event_stream, strip_hop_by_hop};
pub use health::{EjectionPolicy, Failure};
pub use registry::EndpointRegistry;
pub use set::{LeftOut, Member, UpstreamSet};
