//! What gateways get, over real websockets.

mod changes;
mod gateway;
mod handshake;
mod link;
mod liveness;
mod many_admins;
mod objects;
mod outage;
mod postgres;
mod refresh;
mod restore;
mod sessions;
