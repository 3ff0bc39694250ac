//! The server half of the sync: what admin tells gateways, and when.

mod changes;
mod object;
mod sequence;
mod text;
