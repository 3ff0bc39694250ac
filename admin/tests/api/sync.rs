//! What gateways get, over real websockets.

mod gateway;
mod handshake;
mod objects;
mod postgres;
mod refresh;
mod sessions;
