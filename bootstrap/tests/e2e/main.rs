//! The gateway from outside, and the rules of the workspace.

mod bad_clients;
mod fake_admin;
mod field_cases;
mod golden_gateway;
mod guards;
mod master_check;
mod odd_requests;
mod standard;
mod stock_feed;
mod support;
mod tidy;
mod unreadable;
mod upstream_state;
mod websocket;
mod whole_path;
