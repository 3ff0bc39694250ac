//! Wire types of the sync between admin and gateway. No sockets here.
//!
//! The words are the reference's: a *frame* is one text message with a group, an event and data.
//! Between our own parts the same frames carry one more member, `longmen`, with the epoch, the
//! version and the marks that make change sets and full refreshes exact. Both ends announce it in
//! the handshake by the header [`NEGOTIATION_HEADER`]; a stock peer neither sends nor sees it.
//!
//! Source: ShenYu 2.7.1, websocket channel.

mod codec;
mod frame;

pub use codec::{BadObject, FrameError, Inbound, decode, decode_each, encode};
pub use frame::{
    ClientMessage, Event, Frame, GatewayFault, Group, Mark, Payload, RunningMode, RunningModeKind,
};

/// The header that both ends of a handshake send when they speak our additions; its value is the
/// version of those additions, [`NEGOTIATION_VERSION`].
pub const NEGOTIATION_HEADER: &str = "x-longmen-sync";

/// The version of our additions.
pub const NEGOTIATION_VERSION: &str = "1";

/// The header that carries the install's sync token.
pub const TOKEN_HEADER: &str = "x-sync-token";

/// The header that names the namespace of a gateway, spelled as the stock gateway spells it.
pub const NAMESPACE_HEADER: &str = "namespaceId";

/// The header that carries the port a gateway serves on.
pub const PORT_HEADER: &str = "ClientPort";

/// The header by which a gateway of ours says who it is: `name.n`, a name it makes up when it starts, and
/// how many sessions it opened before. Stock peers neither send nor see it.
pub const INSTANCE_HEADER: &str = "x-longmen-gateway";

/// The word a gateway sends to ask for the running mode.
pub const RUNNING_MODE: &str = "RUNNING_MODE";

/// The word a gateway sends to ask for everything.
pub const MYSELF: &str = "MYSELF";

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;
