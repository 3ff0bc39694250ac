//! The gateway from outside, and the rules of the workspace.

mod bad_clients;
mod edge;
mod fake_admin;
mod fed;
mod field_cases;
mod golden_gateway;
mod grpc;
mod guards;
mod http2_clients;
mod kept;
mod limits;
mod master_check;
mod observed;
mod odd_requests;
mod process_log;
mod slow_clients;
mod standard;
mod stock_feed;
mod stopping;
mod support;
mod tidy;
mod unreadable;
mod upstream_state;
mod websocket;
mod websocket_limits;
mod whole_path;
