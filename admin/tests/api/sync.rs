//! What gateways get, over real websockets.

mod changes;
mod gateway;
mod handshake;
mod objects;
mod postgres;
mod refresh;
mod restore;
mod sessions;
