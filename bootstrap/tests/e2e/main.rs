//! The gateway from outside, and the rules of the workspace.

mod bad_clients;
mod edge;
mod fake_admin;
mod fed;
mod guards;
mod limits;
mod master_check;
mod observed;
mod stock_feed;
mod support;
mod tidy;
mod websocket;
mod whole_path;
