//! The gateway's half of the sync: from one or more admins to the snapshot in force.
//!
//! One *link* per configured url. With our own admins one link at a time holds a session and the
//! others wait to take over; with stock admins all links stay open and the master rule is followed.
//! Which kind an admin is, the handshake tells.
//!
//! A gateway that polls has links of another kind: see [`polling`].
//!
//! Whatever happens to links, what is in force stays in force: absence alone never deletes.

mod apply;
mod link;
mod master;
mod options;
mod ours;
mod polling;
mod report;
mod session;
mod stock;
mod transport;

pub(crate) use apply::{Applier, Kept};
pub(crate) use link::{Identity, LinkOptions, start};
pub(crate) use polling::{Login, PollOptions, check_aes, start as start_polling};
