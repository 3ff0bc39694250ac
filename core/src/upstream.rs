//! Upstreams: where requests go, how one is chosen, and how it is called.
//!
//! An [`Endpoint`] is what outlives every snapshot: its identity is (selector id, scheme,
//! host:port), never a row id, so its counters and connections survive any edit that does not take
//! it away. A [`UpstreamSet`] is the immutable list of one selector inside a snapshot.

mod address;
mod balance;
mod client;
mod endpoint;
mod header;
mod set;

pub use address::{Address, AddressFault, Scheme};
pub use balance::{BalanceState, Choice, LoadBalance};
pub(crate) use client::SHENYU_TIMEOUT;
pub use client::{
    Answer, ClientFactory, ClientOptions, ConnectFailure, ConnectionStats, HyperClient, KeyStore,
    LookUp, LookUpError, LookUpFuture, PoolLimit, PoolOptions, ProxyOptions, ReqwestClient,
    SendFailure, SendFuture, SystemLookUp, TlsOptions, TlsSetupError, Tunnel, UpstreamClient,
    request_head_for,
};
pub use endpoint::{Endpoint, EndpointRegistry, InFlight};
pub(crate) use header::join_cookies;
pub use header::{announce_body, hides_body, is_event_stream, strip_hop_by_hop};
pub use set::{Member, UpstreamSet};
